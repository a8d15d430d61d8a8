"""Few binary places for products: which sums differ from ONNX Runtime's float32, and when places are stated."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.reference import requantized
from hexconv.model.multipliers import FLOAT32_ERROR, PLACES, near_halves, requantize
from hexconv.spec import Requantize
from hexconv.spec.requantize import FRACTION_BITS
from tests.model.answers import saved
from tests.model.quantised import Quantised

NEXT_TO_HALVES, FAR = 3 / 2462 * (1 - 2e-8), 0.0011891
"""A scale next to a fraction of small numbers, and one that is next to none."""


@st.composite
def scales(draw: st.DrawFn) -> Requantize:
    """Float32 scales, some of them next to a fraction of small numbers."""
    scale = draw(st.integers(1, 7)) / draw(st.integers(3, 2500)) * (1 + draw(st.sampled_from([0.0, 1e-7, 3e-3])))
    clamp = draw(st.sampled_from([None, None, (20, 200)]))
    return requantize(np.array([scale], np.float32), draw(st.sampled_from([0, 3, 109])), clamp).how


def of_all_sums(by: Requantize, codes: tuple[int, int]) -> int:
    """Look at every sum whose result may be uncut."""
    assert isinstance(by.multiplier, int)
    assert isinstance(by.shift, int)
    scale = by.multiplier * 2.0 ** (by.shift - FRACTION_BITS)
    sums = np.arange(-int(300 / scale), int(300 / scale) + 1)
    theirs = np.clip(np.rint(sums.astype(np.float32) * np.float32(scale)) + by.zero_point, *codes)
    return int(np.count_nonzero(requantized(sums, by, "uint8") != theirs))


@given(scales(), st.one_of(st.none(), st.sampled_from(PLACES)))
def test_few_sums_are_looked_at_and_all_that_differ_are_found(by: Requantize, places: int | None) -> None:
    assert isinstance(by.shift, int)
    if places and places + by.shift >= 0:
        by = replace(by, fraction_bits=places)
    codes = by.codes(0, 255)
    within = 2.0 ** -(by.fraction_bits + 1) if by.fraction_bits else FLOAT32_ERROR
    assert near_halves(by, np.array([by.multiplier]), codes, within).apart(by) == of_all_sums(by, codes)


def test_channels_are_counted_together() -> None:
    by, multipliers = requantize(np.array([NEXT_TO_HALVES], np.float32), 109).how, np.array([1339778560, 1 << 30])
    near = near_halves(by, multipliers, (0, 255), FLOAT32_ERROR)
    assert near.apart(by) == 43 + 0
    assert near.uncut == pytest.approx(256 * 2.0**40 * (1 / 1339778560 + 1 / 2**30))


def stated(output_scale: float, tmp_path, dtype: str = "uint8", channels: int = 16) -> Requantize | None:
    """How the only conv of an imported model is requantised, whose filter and input have a scale of 1."""
    net = Quantised("places", (1, channels, 9, 9), dtype)
    filter = net.constant(net.integers((8, channels, 3, 3), "int8"))
    ends = [net.scale(1.0), net.zero(7), filter, net.scale(1.0), net.constant(np.zeros((), np.int8))]
    model = net.model(net.node("QLinearConv", ["image", *ends, net.scale(output_scale), net.zero(100)]))
    [case] = saved(model, tmp_path).cases
    return case.chain.conv[0].requantize


def test_places_are_stated_where_many_sums_would_differ_and_only_there(tmp_path) -> None:
    found = stated(1 / NEXT_TO_HALVES, tmp_path)
    assert found
    assert found.fraction_bits == 11
    assert of_all_sums(found, (0, 255)) == 0
    assert of_all_sums(replace(found, fraction_bits=None), (0, 255)) == 43
    other = stated(1 / FAR, tmp_path)
    assert other
    assert other.fraction_bits is None


def test_places_that_a_lifted_sum_has_no_room_for_are_not_stated(tmp_path) -> None:
    found = stated(1 / NEXT_TO_HALVES, tmp_path, channels=2**11)
    assert found
    assert found.fraction_bits is None
