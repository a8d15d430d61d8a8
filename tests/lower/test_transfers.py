"""Copies that a DMA would like: no short ones where longer ones would do, and short rows as one descriptor."""

from collections import Counter
from dataclasses import replace
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.lower import lower_case
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from hexconv.spec.knobs import Buffering
from tests.draws import SAME_LOWERED, SAME_RUN
from tests.lower.descriptors import Descriptor, groups_of
from tests.schedule.integer_chains import hvx_cases
from tests.schedule.test_nest import HALVE, ROLLING

LEAST_BYTES = 128
HALO = Padding(top=1, left=1, bottom=1, right=1)


@SAME_LOWERED
@given(hvx_cases())
def test_no_copy_of_any_plan_is_short_where_it_could_be_long(case: Case) -> None:
    """In a group, a run of less than 128 bytes ends where tensor or cache end theirs, and equal runs are one copy."""
    assume(case.plan.buffering == "double")
    for group in groups_of(lower_case(case).module):
        assert all(each.bytes > 0 and each.rows > 0 for each in group)
        assert not [each for each in group if each.bytes < LEAST_BYTES and goes_on(each, group)]
        alone = Counter(each.bytes for each in group if each.bytes < LEAST_BYTES and each.rows == 1)
        assert set(alone.values()) <= {1}, "runs of one length, each a copy of its own"


def goes_on(short: Descriptor, group: list[Descriptor]) -> bool:
    """Whether some run of a group begins where one of a copy ends, in both buffers."""
    begins = {(target, source) for each in group for target, source, _ in each.each_row()}
    return any((target + length, source + length) in begins for target, source, length in short.each_row())


@pytest.mark.parametrize("kernel", ["plain", "hvx"])
def test_rows_of_a_block_are_one_copy_of_two_dimensions(kernel: str) -> None:
    """Images of 12 channels in blocks of 32, or of 16: what lies side by side is a pixel; all are one copy."""
    conv = Conv2d(out_channels=32, requantize=HALVE)
    plan = Plan(kernel=kernel, order="h_outer", buffering="double")  # type: ignore[arg-type]
    case = Case("narrow", Chain(input=(1, 8, 8, 12), dtype="uint8", conv=(conv,)), plan)
    [read] = [group for group in groups_of(lower_case(case).module) if group[0].queue == 0]
    assert {each.bytes for each in read} == {12}
    assert sum(each.rows for each in read) == 64
    assert len(read) == 1


@pytest.mark.simulator
@pytest.mark.parametrize("buffering", ["single", "double"])
def test_padding_beyond_all_rows_that_a_step_reads_stays_in_its_cache(buffering: Buffering) -> None:
    far = Padding(top=30, left=40, bottom=29, right=2)
    conv = Conv2d(out_channels=33, kernel=(3, 3), padding=far, requantize=HALVE)
    plan = replace(ROLLING, k_split=1, halo="recompute", buffering=buffering)
    case = Case("far", Chain(input=(1, 5, 3, 40), dtype="uint8", conv=(conv,)), plan)
    assert run_case(case, lower_case(case), Simulator(slots=False)).check.passed


@pytest.mark.simulator
def test_pixels_of_odd_channels_between_padding_are_copied_by_a_packet_a_byte() -> None:
    """LLVM would keep an address of its own for each of the 29 bytes, and spill: two packets a byte."""
    conv = Conv2d(out_channels=2, kernel=(2, 2), stride=(4, 4), padding=HALO, requantize=HALVE)
    case = Case("odd", Chain(input=(1, 69, 57, 29), dtype="uint8", conv=(conv,)), Plan(kernel="hvx"))
    result = run_case(case, lower_case(case), Simulator(slots=False))
    assert result.check.passed
    assert result.counts
    assert result.counts.packets < 1.25 * prod(case.chain.input)


@SAME_RUN
@given(st.integers(6, 30), st.integers(5, 30), st.integers(33, 150).filter(lambda channels: channels % 32))
def test_whole_blocks_of_an_input_in_blocks_are_copies_of_long_rows(rows: int, columns: int, channels: int) -> None:
    """Each whole block is one copy of whole rows; the last block, stored in part, takes one a row or a column."""
    conv = Conv2d(out_channels=channels, groups=channels, kernel=(3, 3), padding=HALO, requantize=HALVE)
    size = {"input": (1, rows, columns, channels), "dtype": "uint8", "filter_dtype": "int8"}
    chain = Chain(**size, input_layout="NHCW32c", conv=(conv,))
    plan = Plan(kernel="hvx", h_split=-(-rows // 8), buffering="double", storage="vtcm")
    whole, rest = divmod(channels, 32)
    found = [each for group in groups_of(lower_case(Case("blocks", chain, plan)).module) for each in group]
    copies = [each for each in found if each.source[0].startswith("input")]
    assert sum(each.bytes * each.rows for each in copies) == rows * columns * channels
    assert Counter(each.bytes for each in copies if each.bytes > rest) == {columns * 32: min(whole, rows)}
    assert sum(each.bytes == rest for each in copies) == min(rows, columns)
