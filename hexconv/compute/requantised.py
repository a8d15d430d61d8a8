"""Requantise sums in numpy: exactly, as `Requantize` says, or as the matrix engine converts them.

A convert of the engine takes a sum of a channel to a byte by an exponent, a scale, an offset and what is added first:

    total = sum + added
    value = total * 2**exponent / 2**20             rounded down; 14 bits and two flags: what is larger saturates
    byte  = (scale * value / 2048 + offset) / 16    rounded down twice, and held within 0 to 255

so a byte is near `sum * scale * 2**(exponent - 35) + offset / 16`. `scale` has 12 bits, and two floors follow it: a
convert rarely is the requantisation that a conv states. `converts` takes the one that errs least.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.code_sums import clipped
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.ranges import MOST_ADDED
from hexconv.spec.requantize import FRACTION_BITS, Requantize

Array = NDArray[Any]
NO_VECTORS: Mapping[str, Array] = MappingProxyType({})


def requantized(sums: Array, by: Requantize, dtype: str, by_channel: Mapping[str, Array] = NO_VECTORS) -> Array:
    """Scale and round int64 sums as `Requantize` says, then add the zero point and saturate.

    Args:
        sums: int64, channels last.
        by: the requantisation.
        dtype: the dtype of the result.
        by_channel: `multiplier` and `shift`, [K] each, where the requantisation has one per channel.
    """
    low, high = INTEGER_RANGE[dtype]
    sums = sums if by.saturates_at is None else clipped(sums, (-by.saturates_at, by.saturates_at))
    if by.engine == "fast":
        moved = converted(sums, converts(by, dtype, by_channel)) + low
    else:
        moved = _rounded(sums, by, *factors(by, by_channel)) + by.zero_point
    return clipped(moved, by.codes(low, high)).astype(dtype)


def factors(by: Requantize, by_channel: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the multipliers and the shifts, int64: a number each, or [K]."""
    multiplier, shift = (
        np.asarray(by_channel.get(what, getattr(by, what)), np.int64) for what in ("multiplier", "shift")
    )
    return multiplier, shift


def _rounded(sums: Array, by: Requantize, multiplier: Array, shift: Array) -> Array:
    """Scale sums and round them in one of the four ways of `Requantize`."""
    if by.fraction_bits is not None:
        return _half_to_even(_half_up(sums * multiplier, FRACTION_BITS - by.lift), by.fraction_bits)
    if by.rounding == "even":
        return _half_to_even(sums * multiplier, FRACTION_BITS - shift)
    return _twice_rounded(sums, multiplier, shift, by.rounding == "away")


def _half_up(product: Array, bits: int) -> Array:
    """`product / 2**bits` rounded to the nearest integer, ties up."""
    return (product + (1 << (bits - 1))) >> bits


def _half_to_even(product: Array, bits: Array | int) -> Array:
    """`product / 2**bits` rounded to the nearest integer, ties to even: the floor, or one more."""
    below = product >> bits
    rest, half = product - (below << bits), np.left_shift(np.int64(1), bits - 1)
    return below + ((rest > half) | ((rest == half) & (below % 2 == 1)))


def _twice_rounded(sums: Array, multiplier: Array, shift: Array, ties_away: bool) -> Array:
    """TFLite's `MultiplyByQuantizedMultiplier`."""
    wide = clipped(sums << np.maximum(shift, 0), (-(2**31), 2**31 - 1))
    high = (wide * multiplier + (1 << 30)) >> FRACTION_BITS
    bits = np.maximum(-shift, 0)
    half: Array = np.left_shift(np.int64(1), bits) >> 1
    nudge = half - ((high < 0) & (bits > 0)) if ties_away else half
    return (high + nudge) >> bits


SCALE_BITS, VALUE_BITS, VALUE_SHIFT, STEPS = 12, 13, 20, 16
"""The bits of a scale; those of a value but its sign; how far sums are shifted for a value; offsets in a code."""
LARGEST_SCALE, LARGEST_EXPONENT = (1 << SCALE_BITS) - 1, 31
SCALE_IS_ONE = 35
"""`scale * 2**(exponent - 35)` is what a convert multiplies by."""
LARGEST_SUM = 1 << 31


@dataclass(frozen=True)
class Converts:
    """How the matrix engine converts the sums of channels to bytes; int64, a number each or [K].

    Attributes:
        exponent: 0 to 31.
        scale: 0 to 4095.
        offset: the byte of a sum of zero, in sixteenths.
        added: what is added to a sum first.
    """

    exponent: Array
    scale: Array
    offset: Array
    added: Array


