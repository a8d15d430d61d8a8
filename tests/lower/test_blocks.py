"""Tensors in narrow blocks of channels: results, sizes and work are right, and smaller than in blocks of 32."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import Planned, cache_usage, work_usage
from hexconv.analyze.row_nest import planned_rows
from hexconv.kernel import NestLayouts, channel_blocks, layouts_of
from hexconv.kernel.channel_blocks import chosen_blocks
from hexconv.kernel.layouts import logical
from hexconv.kernel.row_conv import LayoutChoice
from hexconv.kernel.row_layouts import rows_layouts
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.random_case import drawn_plan
from hexconv.sweep.random_chains import Kind, few_channels
from tests.deep import one_in
from tests.draws import LOWERED, RUN
from tests.strategies import SMALL, Shrinking

SAME = Padding(top=1, left=1, bottom=1, right=1)
AWAY = Requantize(multiplier=0x5A7B3C1D, shift=-7, zero_point=3)
EVEN = Requantize(multiplier="per_channel", shift="per_channel", zero_point=9, rounding="even")
SHIFTS = Requantize(multiplier=1 << 30, shift=-9, rounding="even")
THREE = Conv2d(out_channels=12, kernel=(3, 3), padding=SAME, requantize=EVEN, bias=True)
ONE = Conv2d(out_channels=5, requantize=AWAY)
ROLL = Plan(kernel="hvx", halo="roll", order="h_outer")
SIXTEEN = replace(THREE, out_channels=16, filter_zero_point=3)
"""Pixels as lanes don't serve such a zero point of a filter."""
EIGHT = replace(SIXTEEN, out_channels=8)


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
    "lanes are channels, 16 of them and 13, NHWC": (
        replace(chain(21, SIXTEEN, replace(SIXTEEN, out_channels=13), SIXTEEN, channels=16), output_layout="NHWC"),
        replace(ROLL, rows=1),
        (32, 16, 16, 32),
    ),
    "8 and 5 channels, int8, copied while something computes": (
        chain(
            35,
            EIGHT,
            replace(EIGHT, out_channels=5, requantize=SHIFTS),
            replace(EIGHT, requantize=AWAY),
            dtype="int8",
            channels=9,
        ),
        replace(ROLL, rows=2, buffering="double", storage="vtcm"),
        (32, 8, 8, 32),
    ),
    "a half of the second block, every second pixel, tables": (
        chain(
            70,
            replace(SIXTEEN, out_channels=48, activation="table", requantize=AWAY),
            replace(SIXTEEN, kernel=(1, 1), padding=Padding(), out_channels=45),
            replace(SIXTEEN, stride=(2, 2), out_channels=40),
            dtype="int8",
            channels=40,
        ),
        replace(ROLL, k_split=2, threads=2),
        (32, 16, 16, 32),
    ),
    "one block of a step at a time, recomputed": (
        chain(33, replace(SIXTEEN, out_channels=48), replace(SIXTEEN, kernel=(2, 1)), SIXTEEN, channels=6),
        Plan(kernel="hvx", halo="recompute", rows=4, k_split=1, filters="resident"),
        (32, 16, 16, 32),
    ),
    "splats": (
        chain(40, SIXTEEN, replace(EIGHT, kernel=(1, 3)), SIXTEEN, channels=16),
        replace(ROLL, activations="splats", storage="vtcm"),
        (32, 16, 8, 32),
    ),
    "strips that keep columns": (
        chain(40, SIXTEEN, EIGHT, SIXTEEN, channels=16),
        replace(ROLL, w_split=2, column_halo="keep"),
        (32, 16, 8, 32),
    ),
    "strips that recompute columns": (
        chain(40, EIGHT, SIXTEEN, EIGHT, channels=16),
        replace(ROLL, w_split=2, column_halo="recompute"),
        (32, 8, 16, 32),
    ),
    "pixels as lanes make what channels as lanes read": (
        chain(64, replace(THREE, out_channels=24), replace(SIXTEEN, out_channels=48), SIXTEEN, channels=3),
        replace(ROLL, k_split=2),
        (1, 8, 16, 32),
    ),
    "channels as lanes make what pixels as lanes read": (
        chain(70, SIXTEEN, replace(THREE, stride=(1, 2)), ONE, channels=16),
        replace(ROLL, rows=2),
        (32, 16, 4, 32),
    ),
}


def units(case: Case) -> tuple[int, ...]:
    return layouts_of(case.chain, case.settled).channel_units


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(5, CASES))
def test_results_sizes_and_work_are_what_they_should_be(name: str) -> None:
    of_chain, plan, expected = CASES[name]
    case = Case("narrow", of_chain, plan)
    assert units(case) == expected
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    assert run_case(case, lowered, Simulator(slots=False)).check.passed


@st.composite
def drawn(draw: st.DrawFn) -> Case:
    """Cases of few channels, of which some tensor lies in blocks of 4, 8 or 16, whichever is drawn."""
    unit = draw(st.sampled_from((4, 8, 16)))
    source, kind = Shrinking(draw), Kind(draw(st.sampled_from(("uint8", "int8"))), None, "hvx", is_served=True)
    one = next(few_channels(source, kind))
    case = Case("drawn", one, drawn_plan(source, one, "hvx", SMALL))
    assume(unit in units(case))
    return case


