"""Which sums of a conv ONNX Runtime's float32 moves to another result, and whether any multiplier would do better.

A chain rounds the exact product of a sum and the scale once, half to even. ONNX Runtime rounds that product to float32
first. Where the scale lies next to a fraction of small numbers, p / q, the products of some sums lie so near to a half
that float32 rounds them onto it, and half to even then takes every second of them up. An exact product lies on one side
of all these halves, or on the other, so it differs from every second such sum, whatever the multiplier: a larger one
changes which, and hardly how many. This is counted here, over all sums whose result is not cut. A chain that rounds its
products to few binary places first (`fraction_bits`) is counted in the same way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hexconv.compute.reference import requantized
from hexconv.run.runner import Array
from hexconv.spec import Requantize
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.requantize import FRACTION_BITS, LARGEST_MULTIPLIER

MOST_SUMS = 1 << 24
"""Float32 holds sums up to here; with a scale so small that more of them are not cut, none are counted."""
NEAR = 64
"""Half a last place of a float32 of 24 bits, in last places of a multiplier of 31 bits."""


@dataclass(frozen=True)
class Moved:
    """The sums of a conv whose results differ from ONNX Runtime's, over all sums that are not cut.

    Attributes:
        sums: how many sums have a result that is not cut, in all channels that are counted.
        apart: for how many of them ONNX Runtime's float32 gives another result than the chain.
        least: the same for the best multiplier of each channel, of all that are the same float32.
    """

    sums: int
    apart: int
    least: int


def moved(by: Requantize, dtype: str, vectors: Mapping[str, Array], channels: Array) -> Moved:
    """Count the sums that float32 moves.

    Args:
        by: a requantisation that rounds half to even.
        dtype: the dtype of its results.
        vectors: `multiplier` and `shift`, [K] each, where they are one a channel.
        channels: the channels to count, by number; with one scale for all channels, it is counted once.
    """
    counted = [_of_one(one, dtype) for one in _scales(by, vectors, channels)]
    return Moved(*(sum(getattr(one, name) for one in counted) for name in ("sums", "apart", "least")))


def scaled_in_float32(sums: Array, multiplier: Array, shift: Array) -> Array:
    """The sums, rounded to float32, times the scale, rounded to float32 and then to a whole number, half to even."""
    scale = np.ldexp(np.asarray(multiplier, np.float64), np.asarray(shift) - FRACTION_BITS).astype(np.float32)
    return np.rint(sums.astype(np.float32) * scale).astype(np.float64)


def _scales(by: Requantize, vectors: Mapping[str, Array], channels: Array) -> Iterator[Requantize]:
    """Yield the requantisation of each channel, with numbers of its own."""
    for channel in channels if by.vectors else channels[:1]:
        yield replace(by, **{name: int(vectors[name][channel]) for name in by.vectors}, least_odd=None)


def _of_one(by: Requantize, dtype: str) -> Moved:
    """Count the sums of one scale.

    Results grow with the multiplier, or fall with it: where the least and the largest multiplier both give ONNX
    Runtime's result, all between them do.
    """
    assert isinstance(by.multiplier, int)
    assert isinstance(by.shift, int)
    sums = _not_cut(by, dtype)
    low, high = by.codes(*INTEGER_RANGE[dtype])
    given = scaled_in_float32(sums, np.asarray(by.multiplier), np.asarray(by.shift)) + by.zero_point
    theirs = np.clip(given, low, high).astype(dtype)
    near = _same_float32(by.multiplier, by.shift)
    ends = [requantized(sums, replace(by, multiplier=int(end)), dtype) != theirs for end in (near[0], near[-1])]
    unsure = ends[0] | ends[1]
    few, wanted = sums[unsure], theirs[unsure]
    apart = {
        int(one): int(np.count_nonzero(requantized(few, replace(by, multiplier=int(one)), dtype) != wanted))
        for one in near
    }
    return Moved(sums.size, apart[by.multiplier], min(apart.values()))


def _not_cut(by: Requantize, dtype: str) -> Array:
    """Return all sums whose product lies within the codes, or half a code beside them."""
    assert isinstance(by.multiplier, int)
    assert isinstance(by.shift, int)
    scale = np.ldexp(float(by.multiplier), by.shift - FRACTION_BITS)
    low, high = by.codes(*INTEGER_RANGE[dtype])
    first, last = np.ceil((low - by.zero_point - 0.5) / scale), np.floor((high - by.zero_point + 0.5) / scale)
    return np.arange(first, last + 1, dtype=np.int64) if last - first < MOST_SUMS else np.empty(0, np.int64)


def _same_float32(multiplier: int, shift: int) -> Array:
    """Return all multipliers that make the same float32 scale."""
    near = np.arange(max(multiplier - NEAR, 1), min(multiplier + NEAR, LARGEST_MULTIPLIER) + 1)
    scales = np.ldexp(near.astype(np.float64), shift - FRACTION_BITS).astype(np.float32)
    return near[scales == np.float32(np.ldexp(float(multiplier), shift - FRACTION_BITS))]
