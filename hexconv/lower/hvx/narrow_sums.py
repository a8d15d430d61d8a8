"""Requantise int32 sums to uint8: 3 instructions for 128 sums, and 2 more for each 32 if there is a multiplier.

Rounding ties to even takes 3 more for each 32 sums; a shift per channel takes 2 more; sums that are lifted, so that
their products have enough fraction bits, take 1 more.
"""

from collections.abc import Mapping, Sequence

from tvm import tirx

from hexconv.lower.hvx import instructions
from hexconv.spec.narrowing import MOST_NARROWING_SHIFT, FixedPoint, Halves, Shifts
from hexconv.tir.statements import Block

Lanes = Mapping[str, tirx.Expr]
"""The per-channel values of a vector of sums, by name (`FixedPoint.vectors`)."""


def narrow(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint, lanes: Sequence[Lanes]) -> tirx.Expr:
    """Narrow four vectors of sums to one vector of bytes: byte 4i + k is lane i of `sums[k]`.

    Both narrowing instructions interleave their operands, so no shuffle is needed.

    Args:
        block: the block to emit into.
        sums: four vectors of 32 int32 sums each.
        how: the sequence of instructions that narrows.
        lanes: the per-channel values of each vector of sums; empty where there are none.
    """
    return narrow_ready(block, ready_sums(block, sums, how, lanes), how)


