"""Convs of few output channels with pixels as lanes: right, in fewer packets, and as the closed forms have them."""

from dataclasses import replace

import pytest

from hexconv.analyze import work_usage
from hexconv.analyze.row_nest import planned_rows
from hexconv.kernel.pixels import PixelForm, PixelLanes
from hexconv.lower import lower_case
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import Dtype
from tests.deep import one_in

FIXED = Requantize(multiplier=0x5A7B3C1D, shift=-7, zero_point=3)
EVEN = Requantize(multiplier="per_channel", shift="per_channel", zero_point=9, rounding="even")
SHIFTS = Requantize(multiplier=1 << 30, shift=-9, rounding="even")
SAME = Padding(top=1, left=1, bottom=1, right=1)
THREE = Conv2d(out_channels=12, kernel=(3, 3), padding=SAME, requantize=EVEN, bias=True)
PLAN = Plan(kernel="hvx", halo="roll", order="h_outer")


def chain(columns: int, dtype: Dtype, *convs: Conv2d, channels: int = 40, filters: Dtype = "int8") -> Chain:
    return Chain(input=(1, 11, columns, channels), dtype=dtype, filter_dtype=filters, zero_point=5, conv=convs)


CASES = {
    "12 of 12 channels": (chain(37, "uint8", THREE, THREE), PLAN),
    "int8, no multiple of 4, many columns": (
        chain(150, "int8", replace(THREE, out_channels=64), replace(THREE, out_channels=5, bias=False)),
        replace(PLAN, storage="vtcm", k_split=2),
    ),
    "stride of rows, dilated columns, a table": (
        chain(
            70,
            "uint8",
            replace(THREE, out_channels=96, requantize=FIXED),
            replace(THREE, stride=(2, 1), dilation=(1, 3), requantize=SHIFTS, activation="table", out_channels=7),
            filters="uint8",
        ),
        replace(PLAN, k_split=3, filters="resident"),
    ),
    "a dilated window of all channels in one vector": (
        chain(
            33,
            "uint8",
            replace(THREE, out_channels=128, requantize=SHIFTS),
            replace(THREE, dilation=(2, 1), requantize=FIXED, out_channels=3),
        ),
        replace(PLAN, k_split=4, buffering="double", activations="splats", storage="vtcm"),
    ),
    "1 channel, to two blocks together, and every second pixel": (
        chain(
            71,
            "int8",
            replace(THREE, kernel=(5, 5), out_channels=56),
            replace(THREE, kernel=(3, 2), stride=(1, 2), out_channels=9),
            channels=1,
        ),
        replace(PLAN, k_split=2, filters="resident"),
    ),
    "products of few places, one multiplier and one a channel": (
        chain(
            45,
            "uint8",
            replace(THREE, requantize=replace(EVEN, shift=-8, fraction_bits=12)),
            replace(THREE, requantize=Requantize(multiplier=1339778560, shift=-9, rounding="even", fraction_bits=11)),
        ),
        PLAN,
    ),
    "3 channels, every second pixel": (
        chain(91, "uint8", replace(THREE, kernel=(7, 7), stride=(2, 2), out_channels=40), THREE, channels=3),
        replace(PLAN, storage="filters"),
    ),
    "2 channels": (
        chain(60, "uint8", replace(THREE, kernel=(2, 5), out_channels=11), THREE, channels=2, filters="uint8"),
        replace(PLAN, threads=2),
    ),
    "the input, in rows of no whole vectors": (
        chain(45, "uint8", replace(THREE, kernel=(1, 5)), replace(THREE, out_channels=24), channels=14),
        replace(PLAN, halo="recompute", storage="filters+output"),
    ),
}


def lanes(case: Case, index: int) -> PixelLanes | None:
    form = planned_rows(case.chain, case.settled).convs[index].form
    return form.row if isinstance(form, PixelForm) else None


@pytest.mark.simulator
@pytest.mark.parametrize("name", one_in(8, CASES))
def test_results_sizes_and_work_are_what_they_should_be(name: str) -> None:
    case = Case("pixels", *CASES[name])
    assert lanes(case, 1)
    assert lanes(case, 0) or case.chain.input[3] > 4
    lowered = lower_case(case)
    work = work_usage(case, count(lowered))
    assert work.agrees, work
    assert run_case(case, lowered, Simulator(slots=False)).check.passed


def test_words_of_neighbouring_pixels_are_multiplied_as_they_lie() -> None:
    up = replace(THREE, kernel=(1, 1), padding=Padding(), requantize=replace(FIXED, rounding="up"), out_channels=3)
    found = lanes(Case("pixels", chain(216, "uint8", up, up, channels=4), PLAN), 1)
    assert found
    assert found.planes.source.is_of_words
    assert found.planes.is_direct


@pytest.mark.simulator
def test_few_channels_take_fewer_packets_than_as_many_as_fill_a_vector() -> None:
    few, full = (
        Case("few", chain(64, "uint8", replace(THREE, out_channels=out), channels=16), PLAN) for out in (12, 32)
    )
    assert lanes(few, 0)
    assert not lanes(full, 0)
    runs = [run_case(case, lower_case(case), Simulator(slots=False)) for case in (few, full)]
    packets = [run.counts.packets for run in runs if run.counts]
    assert packets[0] < 0.6 * packets[1]


@pytest.mark.parametrize(
    "changed",
    [{"stride": (1, 3)}, {"filter_zero_point": 3}, {"requantize": None, "bias": False}],
    ids=["windows far apart", "a zero point of the filter", "sums that leave"],
)
def test_what_pixels_do_not_serve_has_channels_as_lanes(changed: dict) -> None:
    assert lanes(Case("few", chain(64, "uint8", THREE, replace(THREE, **changed)), PLAN), 1) is None
