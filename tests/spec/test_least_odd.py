"""Multipliers that are stated to be odd: no result lies half way between two, and nothing is done about halves."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.errors import InputError
from hexconv.lower import lower_case
from hexconv.run.fills import fills_of_run
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import filled_tensors
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.narrowing import FixedPoint, narrowing, narrowing_to_halfwords
from hexconv.spec.vectors import check_vectors, odd_parts

HOW = Requantize(multiplier="per_channel", shift=-7, zero_point=9, rounding="even", least_odd=512)


def chain(how: Requantize, dtype: str = "uint8") -> Chain:
    conv = Conv2d(out_channels=64, kernel=(3, 3), requantize=how)
    return Chain(input=(1, 10, 10, 32), dtype=dtype, filter_dtype="int8", conv=(conv,))  # pyright: ignore[reportArgumentType]


@given(st.integers(512, 2**31 - 1), st.integers(0, 22), st.integers(-31, 0), st.integers(-(2**31), 2**31 - 1))
def test_a_result_half_way_between_two_is_cut(odd: int, powers: int, shift: int, total: int) -> None:
    multiplier = (odd | 1) << powers
    assume(multiplier < 2**31)
    result = Fraction(total * multiplier, 2 ** (31 - shift))
    assert result.denominator != 2 or abs(result) > 255


def test_nothing_is_kept_or_done_for_halves_of_8_bits_and_all_for_those_of_16() -> None:
    bytes_, _ = narrowing(HOW, 9)
    halves, _ = narrowing_to_halfwords(replace(HOW, zero_point=0))
    assert isinstance(bytes_, FixedPoint)
    assert isinstance(halves, FixedPoint)
    assert (bytes_.vectors, halves.vectors) == (("multiplier",), ("multiplier", "mask", "half"))


def test_multipliers_that_are_less_odd_are_refused() -> None:
    odd, less = np.full(64, 513 << 20, np.int32), np.full(64, 511 << 20, np.int32)
    check_vectors(chain(HOW), {"multiplier1": odd})
    with pytest.raises(InputError, match="least_odd"):
        check_vectors(chain(HOW), {"multiplier1": np.append(odd[1:], less[:1])})


def test_one_multiplier_needs_no_statement() -> None:
    with pytest.raises(InputError, match="least_odd"):
        Requantize(multiplier=3, least_odd=3)


@given(st.integers(1, 2**31 - 1), st.integers(0, 9))
def test_drawn_multipliers_are_as_odd_as_is_stated(least: int, seed: int) -> None:
    asked = chain(replace(HOW, least_odd=least))
    drawn = filled_tensors(asked, fills_of_run(asked, 0, seed), seed).vectors["multiplier1"]
    assert odd_parts(drawn).min() >= least


@pytest.mark.simulator
def test_what_is_stated_saves_packets_and_changes_no_value() -> None:
    packets = []
    for how in (HOW, replace(HOW, least_odd=None)):
        case = Case("odd", chain(how), Plan(kernel="hvx"))
        run = run_case(case, lower_case(case), Simulator(slots=False))
        assert run.check.passed
        assert run.counts
        packets.append(run.counts.packets)
    assert packets[0] < packets[1]
