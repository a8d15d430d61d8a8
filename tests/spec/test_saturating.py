"""Sums of int16 that saturate: HVX's way comes to what is defined, and limits from weights change no result."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hexconv.compute.reference import reference
from hexconv.spec import Chain, Conv2d, Requantize
from hexconv.spec.case import with_limits
from hexconv.spec.kernel_choice import refusals
from hexconv.spec.kernels import what_hvx_wants
from hexconv.spec.ranges import BYTE, RAISED, raised, sums_refusal
from hexconv.spec.vectors import Array

INT32 = (-(2**31), 2**31 - 1)
ENDS = st.sampled_from([-(2**15), -1, 0, 1, 255, 256, 2**15 - 1])
LONG = 4608


@dataclass(frozen=True)
class Window:
    """Activations of int16 and weights of int8, each repeated some times, and what is added to their sum."""

    activations: Array
    weights: Array
    times: int
    zero_point: int
    added: int


@st.composite
def windows(draw: st.DrawFn) -> Window:
    size = draw(st.integers(1, 12))
    activation = st.one_of(ENDS, st.integers(-(2**15), 2**15 - 1))
    activations = draw(arrays(np.int64, size, elements=activation))
    weights = draw(arrays(np.int64, size, elements=st.one_of(st.sampled_from([-128, 127]), st.integers(-128, 127))))
    added = draw(st.integers(-(2**20), 2**20))
    return Window(activations, weights, draw(st.integers(1, 9000 // size)), draw(st.integers(-128, 127)), added)


@given(windows(), st.one_of(st.sampled_from([2**28, 2**29, 2**30]), st.integers(1, 2**30)), st.booleans())
def test_sums_of_high_bytes_held_and_raised_saturate_as_defined(of: Window, limit: int, ahead: bool) -> None:
    apart, zero = of.weights - of.zero_point, of.zero_point + 128
    l1, products = int(np.abs(apart).sum()) * of.times, len(apart) * of.times
    held = raised(limit, products, max(l1, 1), zero, abs(of.added))
    assume(held.most <= INT32[1])
    unsigned, high, low = of.weights + 128, of.activations >> 8, of.activations & 255
    window = of.activations.sum() * of.times
    of_high, of_low = (window >> 8, window & 255) if ahead else (high.sum() * of.times, low.sum() * of.times)
    upper = (high * unsigned).sum() * of.times - zero * of_high
    lower = (low * unsigned).sum() * of.times - zero * of_low + of.added
    total = (of.activations * apart).sum() * of.times + of.added
    assert total == RAISED * upper + lower
    assert INT32[0] <= upper <= INT32[1]
    assert abs(lower) <= held.reach
    whole = RAISED * np.clip(upper, -held.high, held.high) + lower
    assert abs(whole) <= held.most
    assert np.clip(whole, -limit, limit) == np.clip(total, -limit, limit)


def test_the_reach_is_reached() -> None:
    assert raised(2**29, 100, 100 * 127, 128, 0).reach == BYTE * BYTE * 100


def long_chain(how: Requantize, channels: int = LONG, **more: object) -> Chain:
    conv = Conv2d(out_channels=2, requantize=how, **more)  # pyright: ignore[reportArgumentType]
    return Chain(input=(1, 1, 2, channels), dtype="int16", filter_dtype="int8", conv=(conv,))


@example((2**15 + 1) << 15, -14, "even", None, 0)  # a limit of 2**30 that just doesn't show
@given(
    st.integers(2**30, 2**31 - 1),
    st.one_of(st.integers(-16, -13), st.integers(-22, 0)),  # with -15 a limit of 2**30 begins to show
    st.sampled_from(["even", "away", "up"]),
    st.sampled_from([None, (-(2**15), 100), (0, 2**15 - 1)]),
    st.integers(0, 2**32 - 1),
)
def test_a_limit_from_weights_changes_no_result(
    multiplier: int, shift: int, rounding: str, clamp: tuple[int, int] | None, seed: int
) -> None:
    how = Requantize(multiplier=multiplier, shift=shift, rounding=rounding, clamp=clamp)  # pyright: ignore[reportArgumentType]
    random = np.random.default_rng(seed)
    filter = random.integers(-128, 127, (2, LONG, 1, 1), np.int8, endpoint=True)
    found = with_limits(long_chain(how), [filter], [None])
    assert sums_refusal(long_chain(how), "plain")
    scale = Fraction(multiplier, 2 ** (31 - shift))
    limit = found.conv[0].requantize and found.conv[0].requantize.saturates_at
    if limit is None:
        assert scale * 2**30 < 2**15 + 1  # a code beyond the farther end
        return
    assert not sums_refusal(found, "plain")
    toward = np.sign(filter[0, :, 0, 0].astype(np.int16))  # the longest sum of the first channel, of either sign
    image = np.stack([toward * (2**15 - 1), random.integers(-(2**15), 2**15 - 1, LONG)]).astype(np.int16)
    image = image.reshape(1, 1, 2, LONG)
    sums = np.einsum("xi,oi->xo", image[0, 0].astype(object), filter[:, :, 0, 0].astype(object))
    low, high = how.codes(-(2**15), 2**15 - 1)
    exact = [[min(max(scaled(int(total), how), low), high) for total in row] for row in sums]
    assert reference(found, image, [filter], [None])[0, 0].tolist() == exact


def scaled(total: int, how: Requantize) -> int:
    """The scaled sum in integers of any size."""
    assert isinstance(how.multiplier, int)
    assert isinstance(how.shift, int)
    if how.rounding == "even":
        return round(Fraction(total * how.multiplier, 2 ** (31 - how.shift)))
    upper, bits = (total * how.multiplier + 2**30) >> 31, -how.shift
    return (upper + ((1 << bits) >> 1) - (how.rounding == "away" and bits > 0 and upper < 0)) >> bits


def test_a_channel_whose_sums_end_before_the_limit_needs_no_scale() -> None:
    how = Requantize(multiplier="per_channel", shift=-8, rounding="even")
    filter = np.ones((2, LONG, 1, 1), np.int8)
    filter[0] = 127
    for little, is_taken in ((1, True), (127, False)):
        filter[1] = little
        vectors = {"multiplier1": np.array([2**30, 3], np.int32)}
        found = with_limits(long_chain(how), [filter], [None], vectors)
        assert (found.conv[0].requantize != how) == is_taken


def test_what_int32_holds_is_left_as_it_is() -> None:
    how = Requantize(multiplier=2**30, shift=-14)
    found = with_limits(long_chain(how), [np.ones((2, LONG, 1, 1), np.int8)], [None])
    assert found.conv[0].requantize == how


@given(
    st.sampled_from(["uint8", "int8"]),
    st.integers(2**30, 2**31 - 1),
    st.one_of(st.integers(-24, -20), st.integers(-31, 0)),  # with -23 an int32 of sums comes to 8 bits of codes
    st.sampled_from(["even", "away", "up"]),
    st.sampled_from([None, (10, 120)]),
    st.integers(-5, 5),
    st.integers(0, 2**32 - 1),
)
def test_a_limit_from_biases_changes_no_result_of_8_bits(
    dtype: Literal["uint8", "int8"],
    multiplier: int,
    shift: int,
    rounding: Literal["even", "away", "up"],
    clamp: tuple[int, int] | None,
    zero_point: int,
    seed: int,
) -> None:
    """Biases at either end of int32, as quantisers leave them, and sums that go beyond it, or nearly do."""
    low, high = (0, 255) if dtype == "uint8" else (-128, 127)
    how = Requantize(
        multiplier=multiplier, shift=shift, rounding=rounding, clamp=clamp, zero_point=max(zero_point, low)
    )
    random = np.random.default_rng(seed)
    chain = Chain(
        input=(1, 1, 2, 64),
        dtype=dtype,
        filter_dtype="int8",
        zero_point=3,
        conv=(Conv2d(out_channels=2, bias=True, requantize=how),),
    )
    filter = random.integers(-128, 127, (2, 64, 1, 1), np.int8, endpoint=True)
    bias = np.array([2**31 - 1 - random.integers(0, 2**21), random.integers(0, 2**21) - 2**31], np.int32)
    found = with_limits(chain, [filter], [bias])
    limit = found.conv[0].requantize and found.conv[0].requantize.saturates_at
    least, most = how.codes(low, high)
    toward = np.sign(filter[0, :, 0, 0].astype(np.int64))
    image = np.stack([np.where(toward > 0, high, low), np.where(toward > 0, low, high)]).reshape(1, 1, 2, 64)
    sums = (image[0, 0].astype(object) - 3) @ filter[:, :, 0, 0].T.astype(object) + bias.astype(object)
    if max(abs(int(total)) for total in sums.ravel()) > 2**31 - 1 and limit is None:
        reached = Fraction(multiplier * (2**31 - 1), 2 ** (31 - shift))
        assert reached < max(most - how.zero_point, how.zero_point - least) + 1
    exact = [[min(max(scaled(int(total), how) + how.zero_point, least), most) for total in row] for row in sums]
    assert reference(found, image.astype(dtype), [filter], [bias])[0, 0].tolist() == exact


def test_hvx_says_why_it_leaves_filters_of_int16_and_sums_that_are_too_long_to_plain() -> None:
    chain = long_chain(Requantize(multiplier=2**30, shift=-14, saturates_at=2**29))
    wide = replace(chain, filter_dtype="int16")
    longer = long_chain(Requantize(multiplier=2**30, shift=-14, saturates_at=2**29), 40_000)
    assert not sums_refusal(chain, "hvx")
    assert "the filter of chain.conv[0] is int16" in refused_by_hvx(wide)
    assert what_hvx_wants(wide, 0) == 'hvx serves it with filter_dtype = "int8"'
    assert not refusals(replace(wide, filter_dtype="int8"), "hvx")[0]
    assert "(raised)" in refused_by_hvx(longer)


def refused_by_hvx(chain: Chain) -> str:
    """Why hvx doesn't serve a chain that plain serves."""
    assert not sums_refusal(chain, "plain")
    return refusals(chain, "hvx")[0]