@RUN
@given(drawn())
def test_predicted_sizes_bytes_and_products_are_the_counted_ones(case: Case) -> None:
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees


def test_12_channels_take_12_and_no_planes() -> None:
    case = Case("fours", chain(64, THREE, THREE, THREE), ROLL)
    caches = {cache.name: cache for cache in Planned.of(case).caches}
    assert caches["intermediate1"].shape[2:] == (3, 3, 32, 4)
    assert {"planes2", "planes3"}.isdisjoint(caches)
    assert planned_rows(case.chain, case.settled).convs[1].filter_vectors == 3 * 3 * 3


def test_blocks_of_32_would_take_more_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    of_chain = chain(64, THREE, THREE, THREE)

    def row_bytes(layouts: NestLayouts) -> int:
        return sum(LayoutChoice(layout, 0).row_bytes for layout in layouts.activations[1:-1])

    narrow = rows_layouts(of_chain, 1, True, ("hvx",) * 3)
    rows_layouts.cache_clear()
    monkeypatch.setattr(channel_blocks, "_narrow", lambda *_: [])
    wide = rows_layouts(of_chain, 1, True, ("hvx",) * 3)
    rows_layouts.cache_clear()
    assert wide.channel_units == (1, 32, 32, 32)
    assert row_bytes(narrow) < 0.75 * row_bytes(wide)


@pytest.mark.parametrize(
    ("changed", "dtype", "unit"),
    [
        ({"filter_zero_point": 3}, "uint8", 16),
        ({"filter_zero_point": 3, "out_channels": 24}, "uint8", 32),
        ({"out_channels": 32}, "uint8", 32),
        ({}, "int16", 32),
    ],
    ids=["a zero point of the filter", "the same, of more than half a block", "a full block", "int16"],
)
def test_other_tensors_keep_wider_blocks(changed: dict, dtype: Dtype, unit: int) -> None:
    how = Requantize(multiplier=1 << 30, shift=-9)
    first = replace(THREE, requantize=how, bias=False)
    convs = (replace(first, **changed), first)
    zero = 0 if dtype == "int16" else 5
    one = Chain(input=(1, 13, 64, 3), dtype=dtype, filter_dtype="int8", zero_point=zero, conv=convs)
    assert units(Case("wide", one, ROLL))[1] == unit


@given(
    st.lists(st.sampled_from((4, 5, 8, 12, 16, 24, 33, 48, 56)), min_size=2, max_size=4),
    st.sampled_from((9, 21, 40, 70)),
    st.sampled_from((0, 3)),
    st.integers(1, 2),
)
@LOWERED
def test_blocks_are_those_of_the_fewest_packets_then_bytes(
    channels: list[int], columns: int, zero: int, k_split: int
) -> None:
    convs = [replace(THREE, out_channels=out, filter_zero_point=zero) for out in channels]
    one = chain(columns, *convs, channels=16)
    served = [True] * len(convs)
    wide = [LayoutChoice(packed("NHCW4w32c", logical(extents), logical="NHWC"), 32) for extents in tensor_extents(one)]
    ways = product(*[[each, *_narrower(one, tensor, each)] for tensor, each in enumerate(wide)])

    def cost(lies: Sequence[LayoutChoice]) -> tuple[float, int]:
        packets = 0.0
        for index, between in enumerate(pairwise(lies)):
            rows = tensor_extents(one)[index + 1].logical_rows
            source, target = ((each,) for each in between)
            [[row]] = channel_blocks._packets(  # pyright: ignore[reportPrivateUsage]
                one, index, source, target, True, k_split
            )
            packets += rows * row
        return packets, sum(each.row_bytes for each in lies[1:])

    assert cost(chosen_blocks(one, wide, served, k_split)) == pytest.approx(min(map(cost, ways)))


def _narrower(one: Chain, tensor: int, wide: LayoutChoice) -> list[LayoutChoice]:
    """The narrow blocks of an intermediate."""
    narrow = channel_blocks._narrow  # pyright: ignore[reportPrivateUsage]
    return [*narrow(one, tensor, wide.row_bytes)] if 0 < tensor < len(one.conv) else []


def test_a_half_block_takes_half_of_the_memory_and_8_channels_a_quarter() -> None:
    def shape(out_channels: int) -> tuple[int, ...]:
        of_chain = chain(64, replace(SIXTEEN, out_channels=out_channels), SIXTEEN, channels=16)
        return rows_layouts(of_chain, 2, True, ("hvx",) * 2).activations[1].physical_shape[2:]

    assert [shape(channels) for channels in (16, 8, 48)] == [(1, 9, 8, 16), (1, 5, 16, 8), (3, 9, 8, 16)]


def test_stored_rows_hold_all_that_tiles_store() -> None:
    """Tiles of 8 pixels store whole vectors; those of 8 channels reach 8 pixels further than the tile."""
    for columns in range(8, 42):
        for out_channels, pixels in ((16, 8), (8, 16)):
            of_chain = chain(columns, replace(SIXTEEN, out_channels=out_channels), SIXTEEN, channels=16)
            layout = rows_layouts(of_chain, 1, True, ("hvx",) * 2).activations[1]
            first, end = tensor_extents(of_chain)[1].valid_columns
            last = first + (end - first - 1) // 8 * 8
            assert layout.stored_extent("W") >= max(last + pixels, columns + 2)
