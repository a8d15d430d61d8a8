"""What HVX computes of sums, step by step in numpy, exactly: no step is cut to the bits of its register."""

import numpy as np

from hexconv.compute.reference import Array
from hexconv.spec.narrowing import FixedPoint, Shifts
from hexconv.spec.requantize import LARGEST_MULTIPLIER

WORDS = (-(2**31), 2**31 - 1)
HALFWORDS = (-(2**15), 2**15 - 1)


def words(sums: Array, how: Shifts | FixedPoint) -> dict[str, Array]:
    """What sums, the offset with them, become before they are halfwords, by the names of `hexconv.spec.ranges`."""
    if how.halves:
        sums = sums - ((sums & how.halves.mask) == how.halves.half)
    if isinstance(how, Shifts):
        return {"with offset": sums, "rounded": sums + ((1 << how.first) >> 1 if how.rounds else 0)}
    multiplier, half = how.multiplier or LARGEST_MULTIPLIER, 0 if how.rounds_once and how.shift != 0 else 1 << 30
    steps, value = {"with offset": sums}, sums
    held = np.clip if how.doubles_saturating else lambda doubled, *_: doubled
    if how.shift is None and how.rounds_once:
        value = steps["doubled"] = held(2 * value, *WORDS)
    if how.lift:
        value = steps["lifted"] = value << how.lift
    value = steps["high half"] = (value * multiplier + half) >> 31
    if how.shift is None:  # the worst of all channels: the largest multiplier, and no shift
        if not how.rounds_once:
            nudge = value >> 31 if how.ties_away else 0
            steps |= {"nudged": value + nudge} if how.ties_away and how.doubles_saturating else {}
            value = steps["doubled"] = held(2 * value + nudge, *WORDS)
        return steps | {"rounded": value + 1}
    if halves := how.halves_of_product:
        value = steps["less one"] = value - ((value & halves.mask) == halves.half)
    if how.ties_away:
        value = steps["nudged"] = value + (value >> 31)
    last = min(how.shift, 15)
    if how.shift > last:
        value = steps["shifted"] = value >> (how.shift - last)
    return steps | {"rounded": value + ((1 << last) >> 1)}


def to_halfwords(sums: Array, how: Shifts | FixedPoint) -> Array:
    """The part before bytes, which int16 ends with."""
    last = how.first if isinstance(how, Shifts) else min(how.shift or 0, 15)
    return np.clip(words(sums, how)["rounded"] >> last, *HALFWORDS)


def to_bytes(sums: Array, how: Shifts | FixedPoint) -> Array:
    """All of it, saturation by saturation."""
    halfwords = to_halfwords(sums, how)
    if isinstance(how, Shifts):
        return np.clip((halfwords + ((1 << how.second) >> 1)) >> how.second, 0, 255)
    return np.clip(np.clip(halfwords + how.zero_point, *HALFWORDS), 0, 255)
