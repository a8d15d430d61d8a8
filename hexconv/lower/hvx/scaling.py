"""HVX instructions between sums and results: they multiply, narrow, round, saturate, clamp and look up."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.lower.hvx.vector import instruction, signed, splat
from hexconv.schedule.block import int32


def narrow_words(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Shift words right, round and saturate them to halfwords; halfword 2i is lane i of `even`, 2i + 1 of `odd`."""
    return instruction("vasrwhrndsat", odd, even, int32(shift))


def floor_words(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Do as `narrow_words`, without rounding."""
    return instruction("vasrwhsat", odd, even, int32(shift))


def add_halfwords(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Add signed halfwords, and saturate the sums."""
    return instruction("vaddhsat", one, other)


def narrow_halfwords(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Shift signed halfwords right, round and saturate them to unsigned bytes, interleaved as by `narrow_words`."""
    return instruction("vasrhubrndsat", odd, even, int32(shift))


def saturate_halfwords(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Saturate signed halfwords to unsigned bytes, interleaved as by `narrow_words`."""
    return instruction("vsathub", odd, even)


def looked_up(codes: tirx.Expr, table: Sequence[tirx.Expr]) -> tirx.Expr:
    """Look each byte up in a table of 256 entries, which two vectors hold (`hexconv.kernel.table`); 8 instructions."""
    found = instruction("vlutvvbi", codes, table[0], int32(0))
    for eighth in range(1, 8):
        found = instruction("vlutvvb.oracci", found, codes, table[eighth // 4], int32(eighth))
    return found


def clamped_bytes(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """Clamp unsigned bytes between two constants; one instruction for each end that bytes can pass."""
    value = instruction("vmaxub", value, splat(signed(low * 0x01010101))) if low > 0 else value
    return instruction("vminub", value, splat(signed(high * 0x01010101))) if high < 255 else value


def clamped_halfwords(value: tirx.Expr, low: int, high: int) -> tirx.Expr:
    """Clamp signed halfwords between two constants."""
    value = instruction("vmaxh", value, splat(signed((low & 0xFFFF) * 0x00010001))) if low > -(2**15) else value
    return instruction("vminh", value, splat(signed((high & 0xFFFF) * 0x00010001))) if high < 2**15 - 1 else value


def multiply_low(words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """Multiply words by the low unsigned halfwords of `factors`, and drop the low 16 bits."""
    return instruction("vmpyewuh", words, factors)


def multiply_high_add(low: tirx.Expr, words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """Add to `low` the words times the high halfwords of `factors`; double, round and saturate to the high 32 bits."""
    return instruction("vmpyowh.rnd.sacc", low, words, factors)


def multiply_high_add_floor(low: tirx.Expr, words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """Do as `multiply_high_add`, without rounding."""
    return instruction("vmpyowh.sacc", low, words, factors)
