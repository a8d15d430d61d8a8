"""Multipliers and shifts of requantisation from ONNX's float scales: exact, or rounded as ONNX Runtime rounds.

ONNX makes `rint(sum * (input_scale * filter_scale / output_scale))`, in float32, ties to even. A float32 has 24 bits
and a multiplier 31, so the integers here are those of the exact product of the sum and the float32 scale, rounded once,
ties to even (`hexconv.spec.Requantize`, "even"). ONNX Runtime rounds the sum and the product to float32 before: a
result differs, by one, only where these two roundings move a product over a half. No other multiplier would be nearer:
where float32 rounds products onto halves, half to even takes every second of them up, and an exact product lies on one
side of them all. Where these are many, a product is rounded to few binary places first (`hexconv.model.multipliers`).

ONNX Runtime rounds the product of a sum and the scale to float32, then to an integer, half to even. Where the scale
lies next to a fraction of small numbers, float32 rounds the products of many sums onto a half. An exact product lies
beside these halves, so every second of such sums gives another result. A product that is rounded to F binary places
first lies on them too: all products within 2**-(F + 1) of a half do. Too few places make halves of products that are
none in float32.

Only sums whose products lie next to a half can differ. There are 255 halves between 256 codes, so they are all
looked at.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.kernel.tiles import BYTES
from hexconv.model.conv_unit import Unit
from hexconv.model.refused import Refused
from hexconv.spec import Requantize
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.ranges import sums_refusals
from hexconv.spec.requantize import FRACTION_BITS, PER_CHANNEL, SMALLEST_SHIFT, PerChannel
from hexconv.spec.vectors import odd_parts

Array = NDArray[Any]
ROUNDING = (
    "each integer conv rounds the exact product of a sum and its float32 scale once, ties to even: ONNX's answer, or "
    "within 1 of it where ONNX rounds to float32 on the way"
)
LARGEST_SHIFT = 30


@dataclass(frozen=True)
class Scaled:
    """A requantisation, and its values that differ by channel.

    Attributes:
        how: the requantisation as a case states it.
        vectors: `multiplier` and `shift`, int32 of [K], where they are one a channel.
    """

    how: Requantize
    vectors: Mapping[str, Array] = field(default_factory=dict)

    @property
    def multipliers(self) -> Array:
        """The multipliers of all channels, [K], or [1] where they have one."""
        return self.vectors["multiplier"] if "multiplier" in self.vectors else np.atleast_1d(self.how.multiplier)


def scale_of(source: Array, filter: Array, output: Array) -> Array:
    """The scale from sums to output, float32, one or one a channel, computed as ONNX Runtime does."""
    with np.errstate(all="ignore"):
        return np.atleast_1d(np.float32(np.float32(source * filter) / output))


def requantize(
    scales: Array, zero_point: int, clamp: tuple[int, int] | None = None, reach: Callable[[], Array] | None = None
) -> Scaled:
    """Turn `sum * scale + zero_point` into integer arithmetic.

    All channels have one shift where multipliers can hold all scales with it; else each channel has its own.

    Args:
        scales: the scales, float32, [1] or [K].
        zero_point: the zero point of the output.
        clamp: the range of the output's codes, where it is narrower than the dtype.
        reach: gives the largest absolute value of each channel's sums, bias included, [K]; channels whose sums never
            come to half of an output then have any multiplier that keeps them there.

    >>> how = requantize(np.float32([0.75]), 3).how
    >>> how.multiplier, how.shift, how.zero_point, how.rounding
    (1610612736, 0, 3, 'even')
    >>> requantize(np.float32([0.75, 0.125]), 3).vectors
    {'multiplier': array([1610612736,  268435456], dtype=int32)}

    Raises:
        Refused: a scale is no positive number; or no multipliers and shifts hold all scales together.
    """
    if bad := [float(scale) for scale in scales if not 0 < scale < np.inf]:
        raise Refused(f"it has a scale of {bad[0]:g}, which is no positive number")
    fractions, shifts = np.frexp(scales.astype(np.float64))
    multipliers = (fractions * 2.0**FRACTION_BITS).astype(np.int64)
    if len(scales) == 1:
        return _of_all(int(multipliers[0]), int(shifts[0]), zero_point, clamp)
    common = int(shifts.max())
    apart = np.minimum(common - shifts, FRACTION_BITS)
    together = multipliers >> apart
    if SMALLEST_SHIFT <= common <= LARGEST_SHIFT and np.array_equal(together << apart, multipliers):
        return _of_each(common, zero_point, clamp, {"multiplier": together})
    if common > 0:
        silenced = None if reach is None or common > LARGEST_SHIFT else _silenced(together, reach(), common)
        if silenced is not None and np.all((together << apart == multipliers) | (silenced > 0)):
            held = np.where(together << apart == multipliers, together, silenced)
            return _of_each(common, zero_point, clamp, {"multiplier": held})
        raise Refused(
            f"its scales reach from {scales.min():g} to {scales.max():g}; beside one above 1 the least is a 128th of "
            "it, or one with which no sum comes to half of an output"
        )
    # With a scale below 2**-32 no 32-bit sum comes to half of an output: such a scale may as well be the smallest.
    is_none = shifts < SMALLEST_SHIFT
    vectors = {"multiplier": np.where(is_none, 1, multipliers), "shift": np.where(is_none, SMALLEST_SHIFT, shifts)}
    return _of_each(PER_CHANNEL, zero_point, clamp, vectors)


def _silenced(multipliers: Array, reach: Array, shift: int) -> Array:
    """Multipliers with which no sum within reach comes to half of an output; 0 for channels whose sums do.

    They are odd, as those of most scales are, so that they cost no kernel an instruction.

    Args:
        multipliers: the multipliers of the channels, rounded down to what a shift leaves of them.
        reach: the largest absolute value of the sums of each channel.
        shift: the shift of all channels.
    """
    half = 2.0 ** (FRACTION_BITS - 1 - shift)  # what a product has to come to
    most = np.ceil(half / np.maximum(reach, 1)) - 1
    most = np.where(reach * (multipliers + 1.0) < half, np.minimum(most, 2.0 ** (FRACTION_BITS - 1)), 0)
    return (most - (most % 2 == 0)).clip(0).astype(np.int64)


def _of_each(
    shift: int | PerChannel, zero_point: int, clamp: tuple[int, int] | None, vectors: Mapping[str, Array]
) -> Scaled:
    """Requantise with a scale for each channel; the case says how odd their multipliers are."""
    how = replace(_how(PER_CHANNEL, shift, zero_point, clamp), least_odd=int(odd_parts(vectors["multiplier"]).min()))
    return Scaled(how, {name: vector.astype(np.int32) for name, vector in vectors.items()})


def _of_all(multiplier: int, shift: int, zero_point: int, clamp: tuple[int, int] | None) -> Scaled:
    """Requantise with one scale for all channels.

    A scale too large for any shift saturates every sum but 0; with one too small no sum comes to a half.
    """
    if shift > LARGEST_SHIFT:
        multiplier, shift = 2**FRACTION_BITS - 1, LARGEST_SHIFT
    elif shift < SMALLEST_SHIFT:
        multiplier, shift = 1, SMALLEST_SHIFT
    return Scaled(_how(multiplier, shift, zero_point, clamp))


def _how(
    multiplier: int | PerChannel, shift: int | PerChannel, zero_point: int, clamp: tuple[int, int] | None
) -> Requantize:
    return Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding="even", clamp=clamp)


MOST_MOVED = 50e-6
"""The share of sums up to which the exact product stays, since it takes fewer instructions."""
PLACES = range(8, 19)
"""Binary places to look at. Half a last place of a float32 below 256 is 2**-17; fewer than 8 would be coarser than any
float16, more than 18 finer than float32."""
MOST_SUMS = 1 << 24
"""Float32 holds sums up to here. With a scale so small that more of them are not cut, nothing is counted."""
FLOAT32_ERROR = 2.0**-16
"""The most by which float32 moves a product below 256: by rounding the sum, and by rounding the product."""


@dataclass(frozen=True)
class NearHalves:
    """The sums of some channels whose products may be rounded otherwise by one of two ways, and how many there are.

    Attributes:
        sums: some sums, int64, of all channels.
        multipliers: the multiplier of each of them, int64.
        shift: the shift of all channels.
        uncut: how many sums there are whose result is not cut, in all channels.
    """

    sums: Array
    multipliers: Array
    shift: int
    uncut: float

    def apart(self, by: Requantize) -> int:
        """Count the sums whose results differ from ONNX Runtime's."""
        return int(np.count_nonzero(rounded(self.sums * self.multipliers, by) != self._in_float32))

    @property
    def _in_float32(self) -> Array:
        scales = np.ldexp(self.multipliers.astype(np.float64), self.shift - FRACTION_BITS).astype(np.float32)
        return np.rint(self.sums.astype(np.float32) * scales).astype(np.int64)


