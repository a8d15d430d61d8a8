"""From int32 sums to uint8, in 3 instructions for 128 of them (and 2 more for each 32 with a multiplier)."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.block import Block
from hexconv.schedule.hvx.stage import Multiplier, Shift


def narrow(block: Block, sums: Sequence[tirx.Expr], how: "Shift | Multiplier") -> tirx.Expr:
    """Four vectors of sums to one of bytes: byte 4i + k is lane i of `sums[k]`.

    Both narrowing instructions interleave their operands, so no shuffle is needed.
    """
    scaled = [_scaled(block, total, how) for total in sums]
    shift = how.shift if isinstance(how, Multiplier) else how.first
    odd = block.bind("odd", vector.narrow_words(scaled[3], scaled[1], shift), vector.VECTOR)
    even = block.bind("even", vector.narrow_words(scaled[2], scaled[0], shift), vector.VECTOR)
    if isinstance(how, Multiplier):
        return block.bind("bytes", vector.saturate_halfwords(odd, even), vector.VECTOR)
    return block.bind("bytes", vector.narrow_halfwords(odd, even, how.second), vector.VECTOR)


def _scaled(block: Block, total: tirx.Expr, how: "Shift | Multiplier") -> tirx.Expr:
    """(total * factor + 2**30) >> 31: an instruction for each half of the factor."""
    if isinstance(how, Shift):
        return total
    factors = vector.splat(how.factor)
    low = block.bind("low", vector.multiply_low(total, factors), vector.VECTOR)
    return block.bind("scaled", vector.multiply_high_add(low, total, factors), vector.VECTOR)


def deal_pixels(block: Block, interleaved: tirx.Expr) -> tirx.Expr:
    """Byte 4i + p (pixel p, channel i) to byte 32p + i: two deals."""
    once = block.bind("dealt", vector.deal_bytes(interleaved), vector.VECTOR)
    return block.bind("pixels", vector.deal_bytes(once), vector.VECTOR)
