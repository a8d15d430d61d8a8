"""From int32 sums to uint8, in 3 instructions for 128 of them, and 2 more for each 32 with a multiplier."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.schedule.block import Block
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.narrowing import MOST_NARROWING_SHIFT, FixedPoint, Shifts


def narrow(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tirx.Expr:
    """Four vectors of sums to one of bytes: byte 4i + k is lane i of `sums[k]`.

    Both narrowing instructions interleave their operands, so no shuffle is needed.
    """
    if isinstance(how, Shifts):
        first = vector.narrow_words if how.rounds else vector.floor_words
        odd, even = _pairs(block, [first(sums[3], sums[1], how.first), first(sums[2], sums[0], how.first)])
        return block.bind("bytes", vector.narrow_halfwords(odd, even, how.second), vector.VECTOR)
    scaled = [_scaled(block, total, how) for total in sums]
    last = min(how.shift, MOST_NARROWING_SHIFT)
    narrowed = vector.narrow_words if last else vector.floor_words
    odd, even = _pairs(block, [narrowed(scaled[3], scaled[1], last), narrowed(scaled[2], scaled[0], last)])
    if how.zero_point:
        zero_points = vector.splat(how.zero_point * 0x00010001)
        odd, even = _pairs(block, [vector.add_halfwords(half, zero_points) for half in (odd, even)])
    return block.bind("bytes", vector.saturate_halfwords(odd, even), vector.VECTOR)


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