def with_fraction_bits(unit: Unit, multipliers: Array) -> Unit:
    """State `fraction_bits` for a conv of bytes where that brings fewer sums that differ from ONNX Runtime's.

    It is stated only where of all sums whose results are not cut more than 50 in a million differ without it; then the
    fewest binary places that leave the fewest such sums, and with which hvx has room for the sums.

    Args:
        unit: a conv.
        multipliers: the multipliers of its channels, [K], or [1] if they have one.
    """
    by = unit.conv.requantize
    if by is None or unit.dtype not in BYTES or not isinstance(by.shift, int):
        return unit
    codes = by.codes(*INTEGER_RANGE[unit.dtype])
    near = near_halves(by, multipliers, codes, FLOAT32_ERROR)
    exact = near.apart(by)
    if exact <= MOST_MOVED * near.uncut:
        return unit
    near = near_halves(by, multipliers, codes, 2.0 ** -(PLACES[0] + 1))
    found = {bits: near.apart(replace(by, fraction_bits=bits)) for bits in PLACES if bits + by.shift >= 0}
    fewer = sorted((apart, bits) for bits, apart in found.items() if apart < exact)
    return next(_served(unit, [bits for _, bits in fewer]), unit)


def near_halves(by: Requantize, multipliers: Array, codes: tuple[int, int], within: float) -> NearHalves:
    """Find the sums whose exact product lies within some distance of a half, or next to it.

    Args:
        by: a requantisation with one shift.
        multipliers: the multipliers of some channels.
        codes: the least and the most code of a result.
        within: the distance.
    """
    assert isinstance(by.shift, int)
    scales = np.ldexp(multipliers.astype(np.float64), by.shift - FRACTION_BITS)
    uncut = (codes[1] - codes[0] + 1) / scales
    few = uncut <= MOST_SUMS
    scale, factors = scales[few][:, None, None], multipliers[few].astype(np.int64)[:, None, None]
    halves = (np.arange(*codes) + 0.5 - by.zero_point)[:, None]
    centres = halves / scale
    reach = int(np.ceil(within / scale.min(initial=1.0))) + 1
    sums = np.rint(centres).astype(np.int64) + np.arange(-reach, reach + 1)
    apart = (sums - centres) * scale
    # A sum between two halves belongs to one of them.
    is_near = (np.abs(sums - centres) <= within / scale + 1) & (apart > -0.5) & (apart <= 0.5)
    return NearHalves(sums[is_near], np.broadcast_to(factors, sums.shape)[is_near], by.shift, uncut[few].sum())


def _served(unit: Unit, places: list[int]) -> Iterator[Unit]:
    """Yield a conv with each of some numbers of binary places, where hvx has room for its sums."""
    for bits in places:
        by = replace(unit.conv.requantize, fraction_bits=bits)  # pyright: ignore[reportArgumentType, reportCallIssue]
        found = replace(unit, conv=replace(unit.conv, requantize=by))
        if not sums_refusals(found.alone, "hvx")[0]:
            yield found


def rounded(product: Array, by: Requantize) -> Array:
    """Round exact products half to even, after they are rounded to the stated binary places."""
    assert isinstance(by.shift, int)
    bits = FRACTION_BITS - by.shift
    if by.fraction_bits is not None:
        dropped = FRACTION_BITS - by.lift
        product, bits = (product + (1 << (dropped - 1))) >> dropped, by.fraction_bits
    return (product + ((1 << (bits - 1)) - 1) + ((product >> bits) & 1)) >> bits
