"""HVX kernels in the planned nest: exact under every knob, with the caches, bytes and products that were predicted."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import cache_usage, needed_macs, vtcm_fit, work_usage
from hexconv.errors import RunFailed
from hexconv.lower import Lowered, annotated_tir, lower_case
from hexconv.run.copy_engine import MOMENTS, Copies
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.schedule import stream
from hexconv.schedule.stream import Share
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from tests.deep import one_in
from tests.draws import SAME_RUN
from tests.schedule.integer_chains import hvx_cases

HALVE = Requantize(multiplier=131072, shift=-4)


@pytest.mark.simulator
@SAME_RUN
@given(hvx_cases(), st.sampled_from(MOMENTS), st.integers(0, 1000))
def test_any_plan_is_exact_whenever_its_copies_happen(case: Case, moment: str, seed: int) -> None:
    simulator = Simulator(copies=Copies(moment, seed), slots=False)  # type: ignore[arg-type]
    assert run_case(case, lower_case(case), simulator).check.passed


@SAME_RUN
@given(hvx_cases())
def test_caches_bytes_and_products_of_any_plan_are_predicted(case: Case) -> None:
    """The sizes are TVM's: its compaction has seen the chain's own loops, and no kernel."""
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees


@SAME_RUN
@given(hvx_cases())
def test_what_is_printed_parses_back(case: Case) -> None:
    lowered = lower_case(case)
    tvm.ir.assert_structural_equal(tvm.script.from_source(annotated_tir(case, lowered, "")), lowered.module)


SMALL = Chain(
    input=(1, 26, 10, 40),
    dtype="uint8",
    conv=(
        Conv2d(out_channels=70, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=HALVE),
        Conv2d(out_channels=70, kernel=(3, 1), requantize=HALVE),
    ),
)
ROLLING = Plan(kernel="hvx", k_split=2, order="h_outer", halo="roll", buffering="double", storage="vtcm")


def is_right(case: Case, lowered: Lowered) -> bool:
    """Whether the result is numpy's, early and late, and every promise about copies was kept."""
    try:
        runs = [run_case(case, lowered, Simulator(copies=Copies(moment), slots=False)) for moment in ("early", "late")]
    except RunFailed:
        return False
    return all(run.check.passed for run in runs)


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(2, ["input_cache", "intermediate1"]))
def test_a_ring_one_row_too_short_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("small", SMALL, replace(ROLLING, buffering="single"))
    assert is_right(case, lower_case(case))

    def shorter(shares: Sequence[Share]) -> dict[str, int]:
        return {one.of.buffer: one.ring_rows - one.of.buffer.startswith(name) for one in shares}

    monkeypatch.setattr(stream, "rings_of", shorter)
    assert not is_right(case, lower_case(case))


B = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(Conv2d(out_channels=128, kernel=(3, 3), requantize=HALVE),) * 2)
A = replace(B, conv=(Conv2d(out_channels=128, requantize=HALVE),) * 2)
LARGE = Conv2d(out_channels=512, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=HALVE)
C = Chain(input=(1, 14, 14, 512), dtype="uint8", conv=(LARGE, LARGE))
FLOORS = {
    ("B", "double"): {1: 243, 2: 244, 4: 249},
    ("B", "single"): {1: 239, 2: 242, 4: 247},
    ("A", "double"): {1: 215, 2: 223, 4: 242},
    ("A", "single"): {1: 209, 2: 218, 4: 241},
}
"""The least multiply-accumulates per packet of a chain, by its buffering and by `k_split`."""
DENSE = {
    f"{name}, {buffering}, k_split {k_split}, h_split {h_split}": (
        {"A": A, "B": B}[name],
        replace(ROLLING, k_split=k_split, h_split=h_split, buffering=buffering),
        least,
    )
    for (name, buffering), floors in FLOORS.items()
    for k_split, least in floors.items()
    for h_split in (1, 2)
}
DENSE["C, double, k_split 1, h_split 2"] = (C, replace(ROLLING, k_split=1, h_split=2), 243)


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(9, DENSE))
def test_planned_kernels_are_dense(name: str) -> None:
    """Needed multiply-accumulates per packet; the caches take of VTCM what was predicted."""
    chain, plan, least = DENSE[name]
    case = Case("dense", chain, plan)
    run = run_case(case, lower_case(case), Simulator(slots=False))
    assert run.check.passed
    assert run.vtcm_bytes == vtcm_fit(chain, plan).demand_bytes
    assert run.counts
    assert needed_macs(chain) / run.counts.packets >= least
