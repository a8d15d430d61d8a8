"""The reference against answers of other making: SciPy's convolution, TFLite's requantisation from its definition."""

from dataclasses import replace
from fractions import Fraction
from math import copysign, erfc, exp, floor, pi, sqrt, tanh

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.signal import convolve2d

from hexconv.compute import reference
from hexconv.compute.reference import convolution, requantized
from hexconv.run.tensors import random_tensors
from hexconv.spec import Chain, Conv2d, Requantize
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.requantize import Rounding
from tests.draws import LOWERED
from tests.strategies import chains, convs_alone

FEW = 5
INT32 = st.integers(-(2**31), 2**31 - 1)


def by_scipy(conv: Conv2d, image: np.ndarray, filter: np.ndarray, zero_point: int) -> np.ndarray:
    """One plane at a time: pad it, dilate the filter, convolve, take every stride-th output."""
    pad, (sh, sw), (dh, dw) = conv.padding, conv.stride, conv.dilation
    images = np.moveaxis(image.astype(np.float64) - zero_point, 3, 1)
    images = np.pad(images, ((0, 0), (0, 0), (pad.top, pad.bottom), (pad.left, pad.right)))
    dilated = np.zeros((*filter.shape[:2], *conv.reach))
    dilated[:, :, ::dh, ::dw] = filter.astype(np.float64) - conv.filter_zero_point
    turned = dilated[:, :, ::-1, ::-1]  # a convolution turns the filter round; a conv2d doesn't
    inputs, per_group = turned.shape[1], len(turned) // conv.groups
    outputs = [
        [
            sum(convolve2d(planes[k // per_group * inputs + c], taps[c], "valid") for c in range(inputs))
            for k, taps in enumerate(turned)
        ]
        for planes in images
    ]
    return np.moveaxis(np.array(outputs), 1, 3)[:, ::sh, ::sw]


@LOWERED
@given(chains(channels=FEW).filter(convs_alone))
def test_a_conv_is_scipys(chain: Chain) -> None:
    tensors = random_tensors(chain)
    expected = by_scipy(chain.conv[0], tensors.image, tensors.filters[0], chain.zero_point)
    found = convolution(chain.conv[0], tensors.image, tensors.filters[0], chain.zero_point)
    assert found.shape[1:3] == chain.shapes[1][1:3]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def by_words(conv: Conv2d, x: float, slope: float) -> float:
    """An activation of one number, by other words than the reference's where there are any."""
    line = {"hardsigmoid": (conv.slope, conv.offset), "hardswish": (1 / 6, 1 / 2)}.get(conv.activation, (0.0, 0.0))
    held = min(max(line[0] * x + line[1], 0), 1)
    words = {
        "none": x,
        "relu": x if x > 0 else 0,
        "relu6": min(max(x, 0), 6),
        "leaky_relu": max(x, 0) + slope * min(x, 0),
        "prelu": max(x, 0) + slope * min(x, 0),
        "elu": x if x > 0 else slope * (exp(x) - 1),
        "sigmoid": (1 + tanh(x / 2)) / 2,
        "hardsigmoid": held,
        "tanh": (exp(x) - exp(-x)) / (exp(x) + exp(-x)) if abs(x) < 20 else copysign(1, x),
        "silu": x * (1 + tanh(x / 2)) / 2,
        "hardswish": x * held,
        "gelu": x * erfc(-x / sqrt(2)) / 2,
        "gelu_tanh": x / (1 + exp(min(-2 * sqrt(2 / pi) * (x + 0.044715 * x**3), 700))),
    }
    return words[conv.activation]


def test_sums_are_exact_where_doubles_are_not() -> None:
    """One more than a power of two, squared, has more bits than a double."""
    large = np.full((1, 1, 1, 1), (1 << 27) + 1)
    assert convolution(Conv2d(out_channels=1), large, large, 0).item() == large.item() ** 2


@LOWERED
@given(chains(dtypes=("float32",), channels=FEW).filter(convs_alone))
def test_a_chain_is_one_conv_after_the_other(chain: Chain) -> None:
    tensors = random_tensors(chain)
    expected = [tensors.image]
    for index, conv in enumerate(chain.conv):
        bias = tensors.biases[index]
        sums = by_scipy(conv, expected[-1], tensors.filters[index], 0) + (0 if bias is None else bias)
        slopes = tensors.vectors.get(f"slope{index + 1}", np.full(conv.out_channels, conv.slope))
        each = np.vectorize(lambda x, slope, conv=conv: by_words(conv, float(x), float(slope)), otypes=[float])
        made = each(sums, slopes)
        if conv.add:
            made = made + expected[conv.add.tensor]
            made = made if conv.add.activation == "none" else np.maximum(made, 0)
            made = np.minimum(made, 6) if conv.add.activation == "relu6" else made
        expected.append(made.astype(np.float32))
    found = reference(chain, *tensors.logical)
    np.testing.assert_allclose(found, expected[-1], rtol=1e-4, atol=1e-4)


def by_definition(value: int, by: Requantize, dtype: str) -> int:
    """`MultiplyByQuantizedMultiplier` of TFLite in words, on Python's integers; for "even" the exact product, rounded.

    The accumulator times 2**shift, saturated, is multiplied by the multiplier over 2**31 and rounded to the nearest,
    ties up; for a negative shift the result is divided by 2**-shift and rounded once more, ties by `rounding`.
    """
    assert isinstance(by.multiplier, int)
    assert isinstance(by.shift, int)
    if by.rounding == "even":
        low, most = INTEGER_RANGE[dtype]
        product = Fraction(value * by.multiplier) * Fraction(2) ** (by.shift - 31)
        if by.fraction_bits:
            product = floor(product * 2**by.fraction_bits + Fraction(1, 2)) / Fraction(2**by.fraction_bits)
        # Python rounds a fraction to the nearest integer, half to even
        return min(max(round(product) + by.zero_point, low), most)
    left, right = max(by.shift, 0), max(-by.shift, 0)
    shifted = min(max(value * 2**left, -(2**31)), 2**31 - 1)
    high = nearest(shifted * by.multiplier, 2**31, "up")
    low, most = INTEGER_RANGE[dtype]
    return min(max(nearest(high, 2**right, by.rounding) + by.zero_point, low), most)


def nearest(dividend: int, divisor: int, ties: str) -> int:
    """The integer nearest to a quotient."""
    below, rest = divmod(dividend, divisor)
    if 2 * rest != divisor:
        return below + (2 * rest > divisor)
    return below if ties == "away" and dividend < 0 else below + 1


@given(
    value=st.one_of(INT32, st.integers(-300, 300)),
    multiplier=st.one_of(st.integers(1, 2**31 - 1), st.sampled_from((1, 2**30, 2**31 - 1))),
    shift=st.integers(-31, 30),
    rounding=st.sampled_from(("away", "up", "even")),
    dtype=st.sampled_from(("int8", "uint8", "int16")),
)
def test_requantisation_is_tflites_or_the_nearest(
    value: int, multiplier: int, shift: int, rounding: Rounding, dtype: str
) -> None:
    by = Requantize(multiplier=multiplier, shift=shift, zero_point=3, rounding=rounding)
    assert int(requantized(np.array([value]), by, dtype)[0]) == by_definition(value, by, dtype)


@given(
    value=st.one_of(st.integers(-(2**30), 2**30), st.integers(-300, 300)),
    multiplier=st.one_of(st.integers(1, 2**31 - 1), st.integers(1, 9).map(lambda odd: odd << 27)),
    shift=st.integers(-30, 10),
    bits=st.integers(1, 30),
    dtype=st.sampled_from(("int8", "uint8", "int16")),
)
def test_a_product_is_rounded_to_few_places_first(
    value: int, multiplier: int, shift: int, bits: int, dtype: str
) -> None:
    assume(0 <= shift + bits <= 30)
    by = Requantize(multiplier=multiplier, shift=shift, zero_point=3, rounding="even", fraction_bits=bits)
    assert int(requantized(np.array([value]), by, dtype)[0]) == by_definition(value, by, dtype)


def test_ties_go_where_the_rounding_says() -> None:
    sums = np.array([-6, -2, 2, 6])
    halves: dict[Rounding, list[int]] = {"away": [-2, -1, 1, 2], "up": [-1, 0, 1, 2], "even": [-2, 0, 0, 2]}
    for rounding, expected in halves.items():
        by = Requantize(multiplier=2**30, shift=-1, rounding=rounding)
        assert requantized(sums, by, "int8").tolist() == expected


@given(
    total=st.integers(-(2**24), 2**24),
    scale=st.floats(2**-20, 1, width=32, exclude_max=True),
    dtype=st.sampled_from(("int8", "int16")),
)
def test_half_to_even_of_a_float32_is_rint(total: int, scale: float, dtype: str) -> None:
    """A double holds the product of 24 bits and 25: numpy's rint of it is the exact answer."""
    fraction, shift = np.frexp(scale)
    by = Requantize(multiplier=int(fraction * 2**31), shift=int(shift), rounding="even")
    expected = np.clip(np.rint(np.float64(total) * np.float64(np.float32(scale))), *INTEGER_RANGE[dtype])
    assert int(requantized(np.array([total]), by, dtype)[0]) == int(expected)


@given(st.lists(st.tuples(INT32, st.integers(1, 2**31 - 1), st.integers(-31, 0)), min_size=1, max_size=9))
def test_each_channel_has_its_own_scale(channels: list[tuple[int, int, int]]) -> None:
    sums, multipliers, shifts = (np.array(column) for column in zip(*channels, strict=True))
    for rounding in ("away", "up", "even"):
        by = Requantize(multiplier="per_channel", shift="per_channel", zero_point=3, rounding=rounding)
        found = requantized(sums, by, "int8", {"multiplier": multipliers, "shift": shifts})
        alone = [Requantize(multiplier=m, shift=s, zero_point=3, rounding=rounding) for _, m, s in channels]
        assert found.tolist() == [
            by_definition(channel[0], how, "int8") for channel, how in zip(channels, alone, strict=True)
        ]


@given(
    multiplier=st.integers(2**30, 2**31 - 1),
    shift=st.integers(-22, -4),
    zero_point=st.integers(0, 255),
    rounding=st.sampled_from(("away", "up", "even")),
    data=st.data(),
)
def test_the_engines_convert_is_near(
    multiplier: int, shift: int, zero_point: int, rounding: Rounding, data: st.DataObject
) -> None:
    """Never more than a code away, and that for 3.5 % of sums at most: most are so where a code has few of them."""
    by = Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding)
    step = 2 ** (31 - shift) // multiplier
    first = -(zero_point + 1) * step + data.draw(st.integers(0, step))
    sums = first + np.linspace(0, 257 * step, 20_000).astype(np.int64)
    apart = np.abs(requantized(sums, by, "uint8").astype(int) - requantized(sums, replace(by, engine="fast"), "uint8"))
    assert apart.max() <= 1
    assert apart.mean() <= 0.035


def test_relu6_is_what_is_between_0_and_6_and_random_tensors_meet_both_ends() -> None:
    chain = Chain(input=(1, 16, 16, 32), conv=(Conv2d(out_channels=32, activation="relu6"),))
    tensors = random_tensors(chain)
    found = reference(chain, *tensors.logical)
    sums = by_scipy(chain.conv[0], tensors.image, tensors.filters[0], 0)
    np.testing.assert_allclose(found, np.minimum(np.maximum(sums, 0), 6), rtol=1e-9)
    assert 0.02 < np.mean(found == 6) < 0.4
    assert 0.2 < np.mean(found == 0) < 0.8
