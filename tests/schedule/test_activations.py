"""Activations behind float convs as they run: numpy's answer, zeros in fringe and padding, no function called."""

import re
import subprocess
from pathlib import Path

import pytest

from hexconv.compute.activations import FUNCTIONS
from hexconv.lower import lower_case
from hexconv.lower.hexagon import compile_for_hexagon
from hexconv.run.host import Host
from hexconv.run.measure import run_case, runner_of
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernels import Kernel

AROUND = Padding(top=1, left=1, bottom=1, right=1)
OF_LIBM = re.compile(r"\b(exp|tanh|erf|pow|log)f?\b|div[sd]f3|floorf?\b")


def case_of(name: str, kernel: Kernel = "plain", dtype: Dtype = "float32") -> Case:
    """Two convs of sizes that fill no block; the second pads what the first one's activation makes."""
    conv = Conv2d(out_channels=21, kernel=(3, 3), padding=AROUND, bias=True, activation=name)  # pyright: ignore[reportArgumentType]
    return Case(name, Chain(input=(1, 9, 7, 5), dtype=dtype, conv=(conv, conv)), Plan(kernel=kernel))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("kernel", "dtype"), [("plain", "float32"), ("plain", "float16"), ("host", "float32")])
def test_a_padded_chain_is_numpys_and_its_fringe_zero(name: str, kernel: Kernel, dtype: Dtype) -> None:
    case = case_of(name, kernel, dtype)
    assert case.kernels[0].used == kernel
    check = run_case(case, lower_case(case), Host()).check
    assert check.passed, check
    assert check.fringe_is_zero


@pytest.mark.parametrize("name", ["sigmoid", "gelu", "prelu"])
def test_it_is_numpys_on_the_simulator(name: str) -> None:
    case = case_of(name)
    assert run_case(case, lower_case(case), runner_of(case, "hexagon")).check.passed


@pytest.mark.parametrize("name", ["silu", "tanh", "gelu", "elu"])
def test_an_object_for_a_device_calls_no_function_of_numbers(name: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.o").write_bytes(compile_for_hexagon(lower_case(case_of(name)).module, "v68").elf)
    told = subprocess.run(["readelf", "-Ws", "kernel.o"], cwd=tmp_path, capture_output=True, text=True, check=True)
    undefined = [line.split()[-1] for line in told.stdout.splitlines() if " UND " in line]
    assert not [symbol for symbol in undefined if OF_LIBM.search(symbol)]
