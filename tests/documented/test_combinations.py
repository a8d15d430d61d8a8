"""Every combination that seed document 003 schedules: both kernel sizes, both splits, run and compared with numpy.

The document's size is 64x64x128, two convs of 128 channels, float32, without padding. On this machine `make test` runs
the first and the last in that size, and `make test-deep` the others. All run with an image of 20x5 pixels, too, and all
channels, as do those on the simulator, where 3x3 ones would take billions of packets each, minutes of scalar code. 20
rows are three slabs, 16 rows of the last output are two: both splits of rows differ in every conv, the last stripe of a
conv is a rest, and a 3x3 conv reads a halo out of the next slab, as in the document's size. One case runs on the
simulator in full.
"""

from itertools import product
from pathlib import Path

import pytest

from hexconv.analyze import cache_usage
from hexconv.run.measure import run_case, runner_of
from hexconv.spec import Case, Chain, Conv2d, Plan, Target
from tests.deep import DEEP, one_in
from tests.lowered import lower_case

SCHEDULES = Path(__file__).parents[2] / "schedules"
FULL, SMALL = (1, 64, 64, 128), (1, 20, 5, 128)
COMBINATIONS = {
    f"{first}x{first} then {second}x{second} under k_split {k} and h_split {h}": (first, second, k, h)
    for first, second, k, h in product((1, 3), (1, 3), (1, 2), (1, 2))
}
ON_HEXAGON = [pytest.param(name, SMALL, "hexagon", marks=pytest.mark.simulator) for name in COMBINATIONS]
IN_FULL = [(name, FULL, "llvm") for name in COMBINATIONS]
EACH = [*((name, SMALL, "llvm") for name in COMBINATIONS), *one_in(15, IN_FULL), *one_in(15, ON_HEXAGON)]


@pytest.mark.parametrize(("name", "size", "target"), EACH)
def test_the_result_is_numpys(name: str, size: tuple[int, int, int, int], target: Target) -> None:
    first, second, k_split, h_split = COMBINATIONS[name]
    convs = tuple(Conv2d(out_channels=128, kernel=(kernel, kernel)) for kernel in (first, second))
    plan = Plan(kernel="plain", k_split=k_split, h_split=h_split)
    _holds(Case("combination", Chain(input=size, conv=convs), plan, target=target), target)


@DEEP
@pytest.mark.simulator
def test_a_documented_case_runs_in_full_on_the_simulator() -> None:
    _holds(Case.load(SCHEDULES / "split-1x1.toml", "hexagon"), "hexagon")


def _holds(case: Case, target: Target) -> None:
    """Cache sizes by both opinions, the numbers, and zeros in the fringe."""
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    verdict = run_case(case, lowered, runner_of(case, target, slots=False)).check
    assert verdict.passed, verdict
    assert verdict.fringe_is_zero
