"""The parts of convs that scalar code computes: laws that tie them to its work, and what dead lanes save."""

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze.row_grid import nest_parts, rows_of_plan
from hexconv.kernel.scalar import SCALAR_PARTS, ScalarForm
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.requantize import Rounding

LEFT = Requantize(multiplier=0x5A7B3C1D, shift=1)
"""A shift to the left, which HVX kernels don't do."""


def chain_of(channels: int, groups: int = 1, inputs: int = 16, how: Requantize = LEFT) -> Chain:
    conv = Conv2d(out_channels=channels, kernel=(3, 3), groups=groups, padding=Padding(left=1), requantize=how)
    behind = Conv2d(out_channels=32, requantize=Requantize(multiplier=1 << 30, shift=-6))
    return Chain(input=(1, 14, 14, inputs), dtype="uint8", conv=(conv, behind))


@given(st.integers(1, 70), st.integers(1, 3))
def test_parts_of_scalar_code_are_its_work(channels: int, k_split: int) -> None:
    axes = rows_of_plan(chain_of(channels), Plan(kernel="hvx", order="h_outer", k_split=k_split))
    planned = axes.one
    assert planned.kernels == ("plain", "hvx")
    form = planned.convs[0].form
    assert isinstance(form, ScalarForm)
    parts, work, pixels = nest_parts(axes), form.work, 12 * 13
    dead_pairs = (8 - channels) // 2 if channels < 8 else 0
    assert parts["word"] * 8 == pixels * 8 * (work.words * (4 - dead_pairs) / 4 + work.window_words) + work.filter_macs
    assert parts["scalar_run"] == pixels * work.runs
    assert parts["pixel"] == pixels
    assert parts["element"] == pixels * (channels if channels <= 8 else work.lanes)
    assert parts["lane_group"] * 8 == pixels * work.lanes
    stored = planned.convs[0].target_columns * (axes.made(1)[0] + axes.made(1)[1]).item() * -(-channels // 32) * 32
    assert parts["scalar_fill"] == stored - pixels * work.lanes


@pytest.mark.parametrize(("channels", "k_split", "ragged", "unsure"), [(8, 1, 0, 0), (38, 2, 40, 0), (38, 1, 40, 40)])
def test_the_last_channel_is_looked_for_where_groups_have_fewer(
    channels: int, k_split: int, ragged: int, unsure: int
) -> None:
    parts = nest_parts(rows_of_plan(chain_of(channels), Plan(kernel="hvx", order="h_outer", k_split=k_split)))
    assert (parts["ragged"], parts["unsure"]) == (ragged * 12 * 13, unsure * 12 * 13)


@pytest.mark.parametrize(("rounding", "even"), [("even", 1), ("away", 0), ("up", 0)])
def test_elements_tell_how_they_are_rounded(rounding: Rounding, even: int) -> None:
    parts = nest_parts(rows_of_plan(chain_of(16, how=replace(LEFT, rounding=rounding)), Plan(kernel="hvx")))
    assert parts["scaled_even"] == even * parts["scaled"] == even * parts["element"]


@pytest.mark.parametrize(("activation", "looked_up"), [("table", 1), ("none", 0)])
def test_elements_are_looked_up_where_there_is_a_table(activation: Literal["table", "none"], looked_up: int) -> None:
    chain = chain_of(16)
    convs = (replace(chain.conv[0], activation=activation), chain.conv[1])
    parts = nest_parts(rows_of_plan(replace(chain, conv=convs), Plan(kernel="hvx")))
    assert parts["looked_up"] == looked_up * parts["element"]


def test_a_depthwise_conv_has_products() -> None:
    parts = nest_parts(rows_of_plan(chain_of(16, groups=16), Plan(kernel="hvx")))
    assert parts["product"] == 12 * 13 * 16 * 9
    assert parts["word"] == parts["scalar_run"] == 0 < parts["tap_run"]


def test_hvx_kernels_have_no_parts_of_scalar_code() -> None:
    parts = nest_parts(rows_of_plan(chain_of(16, how=replace(LEFT, shift=-7)), Plan(kernel="hvx")))
    assert not any(parts[name] for name in SCALAR_PARTS)
