"""Float32 scales as multipliers and shifts: without loss, for one channel or many."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.reference import requantized
from hexconv.model.multipliers import Scaled, requantize
from hexconv.model.refused import Refused
from hexconv.spec.vectors import odd_parts

SCALES = st.floats(2**-31, 2**29, allow_nan=False, width=32)
BELOW_ONE = st.floats(2**-40, 1, exclude_max=True, width=32)


def exact(scaled: Scaled, channel: int = 0) -> Fraction:
    """The scale of a channel."""
    stated = {"multiplier": scaled.how.multiplier, "shift": scaled.how.shift}
    one = {what: int(scaled.vectors[what][channel]) if what in scaled.vectors else stated[what] for what in stated}
    return Fraction(one["multiplier"]) * Fraction(2) ** (int(one["shift"]) - 31)


@given(SCALES)
def test_one_scale_is_held_exactly(scale: float) -> None:
    assert exact(requantize(np.array([scale], np.float32), 0)) == Fraction(scale)


@given(st.lists(BELOW_ONE, min_size=2, max_size=9))
def test_a_scale_a_channel_is_held_exactly_or_makes_nothing_of_any_sum(scales: list[float]) -> None:
    found = requantize(np.array(scales, np.float32), 0)
    for channel, scale in enumerate(scales):
        assert exact(found, channel) == Fraction(scale) or scale < 2**-32


@given(st.lists(BELOW_ONE, min_size=2, max_size=9))
def test_a_case_states_how_odd_its_multipliers_are(scales: list[float]) -> None:
    found = requantize(np.array(scales, np.float32), 0)
    assert found.how.least_odd == odd_parts(found.vectors["multiplier"]).min()


@given(st.lists(st.floats(2**-16, 2**-10, width=32), min_size=2, max_size=9), st.integers(-(2**20), 2**20))
def test_outputs_are_the_nearest_to_the_exact_product(scales: list[float], total: int) -> None:
    found = requantize(np.array(scales, np.float32), 5)
    sums = np.full(len(scales), total)
    expected = [min(max(round(total * Fraction(scale)) + 5, -128), 127) for scale in scales]
    assert requantized(sums, found.how, "int8", found.vectors).tolist() == expected


def test_one_shift_serves_scales_within_a_factor_of_128() -> None:
    near, far = (np.array([2.0**-9, 1.5 * 2.0**-least], np.float32) for least in (15, 40))
    assert requantize(near, 0).how.shift == -8
    assert requantize(far, 0).how.shift == "per_channel"


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(Refused, match="scale"):
        requantize(np.array([scale, 0.5], np.float32), 0)


def test_scales_that_nothing_holds_together_are_refused() -> None:
    with pytest.raises(Refused, match="128th"):
        requantize(np.array([3.0, 1e-7], np.float32), 0)


@given(st.lists(st.tuples(st.floats(2**-30, 2**5, width=32), st.integers(0, 2**24)), min_size=2, max_size=9))
def test_sums_within_reach_have_the_nearest_result_however_far_scales_are_apart(drawn: list[tuple[float, int]]) -> None:
    scales, reach = [scale for scale, _ in drawn], np.array([most for _, most in drawn])
    try:
        found = requantize(np.array(scales, np.float32), 5, reach=lambda: reach)
    except Refused:
        lost = [scale < max(scales) / 128 for scale in scales]
        assert any(far and most * Fraction(scale) * 2 > 0.5 for far, (scale, most) in zip(lost, drawn, strict=True))
        return
    for sums in (reach, -reach, reach // 3):
        expected = [min(max(round(int(t) * Fraction(s)) + 5, -128), 127) for t, s in zip(sums, scales, strict=True)]
        assert requantized(sums, found.how, "int8", found.vectors).tolist() == expected


def test_a_channel_whose_sums_come_to_no_output_goes_with_any_scale() -> None:
    scales, reach = np.array([1.7, 1e-8], np.float32), np.array([10**6, 10**6])
    found = requantize(scales, 3, reach=lambda: reach)
    assert (found.how.shift, found.vectors["multiplier"][1] % 2) == (1, 1)
    assert requantized(np.array([100, 10**6]), found.how, "int16", found.vectors).tolist() == [173, 3]
    with pytest.raises(Refused, match="no sum comes to half"):
        requantize(scales, 3, reach=lambda: 100 * reach)
