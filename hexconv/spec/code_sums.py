"""Sums of two tensors of 8-bit codes: their definition in float32, and its integer form, equal on all 65,536 pairs.

before:  float32 of both codes, their sum, a division, rounding half to even
 after:  clamp((a * 1547420 + b * 1902797 - 446056384) >> 20)

Codes count from 0 on here; those of int8 have 128 more. Multipliers of 21 bits near the quotients of the scales are
looked through. For a pair of multipliers, the constants that give the right code for all pairs are an interval. A few
pairs of codes that no multipliers serve are mended one by one.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CODES = 256
FREE = 1 << 60
"""More than any sum of products."""
LAST_SHIFT = 7
"""The most bits by which HVX shifts halves as it narrows them to bytes."""
LEAST_SHIFT = 14
SUM_BITS, SUM_REACH, MENDED = 21, 2, 4
"""Bits of a multiplier of a sum; how far beside the nearest ones it is looked for; pairs that may be mended."""
STEEPEST = 2.0 ** (SUM_BITS - LEAST_SHIFT)
"""No multiplier is for a slope beyond this."""
SOFTEST = 2.0**20
"""A quotient beyond this is clipped to it before it is rounded; no code is as large."""

Ends = tuple[int, int]
"""The least and the largest number that a result is held within, 0 and 255 where it may have all."""


@dataclass(frozen=True)
class Interval:
    """The constants that make `(product + constant) >> shift` the wanted code; none where `low` is above `high`."""

    low: Array
    high: Array

    @classmethod
    def of(cls, codes: Array, products: Array, shift: int, ends: Ends, axis: int | None = None) -> "Interval":
        """Look at all codes, or along one axis; the least and the largest code take any number beyond."""
        least, most = ends
        lows = np.where(codes > least, (codes << shift) - products, -FREE)
        highs = np.where(codes < most, ((codes + 1) << shift) - 1 - products, FREE)
        return cls(lows.max(axis), highs.min(axis))

    @property
    def middle(self) -> Array:
        """A constant within, which is near 0 where one end is free."""
        both = (self.low + self.high) // 2
        return np.where(
            self.low <= -FREE, np.minimum(self.high, 0), np.where(self.high >= FREE, np.maximum(self.low, 0), both)
        )


def clipped(values: Array, ends: tuple[float, float]) -> Array:
    """Hold values within two ends, as `np.clip` does, whose type is not known in full."""
    return np.minimum(np.maximum(values, ends[0]), ends[1])


@dataclass(frozen=True)
class CodeSum:
    """The integer form of a sum of codes that count from 0 on: `clamp((a * one + b * other + constant) >> shift)`.

    Attributes:
        one: the multiplier of the first code.
        other: the multiplier of the second code.
        constant: what is added before the shift.
        shift: the bits that are dropped.
        ends: the least and the largest result.
        mended: the pairs that have another result, each with it: (a, b, result).
    """

    one: int
    other: int
    constant: int
    shift: int
    ends: Ends
    mended: tuple[tuple[int, int, int], ...] = ()

    def of_codes(self, one: Array, other: Array) -> Array:
        """Compute the sums of codes that count from 0 on, int64."""
        total = (one.astype(np.int64) * self.one + other.astype(np.int64) * self.other + self.constant) >> self.shift
        made = clipped(total, self.ends)
        for first, second, result in self.mended:
            made = np.where((one == first) & (other == second), result, made)
        return made

    @property
    def fits_int32(self) -> bool:
        """Whether no sum of products leaves int32."""
        most = (CODES - 1) * (self.one + self.other)
        return self.constant >= -(2**31) and most + self.constant < 2**31 and most < 2**31


def sum_form(codes: Array, slopes: tuple[float, float], ends: Ends) -> CodeSum | None:
    """Search the integer form of a table of 256 by 256 numbers from 0 on that rises along both axes.

    Args:
        codes: the results, by the first and the second code.
        slopes: by how much a result rises with each code.
        ends: what the results are held within.

    Returns:
        The form with the fewest pairs that are mended, which may be many; None where the slopes are too steep.
    """
    largest = max(slopes)
    shift = min(SUM_BITS - frexp(largest)[1], LEAST_SHIFT + LAST_SHIFT)
    if shift < LEAST_SHIFT or largest * 2**shift > 2**SUM_BITS - SUM_REACH - 1:
        shift -= 1
    if shift < LEAST_SHIFT:
        return None
    nearest = [round(slope * 2**shift) for slope in slopes]
    axis, best, fewest = np.arange(CODES, dtype=np.int64), None, codes.size + 1
    for apart in sorted(product(range(-SUM_REACH, SUM_REACH + 1), repeat=2), key=lambda both: sum(map(abs, both))):
        one, other = (max(value + more, 0) for value, more in zip(nearest, apart, strict=True))
        products = axis[:, None] * one + axis * other
        interval = Interval.of(codes, products, shift, ends)
        for constant in map(int, (interval.middle, interval.low, interval.high)):
            wrong = np.argwhere(clipped((products + constant) >> shift, ends) != codes)
            if len(wrong) < fewest:
                pairs = np.column_stack([wrong, codes[wrong[:, 0], wrong[:, 1]]]).tolist()
                best, fewest = CodeSum(one, other, constant, shift, ends, tuple(map(tuple, pairs))), len(wrong)
            if interval.low <= interval.high:
                return best
    return best


@dataclass(frozen=True)
class Summed:
    """What a sum of codes stands for.

    Attributes:
        scales: of the first codes, of the second codes, and of the result.
        zero_points: of the same, where codes count from 0 on.
        ends: the least and the largest result, from 0 on.
    """

    scales: tuple[float, float, float]
    zero_points: tuple[int, int, int]
    ends: Ends = (0, CODES - 1)

    def defined(self, one: Array, other: Array) -> Array:
        """Compute sums of codes from 0 on by their definition, as ONNX's QLinearAdd in float32."""
        codes, scales = (one, other), np.array(self.scales, np.float32)
        first, second = (
            (codes[place].astype(np.int64) - self.zero_points[place]).astype(np.float32) * scales[place]
            for place in range(2)
        )
        quotients = clipped((first + second) / scales[2], (-SOFTEST, SOFTEST))
        return clipped(np.rint(quotients).astype(np.int64) + self.zero_points[2], self.ends)


@lru_cache(1024)
def integer_form(summed: Summed) -> CodeSum | None:
    """Return the integer form that is equal to the definition for all pairs of codes; None where there is none."""
    one, other, of_result = (float(np.float32(scale)) for scale in summed.scales)
    if max(one, other) > STEEPEST * of_result:
        return None
    every = np.arange(CODES)
    codes = summed.defined(every[:, None], every[None, :])
    form = sum_form(codes, (one / of_result, other / of_result), summed.ends)
    return form if form and len(form.mended) <= MENDED and form.fits_int32 else None
