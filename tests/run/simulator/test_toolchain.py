"""A program has only what its kernel calls: most kernels need a small part of compiler-rt, and others get all of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tvm
from tvm import te, tirx

from hexconv.lower import lower_case
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.run.simulator import made_files, toolchain
from hexconv.run.simulator.qemu import find_qemu
from hexconv.spec import Case

SCHEDULES = Path(__file__).parents[3] / "schedules"

pytestmark = pytest.mark.simulator


def asked_for(module: tvm.IRModule, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Link the program of a kernel anew, and return the whole libraries that this asks for."""
    asked: list[str] = []
    whole = toolchain._library

    def noted(source: str, isa: str) -> Path:
        asked.append(source)
        return whole(source, isa)

    def anew(kind: str, key: str, build: Callable[[Path], None]) -> Path:
        if kind != "programs":
            return made_files.cached(kind, key, build)
        build(folder / key)
        return folder / key

    monkeypatch.setattr(toolchain, "_library", noted)
    monkeypatch.setattr(toolchain, "cached", anew)
    assert toolchain.program(compile_for_hexagon(module, find_qemu().isa_for(None))).stat().st_size
    return asked


@pytest.mark.parametrize("name", ["split-1x1", "hvx/double-rings"])
def test_kernels_of_convs_need_no_whole_library(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.load(SCHEDULES / f"{name}.toml", target="hexagon")
    assert asked_for(lower_case(case).module, tmp_path, monkeypatch) == []


@pytest.mark.parametrize("function", [tirx.nearbyint, tirx.exp])
def test_a_kernel_that_calls_more_gets_the_whole_libraries(
    function: Callable[[tirx.Expr], tirx.Expr], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = te.placeholder((8,), "float32", "source")
    target = te.compute((8,), lambda i: function(source[i]), "target")
    module = tvm.IRModule({"main": te.create_prim_func([source, target])})
    assert asked_for(module, tmp_path, monkeypatch) == ["compiler_rt.zig", "c.zig"]
