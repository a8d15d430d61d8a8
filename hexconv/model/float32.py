"""Round products to few binary places where that comes nearer to ONNX Runtime's float32 than the exact product does.

ONNX Runtime rounds the product of a sum and the scale to float32, then to an integer, half to even. Where the scale
lies next to a fraction of small numbers, float32 rounds the products of many sums onto a half. An exact product lies
beside these halves, so every second of such sums gives another result. A product that is rounded to F binary places
first lies on them too: all products within 2**-(F + 1) of a half do. Too few places make halves of products that are
none in float32.

Only sums whose products lie next to a half can differ. There are 255 halves between 256 codes, so they are all
looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hexconv.kernel.depthwise import BYTES
from hexconv.model.constants import Array
from hexconv.model.unit import Unit
from hexconv.spec import Requantize
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.requantize import FRACTION_BITS
from hexconv.spec.room import sums_refusals

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