def narrow_ready(block: Block, ready: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tirx.Expr:
    """Narrow four vectors as `narrow` does, after `ready_sums`: only shifts are left to do."""
    odd, even = _halfwords(block, ready, how)
    if isinstance(how, Shifts):
        return block.bind("bytes", instructions.narrow_halfwords(odd, even, how.second), instructions.VECTOR)
    if how.zero_point:
        zero_points = instructions.splat(how.zero_point * 0x00010001)
        odd, even = _pairs(block, [instructions.add_halfwords(half, zero_points) for half in (odd, even)])
    return block.bind("bytes", instructions.saturate_halfwords(odd, even), instructions.VECTOR)


def split(
    block: Block,
    sums: Sequence[tirx.Expr],
    how: Shifts | FixedPoint,
    lanes: Sequence[Lanes],
    codes: tuple[int, int],
) -> tuple[tirx.Expr, tirx.Expr]:
    """Narrow four vectors of sums to one of high bytes and one of low bytes, in `narrow`'s order, within `codes`."""
    ready = ready_sums(block, sums, how, lanes)
    odd, even = (instructions.clamped_halfwords(half, *codes) for half in _halfwords(block, ready, how))
    high = instructions.interleaved_high_bytes(odd, even)
    low = instructions.interleaved_low_bytes(odd, even)
    return block.bind("high", high, instructions.VECTOR), block.bind("low", low, instructions.VECTOR)


def two_pixels(block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint, lanes: Sequence[Lanes]) -> tirx.Expr:
    """Narrow two vectors of sums to one vector of halfwords: those of the first, then those of the second."""
    ready = ready_sums(block, sums, how, lanes)
    halfwords = block.bind("halfwords", _narrowed(ready[1], ready[0], how), instructions.VECTOR)
    return block.bind("pixels", instructions.deal_halfwords(halfwords), instructions.VECTOR)


def _halfwords(block: Block, ready: Sequence[tirx.Expr], how: Shifts | FixedPoint) -> tuple[tirx.Expr, tirx.Expr]:
    """Narrow four vectors to two vectors of halfwords, after `ready_sums`: those of the odd and of the even ones."""
    return _pairs(block, [_narrowed(ready[3], ready[1], how), _narrowed(ready[2], ready[0], how)])


def ready_sums(
    block: Block, sums: Sequence[tirx.Expr], how: Shifts | FixedPoint, lanes: Sequence[Lanes]
) -> Sequence[tirx.Expr]:
    """Do all of narrowing but the last shifts."""
    if isinstance(how, Shifts):
        return [_to_even(block, total, how.halves) for total in sums] if how.halves else sums
    return [_scaled(block, total, how, of) for total, of in zip(sums, lanes or [{}] * len(sums), strict=True)]


def _to_even(block: Block, total: tirx.Expr, halves: Halves) -> tirx.Expr:
    """Subtract one from the sums, or products, that lie half way above an even result."""
    mask, half = (instructions.splat(instructions.signed(word)) for word in (halves.mask, halves.half))
    return _less_one(block, total, mask, half)


def _less_one(block: Block, total: tirx.Expr, mask: tirx.Expr, half: tirx.Expr) -> tirx.Expr:
    value = instructions.less_one_where(total, tirx.bitwise_and(total, mask), half)
    return block.bind("to_even", value, instructions.VECTOR)


def _narrowed(odd: tirx.Expr, even: tirx.Expr, how: Shifts | FixedPoint) -> tirx.Expr:
    """Narrow words to halfwords."""
    if isinstance(how, Shifts):
        return (instructions.narrow_words if how.rounds else instructions.floor_words)(odd, even, how.first)
    last = 1 if how.shift is None else min(how.shift, MOST_NARROWING_SHIFT)
    return (instructions.narrow_words if last else instructions.floor_words)(odd, even, last)


def _pairs(block: Block, halves: Sequence[tirx.Expr]) -> tuple[tirx.Expr, tirx.Expr]:
    odd, even = halves
    return block.bind("odd", odd, instructions.VECTOR), block.bind("even", even, instructions.VECTOR)


def _scaled(block: Block, total: tirx.Expr, how: FixedPoint, lanes: Lanes) -> tirx.Expr:
    """Compute (total * multiplier + 2**30) >> 31, an instruction a half; if only one step rounds, without 2**30.

    Sums are lifted before that, and products that lie half way above an even result lessened behind it, where the
    sequence says so.
    """
    if how.saturates_at is not None:
        whole = block.bind("whole", instructions.add_saturating(total, lanes["bias"]), instructions.VECTOR)
        total = block.bind(
            "held", instructions.held_within(whole, -how.saturates_at, how.saturates_at), instructions.VECTOR
        )
    if how.halves_per_channel:
        total = _less_one(block, total, lanes["mask"], lanes["half"])
    elif how.halves:
        total = _to_even(block, total, how.halves)
    if how.lift:
        total = block.bind("lifted", instructions.shift_left(total, how.lift), instructions.VECTOR)
    if how.rounds_once and how.shift is None:
        value = _also_unshifted(total, total, lanes) if how.doubles_saturating else total + total
        total = block.bind("doubled", value, instructions.VECTOR)
    factors = lanes["multiplier"] if how.multiplier is None else instructions.splat(how.multiplier)
    low = block.bind("low", instructions.multiply_low(total, factors), instructions.VECTOR)
    is_floor = how.rounds_once and how.shift != 0  # without a shift nothing else rounds
    high = (instructions.multiply_high_add_floor if is_floor else instructions.multiply_high_add)(low, total, factors)
    scaled = block.bind("scaled", high, instructions.VECTOR)
    if how.halves_of_product:
        scaled = _to_even(block, scaled, how.halves_of_product)
    return _shifted(block, scaled, how, lanes)


def _shifted(block: Block, scaled: tirx.Expr, how: FixedPoint, lanes: Lanes) -> tirx.Expr:
    """Do all shifting but the last, rounding shift; where the shift goes by two steps, the first rounds down.

    Halves that are rounded up go away from zero where negative numbers are lessened by one before.
    """
    nudged = instructions.less_one_where_negative
    if how.shift is None:
        # twice the high half, so that a last shift by 1 serves channels that have none of their own
        if how.doubles_saturating and not how.rounds_once:
            doubled = _also_unshifted(nudged(scaled, scaled) if how.ties_away else scaled, scaled, lanes)
        else:
            doubled = scaled if how.rounds_once else scaled + scaled
            doubled = nudged(doubled, scaled) if how.ties_away else doubled
        value = block.bind("doubled", doubled, instructions.VECTOR)
        return block.bind("shifted", instructions.shift_right_by(value, lanes["shift"]), instructions.VECTOR)
    value = block.bind("nudged", nudged(scaled, scaled), instructions.VECTOR) if how.ties_away else scaled
    if how.shift <= MOST_NARROWING_SHIFT:
        return value
    return block.bind("shifted", instructions.shift_right(value, how.shift - MOST_NARROWING_SHIFT), instructions.VECTOR)


def _also_unshifted(value: tirx.Expr, added: tirx.Expr, lanes: Lanes) -> tirx.Expr:
    """Add to `value` in lanes of channels without a shift, whose number of bits is negative; it saturates."""
    return instructions.add_saturating(value, tirx.bitwise_and(added, instructions.negative(lanes["shift"])))


def deal_pixels(block: Block, interleaved: tirx.Expr) -> tirx.Expr:
    """Move byte 4i + p (pixel p, channel i) to byte 32p + i, by two deals."""
    once = block.bind("dealt", instructions.deal_bytes(interleaved), instructions.VECTOR)
    return block.bind("pixels", instructions.deal_bytes(once), instructions.VECTOR)
