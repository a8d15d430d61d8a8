"""`hexconv doctor`: what is there, what is missing, what to do about it."""

import json
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.run import machine_parts

PARTS = {"tvm", "tvm-ffi", "llvm", "zig", "qemu-hexagon", "vtcm", "memory", "onnxruntime", "altair", "mlir"}


@pytest.mark.simulator
def test_a_complete_machine_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["doctor", "--json"]) == 0
    parts = {part["name"]: part for part in json.loads(capsys.readouterr().out)}
    assert parts.keys() == PARTS
    assert all(part["present"] for part in parts.values() if part["needed"])
    assert "with HVX" in parts["qemu-hexagon"]["found"]


def test_a_missing_simulator_fails_and_is_named_with_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert exit_code(["doctor"]) == 1
    row, advice = [line for line in capsys.readouterr().out.splitlines() if "qemu-hexagon" in line]
    assert row.startswith("NO")
    assert advice.startswith("qemu-hexagon: ")
    assert advice.count("apt-get install qemu-user") == 1


def test_a_missing_package_is_missing_and_not_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    parts = {part.name: part for part in machine_parts.examine()}
    assert not parts["zig"].present
    assert parts["zig"].install == "pip install ziglang"
    assert not machine_parts.complete(list(parts.values()))


def test_plots_without_the_packages_that_draw_them_are_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = metadata.version

    def version(name: str) -> str:
        if name == "vl-convert-python":
            raise PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    for asked in (["report", "schedules/split-3x3.toml"], ["best", "schedules/split-3x3.toml", "--plot", "front.svg"]):
        assert exit_code(asked) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.endswith("needs Altair and vl-convert, which are not installed: pip install 'hexconv[report]'")


@pytest.mark.parametrize("version", ["0.1.15", "0.1.15.post2", "0.2.0", "0.1.13"])
def test_a_tvm_ffi_that_crashes_tensorize_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: version)
    ffi = next(part for part in machine_parts.examine() if part.name == "tvm-ffi")
    assert not ffi.present
    assert "tensorize" in ffi.problem


@pytest.mark.parametrize(("flags", "doubted"), [("avx2 avx512f", True), ("avx2 avx_vnni", False)])
def test_a_cpu_whose_sums_may_saturate_in_onnx_runtime_is_named(
    flags: str, doubted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    monkeypatch.setattr(machine_parts, "CPUINFO", cpuinfo)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "1.25.0")
    part = next(part for part in machine_parts.examine() if part.name == "onnxruntime")
    assert part.present
    assert ("no VNNI" in part.found) == doubted