def converted(sums: Array, by: Converts, saturates: bool = True) -> Array:
    """Convert sums to bytes by the engine's formula.

    Args:
        sums: int64, channels last.
        by: the converts of the channels.
        saturates: whether results are held within 0 to 4095 sixteenths, or wrap.

    >>> by = Converts(*(np.array([number]) for number in (12, 2048, 16 * 100 + 8, 0)))
    >>> converted(np.array([[0], [5000], [-400000], [900000]]), by).ravel().tolist()
    [100, 101, 2, 255]
    """
    most = 1 << VALUE_BITS
    value = ((sums.astype(np.int64) + by.added) << by.exponent) >> VALUE_SHIFT
    low = value & (most - 1)
    value = np.where(value >= most, low + most, np.where(value < -most, low - 2 * most, value))
    result = ((by.scale * 2 * value) >> SCALE_BITS) + by.offset
    return (clipped(result, (0, LARGEST_SCALE)) if saturates else result & LARGEST_SCALE) >> 4


def converts(how: Requantize, dtype: str, by_channel: Mapping[str, Array] = NO_VECTORS) -> Converts:
    """Return the converts by which the fewest sums give another code than they do exactly.

    A code begins at some sum, its threshold. Of two scales around the true one, for two exponents, and of all offsets
    that leave the zero point as it is, what is added is the median of how far thresholds lie apart, so that they lie
    together as near as they can. The best leaves the least between all thresholds of a channel.

    Args:
        how: the requantisation.
        dtype: the dtype of its results, of 8 bits.
        by_channel: `multiplier` and `shift`, [K] each, where the requantisation has one per channel.
    """
    both = np.stack(np.broadcast_arrays(*(np.atleast_1d(each) for each in factors(how, by_channel))))
    (multiplier, shift), of_channel = np.unique(both, axis=1, return_inverse=True)
    low, high = INTEGER_RANGE[dtype]
    least, most = how.codes(low, high)
    exact = _thresholds(np.arange(least + 1, most + 1)[:, None], how, multiplier, shift)
    is_reached, bytes_ = np.abs(exact) < LARGEST_SUM, np.arange(least + 1, most + 1)[:, None] - low
    reached, channels = is_reached.sum(axis=0), np.arange(len(multiplier))
    found, fewest = np.zeros((4, len(multiplier)), np.int64), np.full(len(multiplier), np.inf)
    for exponent, scale, offset in _tried(multiplier, shift, how.zero_point - low):
        apart = np.where(is_reached, _converted_from(bytes_, exponent, scale, offset) - exact, LARGEST_SUM << 8)
        middle = np.where(reached > 0, np.sort(apart, axis=0)[reached // 2 * (reached > 0), channels], 0)
        added = clipped(middle, (-MOST_ADDED, MOST_ADDED))
        error = np.where(is_reached, np.abs(apart - added), 0).sum(axis=0)
        is_better = error < fewest
        tried = np.stack(np.broadcast_arrays(exponent, scale, offset, added))
        found, fewest = np.where(is_better, tried, found), np.where(is_better, error, fewest)
    return Converts(*(found[:, of_channel.ravel()] if how.vectors else found[:, :1]))


def _thresholds(codes: Array, how: Requantize, multiplier: Array, shift: Array) -> Array:
    """Return the least sum of each channel that gives a code or more, [codes, channels].

    Where all sums do, or none, it is an end of 32 bits.
    """
    ends = (-LARGEST_SUM - 1, LARGEST_SUM)
    below, there = (np.full((len(codes), len(multiplier)), end, np.int64) for end in ends)
    for _ in range(LARGEST_SUM.bit_length() + 1):
        middle = (below + there) >> 1
        is_there = _rounded(middle, how, multiplier, shift) + how.zero_point >= codes
        below, there = np.where(is_there, below, middle), np.where(is_there, middle, there)
    return there


def _tried(multiplier: Array, shift: Array, zero: int) -> Iterator[tuple[Array, Array, int]]:
    """Yield exponents, scales and offsets: scales have 11 or 12 bits, so that no value that shows has too many."""
    _, power = np.frexp(multiplier)
    for more in (0, 1):
        exponent = clipped(power + shift - FRACTION_BITS + SCALE_IS_ONE - SCALE_BITS + more, (0, LARGEST_EXPONENT))
        exact = np.ldexp(multiplier.astype(np.float64), shift - FRACTION_BITS + SCALE_IS_ONE - exponent)
        for scale in (np.floor(exact), np.floor(exact) + 1):
            for sixteenths in range(STEPS):
                whole = np.minimum(scale, LARGEST_SCALE).astype(np.int64)
                yield exponent.astype(np.int64), whole, STEPS * zero + sixteenths


def _converted_from(bytes_: Array, exponent: Array, scale: Array, offset: int) -> Array:
    """Return the least total, added number included, that is converted to a byte or more."""
    value = -(-(STEPS * bytes_ - offset << (SCALE_BITS - 1)) // np.maximum(scale, 1))
    return -(-(value << VALUE_SHIFT) >> exponent)
