"""HVX instructions as TIR expressions: one call, one instruction of the hardware.

A vector is 128 bytes, `int32x32` whatever its lanes mean; names and lane orders are those of Qualcomm's HVX
programmer's reference, as LLVM spells them (`llvm.hexagon.V6.*.128B`).
"""

from collections.abc import Sequence

from tvm import tirx

from hexconv.schedule.block import int32

VECTOR = "int32x32"
BYTES = 128
WORDS = 32


def _call(name: str, *operands: object, result: str = VECTOR) -> tirx.Expr:
    return tirx.call_llvm_pure_intrin(result, f"llvm.hexagon.V6.{name}.128B", *operands)


def load(buffer: tirx.Buffer, byte: object) -> tirx.Expr:
    """128 bytes of a uint8 or int8 buffer, from byte `byte` on."""
    return tirx.reinterpret(VECTOR, tirx.BufferLoad(buffer, [tirx.Ramp(byte, 1, BYTES)]))


def stored(value: tirx.Expr) -> tirx.Expr:
    """A vector as the 128 bytes that a uint8 buffer takes."""
    return tirx.reinterpret(f"uint8x{BYTES}", value)


def at(byte: object) -> tirx.Expr:
    """The index of the 128 bytes from `byte` on."""
    return tirx.Ramp(byte, 1, BYTES)


def splat(word: "int | tirx.Expr") -> tirx.Expr:
    """One word in every lane."""
    return tirx.Broadcast(int32(word) if isinstance(word, int) else word, WORDS)


def dot4(weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Lane i: the sum of 4 products, bytes of lane i of `weights` by bytes of `word`, all unsigned."""
    return _call("vrmpyub", weights, word)


def dot4_add(total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """`total` plus `dot4`."""
    return _call("vrmpyub.acc", total, weights, word)


def signed_dot4(weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """`dot4` of unsigned bytes of `weights` and signed bytes of `word`."""
    return _call("vrmpybus", weights, word)


def signed_dot4_add(total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """`total` plus 4 products in each lane, unsigned bytes of `weights` by signed bytes of `word`."""
    return _call("vrmpybus.acc", total, weights, word)


def signed_bytes_dot4_add(total: tirx.Expr, one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """`total` plus 4 products in each lane, signed bytes of two vectors."""
    return _call("vrmpybv.acc", total, one, other)


def narrow_words(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Words to halfwords, rounded, shifted right, saturated; halfword 2i is lane i of `even`, 2i + 1 of `odd`."""
    return _call("vasrwhrndsat", odd, even, int32(shift))


def floor_words(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """`narrow_words` without rounding."""
    return _call("vasrwhsat", odd, even, int32(shift))


def shift_right(words: tirx.Expr, shift: int) -> tirx.Expr:
    """Words shifted right, without rounding."""
    return _call("vasrw", words, int32(shift))


def add_halfwords(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Signed halfwords added, saturated."""
    return _call("vaddhsat", one, other)


def narrow_halfwords(odd: tirx.Expr, even: tirx.Expr, shift: int) -> tirx.Expr:
    """Signed halfwords to unsigned bytes, rounded, shifted right and saturated, interleaved as `narrow_words`."""
    return _call("vasrhubrndsat", odd, even, int32(shift))


def saturate_halfwords(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Signed halfwords to unsigned bytes, saturated, interleaved as `narrow_words`."""
    return _call("vsathub", odd, even)


def multiply_low(words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """Words by the low unsigned halfwords of `factors`, without the low 16 bits."""
    return _call("vmpyewuh", words, factors)


def multiply_high_add(low: tirx.Expr, words: tirx.Expr, factors: tirx.Expr) -> tirx.Expr:
    """`low` plus words by the high halfwords of `factors`, doubled, rounded and saturated to the high 32 bits."""
    return _call("vmpyowh.rnd.sacc", low, words, factors)


def shift_left(words: tirx.Expr, bits: int) -> tirx.Expr:
    """Words shifted left."""
    return _call("vaslw", words, int32(bits))


def shift_left_add(total: tirx.Expr, words: tirx.Expr, bits: int) -> tirx.Expr:
    """`total` plus words shifted left."""
    return _call("vaslw.acc", total, words, int32(bits))


def low_bytes(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """The low bytes of the halfwords of `low`, then those of `high`."""
    return _call("vpackeb", high, low)


def high_bytes(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """The high bytes of the halfwords of `low`, then those of `high`."""
    return _call("vpackob", high, low)


def interleaved_low_bytes(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Byte 2i is the low byte of halfword i of `even`, 2i + 1 of `odd`."""
    return _call("vshuffeb", odd, even)


def interleaved_high_bytes(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Byte 2i is the high byte of halfword i of `even`, 2i + 1 of `odd`."""
    return _call("vshuffob", odd, even)


def deal_halfwords(value: tirx.Expr) -> tirx.Expr:
    """Even halfwords to the lower half, odd halfwords to the upper half."""
    return _call("vdealh", value)


def flipped(value: tirx.Expr) -> tirx.Expr:
    """128 added to every byte, which makes signed bytes unsigned, and back."""
    return tirx.bitwise_xor(value, splat(signed(0x80808080)))


def deal_bytes(value: tirx.Expr) -> tirx.Expr:
    """Even bytes to the lower half, odd bytes to the upper half."""
    return _call("vdealb", value)


def deal_words(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """A pair of vectors: the even words of `low` then `high`, and their odd words."""
    return _call("vdealvdd", high, low, int32(-4), result="int32x64")


def lower(pair: tirx.Expr) -> tirx.Expr:
    """The first vector of a pair."""
    return _call("lo", pair)


def upper(pair: tirx.Expr) -> tirx.Expr:
    """The second vector of a pair."""
    return _call("hi", pair)


def filled(byte: int) -> tirx.Expr:
    """128 equal bytes that LLVM doesn't take for a constant: a loop that stores them is no call of memset."""
    return moved(splat(signed(byte * 0x01010101)))


def signed(word: int) -> int:
    """32 bits as Python's int32."""
    return (word & 0xFFFFFFFF) - ((word & 0x80000000) << 1)


def repeated(pattern: Sequence[int]) -> tirx.Expr:
    """A constant of 128 bytes."""
    words = [signed(int.from_bytes(bytes(pattern[at : at + 4]), "little")) for at in range(0, BYTES, 4)]
    return tirx.Shuffle([int32(word) for word in words], [int32(lane) for lane in range(WORDS)])


def moved(value: tirx.Expr) -> tirx.Expr:
    """A vector, unchanged, that LLVM doesn't know to be so: a loop that copies through it is no call of memcpy."""
    return _call("vassign", value)


def concealed(word: tirx.Expr) -> tirx.Expr:
    """A word, unchanged, that LLVM doesn't know to be so."""
    return tirx.call_llvm_pure_intrin("int32", "llvm.hexagon.A2.or", word, word)
