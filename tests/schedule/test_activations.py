"""Activations behind float convs as they run: numpy's answer, zeros in fringe and padding, no function called."""

import re
import subprocess
from pathlib import Path

import pytest
import tvm

from hexconv.analyze import cache_usage, work_usage
from hexconv.analyze.usage import miscounts
from hexconv.compute.activation_code import FUNCTIONS
from hexconv.lower import annotated_tir
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.run.host import Host, count
from hexconv.run.measure import run_case, runner_of
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from hexconv.spec.dtypes import Dtype
from tests.any_chain.bounds import checked_module
from tests.deep import DEEP, one_in
from tests.lowered import lower_case

AROUND = Padding(top=1, left=1, bottom=1, right=1)
OF_LIBM = re.compile(r"\b(exp|tanh|erf|pow|log)f?\b|div[sd]f3|floorf?\b")


def case_of(name: str, dtype: Dtype = "float32") -> Case:
    """Two convs of sizes that fill no block; the second pads what the first one's activation makes."""
    conv = Conv2d(out_channels=21, kernel=(3, 3), padding=AROUND, bias=True, activation=name)  # pyright: ignore[reportArgumentType]
    return Case(name, Chain(input=(1, 9, 7, 5), dtype=dtype, conv=(conv, conv)), Plan(kernel="plain"))


BY_TURNS = [(name, ("float32", "float16")[place % 2]) for place, name in enumerate(FUNCTIONS)]
EACH = [
    *BY_TURNS,
    *(pytest.param(name, {"float32": "float16", "float16": "float32"}[dtype], marks=DEEP) for name, dtype in BY_TURNS),
]


@pytest.mark.parametrize(("name", "dtype"), EACH)
def test_a_padded_chain_is_numpys_and_its_fringe_zero(name: str, dtype: Dtype) -> None:
    case = case_of(name, dtype)
    check = run_case(case, lower_case(case), Host()).check
    assert check.passed, check
    assert check.fringe_is_zero


@pytest.mark.parametrize(("name", "dtype"), BY_TURNS)
def test_its_caches_and_bytes_are_predicted(name: str, dtype: Dtype) -> None:
    """No result is read again to be replaced, and registers are no caches."""
    case = case_of(name, dtype)
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


@pytest.mark.parametrize(("name", "dtype"), BY_TURNS)
def test_what_is_printed_parses_back(name: str, dtype: Dtype) -> None:
    case = case_of(name, dtype)
    lowered = lower_case(case)
    tvm.ir.assert_structural_equal(tvm.script.from_source(annotated_tir(case, lowered, "")), lowered.module)


@pytest.mark.parametrize("name", one_in(4, FUNCTIONS))
def test_no_index_leaves_its_axis(name: str) -> None:
    """The bias and the slopes have no element for a channel of the fringe."""
    case = case_of(name)
    kernel = tvm.compile(checked_module(case), target="llvm")
    arguments = packed_arguments(case.chain, random_tensors(case.chain))
    output = tvm.runtime.empty(output_shape(case.chain), "float32")
    kernel["main"](*map(tvm.runtime.tensor, arguments), output)


@pytest.mark.parametrize("name", ["sigmoid", "gelu", "prelu"])
def test_it_is_numpys_on_the_simulator(name: str) -> None:
    case = case_of(name)
    assert run_case(case, lower_case(case), runner_of(case, "hexagon", slots=False)).check.passed


@pytest.mark.parametrize("name", ["silu", "tanh", "gelu", "elu"])
def test_an_object_for_a_device_calls_no_function_of_numbers(name: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.o").write_bytes(compile_for_hexagon(lower_case(case_of(name)).module, "v68").elf)
    told = subprocess.run(["readelf", "-Ws", "kernel.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    undefined = [line.split()[-1] for line in told.stdout.splitlines() if " UND " in line]
    assert not [symbol for symbol in undefined if OF_LIBM.search(symbol)]
