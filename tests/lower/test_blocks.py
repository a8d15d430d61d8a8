"""Tensors of few channels in blocks of 4: results, sizes and work are right, and smaller than in blocks of 32."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hexconv.analyze import cache_usage, work_usage
from hexconv.analyze.rows import planned_rows
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.kernel import Forms, forms_of
from hexconv.kernel.hvx import blocks
from hexconv.kernel.hvx.rows import rows_forms
from hexconv.lower import lower_case
from hexconv.run.count import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.few_channels import few_channels
from hexconv.sweep.plans import drawn_plan
from hexconv.sweep.scope import Kind
from tests.deep import one_in
from tests.strategies import SMALL, Shrinking

SAME = Padding(top=1, left=1, bottom=1, right=1)
AWAY = Requantize(multiplier=0x5A7B3C1D, shift=-7, zero_point=3)
EVEN = Requantize(multiplier="per_channel", shift="per_channel", zero_point=9, rounding="even")
SHIFTS = Requantize(multiplier=1 << 30, shift=-9, rounding="even")
THREE = Conv2d(out_channels=12, kernel=(3, 3), padding=SAME, requantize=EVEN, bias=True)
ONE = Conv2d(out_channels=5, requantize=AWAY)
ROLL = Plan(kernel="hvx", halo="roll", order="h_outer")


def chain(columns: int, *convs: Conv2d, dtype: Dtype = "uint8", filters: Dtype = "int8", channels: int = 3) -> Chain:
    return Chain(input=(1, 13, columns, channels), dtype=dtype, filter_dtype=filters, zero_point=5, conv=convs)


CASES: dict[str, tuple[Chain, Plan, tuple[int, ...]]] = {
    "single rows that stream, NHWC": (
        replace(chain(70, THREE, ONE, replace(THREE, padding=Padding())), output_layout="NHWC"),
        replace(ROLL, rows=1),
        (1, 4, 4, 32),
    ),
    "int8, copied while something computes": (
        chain(97, THREE, replace(THREE, requantize=SHIFTS), THREE, dtype="int8"),
        replace(ROLL, rows=2, buffering="double", storage="vtcm"),
        (1, 4, 4, 32),
    ),
    "tables, every second pixel, dilated": (
        chain(
            130,
            replace(THREE, activation="table", requantize=AWAY),
            replace(THREE, stride=(2, 2), out_channels=7),
            replace(THREE, dilation=(2, 3), padding=Padding(), out_channels=9),
            dtype="int8",
        ),
        replace(ROLL, h_split=1),
        (1, 4, 4, 32),
    ),
    "56 channels in two steps, uint8 filters": (
        chain(64, replace(THREE, out_channels=56), replace(ONE, out_channels=10), filters="uint8", channels=1),
        replace(ROLL, k_split=1, threads=2),
        (32, 4, 32),
    ),
    "2 channels, whose words go on": (
        chain(61, replace(THREE, out_channels=2), replace(THREE, kernel=(2, 5)), THREE),
        replace(ROLL, halo="recompute", rows=4, filters="resident"),
        (1, 4, 4, 32),
    ),
}


def units(case: Case) -> tuple[int, ...]:
    return forms_of(case.chain, case.settled).channel_units


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(5, CASES))
def test_results_sizes_and_work_are_what_they_should_be(name: str) -> None:
    of_chain, plan, expected = CASES[name]
    case = Case("fours", of_chain, plan)
    assert units(case) == expected
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    assert run_case(case, lowered, Simulator(slots=False)).check.passed


@st.composite
def drawn(draw: st.DrawFn) -> Case:
    """Cases of few channels, of which some tensor lies in blocks of 4."""
    source, kind = Shrinking(draw), Kind(draw(st.sampled_from(("uint8", "int8"))), None, "hvx", is_served=True)
    one = next(few_channels(source, kind))
    case = Case("drawn", one, drawn_plan(source, one, "hvx", SMALL))
    assume(min(units(case)) == 4)
    return case


@settings(max_examples=10, deadline=None)
@given(drawn())
def test_predicted_sizes_bytes_and_products_are_the_counted_ones(case: Case) -> None:
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees


def test_12_channels_take_12_and_no_planes() -> None:
    case = Case("fours", chain(64, THREE, THREE, THREE), ROLL)
    caches = {cache.name: cache for cache in rows_footprints(planned_rows(case.chain, case.settled))}
    assert caches["intermediate1"].shape[2:] == (3, 3, 32, 4)
    assert {"planes2", "planes3"}.isdisjoint(caches)
    assert planned_rows(case.chain, case.settled).filter_vectors(1) == 3 * 3 * 3


def test_blocks_of_32_would_take_more_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    of_chain = chain(64, THREE, THREE, THREE)

    def row_bytes(forms: Forms) -> int:
        return sum(fours.Lies(layout, 0).row_bytes for layout in forms.activations[1:-1])

    narrow = rows_forms(of_chain, 1, True, ("hvx",) * 3)
    rows_forms.cache_clear()
    monkeypatch.setattr(fours, "_fours", lambda *_: [])
    wide = rows_forms(of_chain, 1, True, ("hvx",) * 3)
    rows_forms.cache_clear()
    assert wide.channel_units == (1, 32, 32, 32)
    assert row_bytes(narrow) < 0.75 * row_bytes(wide)


@pytest.mark.parametrize(
    ("changed", "dtype"),
    [({"filter_zero_point": 3}, "uint8"), ({"out_channels": 32}, "uint8"), ({}, "int16")],
    ids=["a zero point of the filter", "a full block", "int16"],
)
def test_other_tensors_keep_blocks_of_32(changed: dict, dtype: Dtype) -> None:
    how = Requantize(multiplier=1 << 30, shift=-9)
    first = replace(THREE, requantize=how, bias=False)
    convs = (replace(first, **changed), first)
    zero = 0 if dtype == "int16" else 5
    one = Chain(input=(1, 13, 64, 3), dtype=dtype, filter_dtype="int8", zero_point=zero, conv=convs)
    assert 4 not in units(Case("wide", one, ROLL))
