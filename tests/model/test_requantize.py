"""Scales as TFLite's multiplier and shift, from the words of its definition."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.reference import requantized
from hexconv.model.refused import Refused
from hexconv.model.requantize import requantize

SCALES = st.floats(2**-31, 2**29, allow_nan=False)


@given(SCALES)
def test_a_scale_is_the_nearest_31_bit_fraction_times_a_power_of_two(scale: float) -> None:
    by = requantize(scale, 0)
    assert 2**30 <= by.multiplier < 2**31
    unit = Fraction(2) ** by.shift / 2**31
    assert abs(by.multiplier * unit - Fraction(scale)) <= unit / 2


# A few of TFLite's own: quantization_util_test.cc.
@pytest.mark.parametrize(
    ("scale", "multiplier", "shift"),
    [(0.25, 2**30, -1), (0.5, 2**30, 0), (1 - 2**-33, 2**30, 1), (1.5, 1610612736, 1), (4.0, 2**30, 3)],
)
def test_known_multipliers(scale: float, multiplier: int, shift: int) -> None:
    assert (requantize(scale, 0).multiplier, requantize(scale, 0).shift) == (multiplier, shift)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan"), 2.0**-40])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(Refused, match="scale"):
        requantize(scale, 0)


@given(st.integers(-(2**20), 2**20), st.floats(2**-14, 2**-4), st.integers(-128, 127))
def test_the_stated_difference_from_onnx_is_never_exceeded(total: int, scale: float, zero_point: int) -> None:
    """ONNX rounds the exact quotient once, ties to even: Python's round on fractions does so exactly."""
    onnx = min(max(round(total * Fraction(scale)) + zero_point, -128), 127)
    ours = int(requantized(np.array([total]), requantize(scale, zero_point), "int8")[0])
    assert abs(ours - onnx) <= 1
