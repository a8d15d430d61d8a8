"""A chain as linalg: what MLIR's tools make of the text gives numpy's numbers, in loops and on whole tensors."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from hexconv.cli.app import exit_code
from hexconv.errors import RunFailed
from hexconv.mlir.linalg_chain import TILED, WHOLE, arguments_of, linalg_text
from hexconv.run import mlir_host
from hexconv.run.measure import run_case
from hexconv.run.mlir_host import MlirHost, optimised
from hexconv.run.tensors import packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.addition import Add
from hexconv.spec.dtypes import Dtype
from tests.deep import DEEP
from tests.draws import LOWERED, SAME_RUN
from tests.lowered import lower_case
from tests.strategies import cases, convs_alone

FOLDERS = (Path("schedules"), Path("schedules/hvx"), Path("schedules/hmx"))
QUICK = (
    "bottleneck",
    "quantised-3x3",
    "double-stripes",
    "grouped",
    "mixed-depthwise",
    "depthwise-stride-2",
    "first-layer",
)
FILES = sorted((path for folder in FOLDERS for path in folder.glob("*.toml")), key=lambda path: path.stem not in QUICK)
SAID = cases(kernels=("plain", "hvx")).filter(lambda case: convs_alone(case.chain))
ALLOCATED = re.compile(r"memref\.alloc\(\).*: memref<([x\d]+)x\w+>")


def is_right(case: Case) -> bool:
    """Whether both functions of a case give numpy's numbers, and zeros in the fringe."""
    return all(run_case(case, lower_case(case), MlirHost(case, entry)).check.passed for entry in (TILED, WHOLE))


@pytest.mark.mlir
@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=[] if path.stem in QUICK else [pytest.mark.deep], id=path.stem) for path in FILES]
)
def test_every_case_in_schedules_gives_numpys_numbers(path: Path) -> None:
    assert is_right(Case.load(path, "llvm"))


@pytest.mark.mlir
@pytest.mark.drawn
@SAME_RUN
@given(SAID)
def test_every_drawn_case_gives_numpys_numbers(case: Case) -> None:
    assert is_right(replace(case, target="llvm"))


@pytest.mark.mlir
@pytest.mark.parametrize("dtype", ["uint8", pytest.param("float32", marks=DEEP)])
def test_what_convs_add_of_earlier_tensors_is_of_the_same_place(dtype: Dtype) -> None:
    of_codes = {"scales": (0.0213477, 0.0317213, 0.0401937), "zero_point": 9} if dtype == "uint8" else {}
    by = Requantize(multiplier=1518025757, shift=-8, zero_point=5) if dtype == "uint8" else None
    three = Conv2d(out_channels=40, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=by)
    tall = replace(three, kernel=(5, 1), padding=Padding(top=2, bottom=2), add=Add(from_="conv1", **of_codes))
    convs = (three, replace(three, add=Add(from_="input", **of_codes)), tall)
    chain = Chain(input=(2, 20, 12, 40), dtype=dtype, zero_point=7 if of_codes else 0, conv=convs)
    assert is_right(Case("added", chain, Plan(kernel="plain", h_split=2, order="h_outer"), target="llvm"))


@pytest.mark.mlir
@pytest.mark.parametrize("name", ["split-3x3", "same-3x3", "uint8-3x3-vtcm", "bottleneck"])
def test_mlir_allocates_for_activations_what_the_document_caches_and_columns_to_fill_blocks(name: str) -> None:
    case = Case.load(f"schedules/{name}.toml")
    bufferised = optimised(linalg_text(case), mlir_host.PASSES[: mlir_host.PASSES.index("--scf-forall-to-for")])
    tiled = bufferised[: bufferised.index(f"@{WHOLE}")]
    found = {tuple(map(int, shape.split("x"))) for shape in ALLOCATED.findall(tiled)}
    caches = [each.shape for each in lower_case(case).caches if each.name.startswith(("input", "intermediate"))]
    assert len(caches) > 1
    for n, ho, wo, *rest in caches:
        assert found & {(n, ho, wo + more, *rest) for more in range(3)}


TILED_BY_MLIR = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %whole = transform.structured.match ops{["func.func"]} attributes{sym_name = "whole"} in %module
        : (!transform.any_op) -> !transform.any_op
    %both = transform.structured.match ops{["linalg.generic"]} in %whole : (!transform.any_op) -> !transform.any_op
    %sums, %result = transform.split_handle %both : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tile, %loops:5 = transform.structured.tile_using_for %result tile_sizes [0, 1, 2, 1, 4, 3, 0]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                  !transform.any_op, !transform.any_op)
    transform.structured.fuse_into_containing_op %sums into %loops#4
        : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
