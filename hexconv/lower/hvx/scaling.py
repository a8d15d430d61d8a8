"""HVX instructions between sums and results: words multiplied, narrowed, rounded, saturated, clamped, looked up."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.lower.hvx.vector import instruction, signed, splat
from hexconv.schedule.block import int32


def narrow_words(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Words to halfwords, rounded, shifted right, saturated; halfword 2i is lane i of `even`, 2i + 1 of `odd`."""
    return instruction("vasrwhrndsat", odd, even, int32(shift))


def floor_words(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """`narrow_words` without rounding."""
    return instruction("vasrwhsat", odd, even, int32(shift))


def add_halfwords(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Signed halfwords added, saturated."""
    return instruction("vaddhsat", one, other)


def narrow_halfwords(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Signed halfwords to unsigned bytes, rounded, shifted right and saturated, interleaved as `narrow_words`."""
    return instruction("vasrhubrndsat", odd, even, int32(shift))


def saturate_halfwords(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Signed halfwords to unsigned bytes, saturated, interleaved as `narrow_words`."""
    return instruction("vsathub", odd, even)


def looked_up(codes: tirx.Expr, table: Sequence[tirx.Expr]) -> tirx.Expr:
    """For each byte its entry in a table of 256, as two vectors have it (`hexconv.kernel.table`); 8 instructions."""
    found = instruction("vlutvvbi", codes, table[0], int32(0))
    for eighth in range(1, 8):
        found = instruction("vlutvvb.oracci", found, codes, table[eighth // 4], int32(eighth))
    return found


def clamped_bytes(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """Unsigned bytes held between two constants; an instruction for each end that bytes go beyond."""
    value = instruction("vmaxub", value, splat(signed(low * 0x01010101))) if low > 0 else value
    return instruction("vminub", value, splat(signed(high * 0x01010101))) if high < 255 else value


def clamped_halfwords(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """Signed halfwords held between two constants."""
    value = instruction("vmaxh", value, splat(signed((low & 0xFFFF) * 0x00010001))) if low > -(2**15) else value
    return instruction("vminh", value, splat(signed((high & 0xFFFF) * 0x00010001))) if high < 2**15 - 1 else value


def multiply_low(words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """Words by the low unsigned halfwords of `factors`, without the low 16 bits."""
    return instruction("vmpyewuh", words, factors)


def multiply_high_add(low: tirx.Expr, words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """`low` plus words by the high halfwords of `factors`, doubled, rounded and saturated to the high 32 bits."""
    return instruction("vmpyowh.rnd.sacc", low, words, factors)


def multiply_high_add_floor(low: tirx.Expr, words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """`multiply_high_add` without rounding."""
    return instruction("vmpyowh.sacc", low, words, factors)
