"""From int32 sums to uint8, in 3 instructions for 128 of them, and 2 more for each 32 with a multiplier."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.schedule.block import Block
from hexconv.schedule.hvx import vector
from hexconv.spec.narrowing import MOST_NARROWING_SHIFT, FixedPoint, Shifts


def narrow(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tirx.Expr:
    """Four vectors of sums to one of bytes: byte 4i + k is lane i of `sums[k]`.

    Both narrowing instructions interleave their operands, so no shuffle is needed.
    """
    odd, even = _halfwords(block, sums, how)
    if isinstance(how, Shifts):
        return block.bind("bytes", vector.narrow_halfwords(odd, even, how.second), vector.VECTOR)
    if how.zero_point:
        zero_points = vector.splat(how.zero_point * 0x00010001)
        odd, even = _pairs(block, [vector.add_halfwords(half, zero_points) for half in (odd, even)])
    return block.bind("bytes", vector.saturate_halfwords(odd, even), vector.VECTOR)


def split(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tuple[tirx.Expr, tirx.Expr]:
    """Four vectors of sums to one of high bytes, made unsigned, and one of low bytes, both in the order of `narrow`."""
    odd, even = _halfwords(block, sums, how)
    high = vector.flipped(vector.interleaved_high_bytes(odd, even))
    low = vector.interleaved_low_bytes(odd, even)
    return block.bind("high", high, vector.VECTOR), block.bind("low", low, vector.VECTOR)


def two_pixels(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tirx.Expr:
    """Two vectors of sums to one of halfwords: those of the first, then those of the second."""
    ready = _ready(block, sums, how)
    halfwords = block.bind("halfwords", _narrowed(ready[1], ready[0], how), vector.VECTOR)
    return block.bind("pixels", vector.deal_halfwords(halfwords), vector.VECTOR)


def _halfwords(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tuple[tirx.Expr, tirx.Expr]:
    """Four vectors of sums to two of halfwords: of the odd ones and of the even ones."""
    ready = _ready(block, sums, how)
    return _pairs(block, [_narrowed(ready[3], ready[1], how), _narrowed(ready[2], ready[0], how)])


def _ready(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> Sequence[tirx.Expr]:
    """Sums with nothing left to do but shifts."""
    return sums if isinstance(how, Shifts) else [_scaled(block, total, how) for total in sums]


def _narrowed(odd: tirx.Expr, even: tirx.Expr, how: Shifts | FixedPoint) -> tirx.Expr:
    """Words to halfwords."""
    if isinstance(how, Shifts):
        return (vector.narrow_words if how.rounds else vector.floor_words)(odd, even, how.first)
    last = min(how.shift, MOST_NARROWING_SHIFT)
    return (vector.narrow_words if last else vector.floor_words)(odd, even, last)


def _pairs(block: Block, halves: Sequence[tirx.Expr]) -> tuple[tirx.Expr, tirx.Expr]:
    odd, even = halves
    return block.bind("odd", odd, vector.VECTOR), block.bind("even", even, vector.VECTOR)


def _scaled(block: Block, total: tirx.Expr, how: FixedPoint) -> tirx.Expr:
    """(total * multiplier + 2**30) >> 31: an instruction for each half of the multiplier."""
    factors = vector.splat(how.multiplier)
    low = block.bind("low", vector.multiply_low(total, factors), vector.VECTOR)
    scaled = block.bind("scaled", vector.multiply_high_add(low, total, factors), vector.VECTOR)
    if how.ties_away:
        scaled = block.bind("nudged", scaled + vector.shift_right(scaled, 31), vector.VECTOR)
    if how.shift > MOST_NARROWING_SHIFT:
        # floors of floors: what doesn't fit the last, rounding shift may go ahead of it without rounding
        scaled = block.bind("shifted", vector.shift_right(scaled, how.shift - MOST_NARROWING_SHIFT), vector.VECTOR)
    return scaled


def deal_pixels(block: Block, interleaved: tirx.Expr) -> tirx.Expr:
    """Byte 4i + p (pixel p, channel i) to byte 32p + i: two deals."""
    once = block.bind("dealt", vector.deal_bytes(interleaved), vector.VECTOR)
    return block.bind("pixels", vector.deal_bytes(once), vector.VECTOR)