"""
"""Tiles the epilogue of a single conv, rows and columns of a block too, and computes its sums inside of the loops."""


@pytest.mark.mlir
@pytest.mark.parametrize("name", ["first-layer", "depthwise-stride-2", "grouped"])
def test_mlirs_own_tiling_of_the_whole_gives_the_same_numbers(name: str, tmp_path: Path) -> None:
    case, script = Case.load(f"schedules/hvx/{name}.toml", "llvm"), tmp_path / "tiled.mlir"
    script.write_text(TILED_BY_MLIR)
    passes = (f"--transform-preload-library=transform-library-paths={script}", "--transform-interpreter")
    assert optimised(linalg_text(case), passes).count("scf.for") > optimised(linalg_text(case)).count("scf.for")
    assert run_case(case, lower_case(case), MlirHost(case, WHOLE, passes)).check.passed


def test_its_arguments_are_those_of_the_documents_prim_func() -> None:
    case = Case.load("schedules/quantised-3x3.toml")
    packed = packed_arguments(case.chain, random_tensors(case.chain))
    *given, output = arguments_of(case.chain).values()
    assert [(each.shape, each.dtype) for each in given] == [(array.shape, str(array.dtype)) for array in packed]
    assert output.shape == (1, 4, 4, 2, 8, 8, 32)


@LOWERED
@given(SAID)
def test_the_text_is_the_same_each_time_and_makes_every_name_once_in_a_function(case: Case) -> None:
    text = linalg_text(case)
    assert text == linalg_text(case)
    for function in text.split("func.func")[1:]:
        made = re.findall(r"^ *(%\w+) = ", function, re.M)
        assert len(made) == len(set(made))


def test_a_plan_is_loops_and_what_they_do_not_say_is_told() -> None:
    conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    chain = Chain(input=(2, 66, 66, 64), dtype="uint8", conv=(conv, replace(conv, kernel=(1, 1))))
    plan = Plan(kernel="hvx", k_split=2, h_split=2, threads=4, halo="roll", order="h_outer")
    text = linalg_text(Case("told", chain, plan))
    tiled = text[: text.index(f"@{WHOLE}")]
    assert "scf.forall (%bands_turn) in (4)" in tiled
    steps = re.findall(r"%(step\w+) = scf.for", tiled)
    assert steps == ["step2_n", "step1_ko", "step2_ko"]  # a band has one stripe, made before the tiles
    assert 'halo = "roll": rows that two tiles read are made for each' in text
    assert "scf.for" not in text[text.index(f"@{WHOLE}") :]


def test_a_case_cannot_write_code() -> None:
    conv = Conv2d(out_channels=8)
    text = linalg_text(Case("a\nfunc.func @evil() { }", Chain(input=(1, 8, 8, 8), conv=(conv,))))
    assert all(line.startswith("//") for line in text.splitlines() if "evil" in line)


@pytest.mark.mlir
def test_the_command_writes_what_mlir_opt_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["tir", "schedules/hvx/grouped.toml", "--format", "mlir", "-o", str(tmp_path / "out"), "--json"]
    assert exit_code(asked) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert "agrees" not in row
    assert "@tiled" in optimised(Path(row["file"]).read_text())
    with pytest.raises(RunFailed, match="mlir-opt"):
        optimised(Path(row["file"]).read_text().replace("linalg.yield", "linalg.yeld", 1))


@pytest.mark.mlir
def test_code_that_crashes_is_a_run_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.load("schedules/quantised-3x3.toml", "llvm")
    head, _, rest = linalg_text(case).partition("  %0 = ")
    output, end = arguments_of(case.chain)["output"], rest[rest.index("}\n\nfunc") :]
    beside = ", ".join(["%far"] * len(output.shape))
    body = [
        "%far = arith.constant 1000000000 : index",
        "%zero = arith.constant 0 : i8",
        f"%made = tensor.insert %zero into %output[{beside}] : {output.type}",
        f"return %made : {output.type}",
    ]
    monkeypatch.setattr(mlir_host, "linalg_text", lambda _case: "\n".join([head, *body, end]))
    with pytest.raises(RunFailed, match=r"gave no answer: .*SIG"):
        run_case(case, lower_case(case), MlirHost(case))


def test_a_machine_without_mlir_runs_nothing_and_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    mlir_host.find_mlir.cache_clear()
    assert exit_code(["run", "schedules/quantised-3x3.toml", "--target", "mlir", "--json"]) == 2
    mlir_host.find_mlir.cache_clear()
    [row] = json.loads((told := capsys.readouterr()).out)
    assert row["passed"] is None
    assert "apt-get install mlir-19-tools" in told.err
