"""Intermediates of few channels: words in which no channel lies are not multiplied, and nothing else changes."""

from dataclasses import replace

import pytest

from hexconv.analyze import planned_work
from hexconv.analyze.row_nest import planned_rows
from hexconv.kernel.channels import channel_form
from hexconv.kernel.tiles import multiplied_words
from hexconv.lower import lower_case
from hexconv.run.host import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.dtypes import Dtype

HOW = Requantize(multiplier=1 << 30, shift=-9, rounding="even")
CASES: list[tuple[int, Dtype, int, int]] = [
    (12, "uint8", 0, 3),
    (20, "int8", 5, 3),
    (56, "uint8", 7, 1),
    (9, "int16", 0, 2),
]


def chain(channels: int, dtype: Dtype, filter_zero: int, columns: int) -> Chain:
    """The middle conv reads an intermediate of so many channels."""
    how = HOW if dtype == "int16" else replace(HOW, zero_point=3)
    conv = Conv2d(out_channels=channels, kernel=(3, 3), padding=1, requantize=how)  # pyright: ignore[reportArgumentType]
    second = replace(conv, out_channels=40, kernel=(2, columns), bias=True, filter_zero_point=filter_zero)
    zero = 0 if dtype == "int16" else 11
    return Chain(input=(1, 9, 21, 5), dtype=dtype, filter_dtype="int8", zero_point=zero, conv=(conv, second))


@pytest.mark.simulator
@pytest.mark.parametrize(("channels", "dtype", "filter_zero", "columns"), CASES)
def test_results_are_right_and_products_as_many_as_the_closed_form_says(
    channels: int, dtype: Dtype, filter_zero: int, columns: int
) -> None:
    case = Case("few", chain(channels, dtype, filter_zero, columns), Plan(kernel="hvx", k_split=2))
    lowered = lower_case(case)
    assert run_case(case, lowered, Simulator(slots=False)).check.passed
    planned = planned_rows(case.chain, case.settled)
    # Narrow blocks have no pairs of words without a channel.
    first, second = planned.convs
    assert first.units.is_narrow or channel_form(second).multiplied_steps < second.filter_steps
    assert count(lowered).macs == planned_work(case.chain, case.settled).macs


def test_all_words_are_multiplied_where_channels_do_not_lie_side_by_side() -> None:
    assert multiplied_words(channels=40, pixel_words=8, planes=2) == 8
    assert multiplied_words(channels=40, pixel_words=16, planes=1) == 10
