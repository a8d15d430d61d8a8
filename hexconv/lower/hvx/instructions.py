"""HVX instructions as TIR expressions: one call, one instruction of the hardware.

A vector is 128 bytes, `int32x32` whatever its lanes mean. Names and lane orders are those of Qualcomm's HVX
programmer's reference, as LLVM spells them (`llvm.hexagon.V6.*.128B`). This module loads, stores and shifts, and makes
constants. `dots` multiplies, `scaling` turns sums into bytes, `across` moves data from lane to lane.
"""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.target import codegen

from hexconv.kernel.tiles import PAIR_BYTES
from hexconv.tir.statements import Block, int32

VECTOR, PAIR = "int32x32", "int32x64"
CONCEALING = {"int32": "llvm.hexagon.A2.or", "int64": "llvm.hexagon.A2.orp"}
"""Instructions that LLVM doesn't look into: a word or the same word is that word."""
BYTES = 128
WORDS = 32


def instruction(name: str, *operands: object, result: str = VECTOR) -> tirx.Expr:
    """Call one instruction, by its name without prefix and suffix."""
    return tirx.call_llvm_pure_intrin(result, f"llvm.hexagon.V6.{name}.128B", *operands)


def load(buffer: tirx.Buffer, byte: object) -> tirx.Expr:
    """Load 128 bytes of a uint8 or int8 buffer, from byte `byte` on."""
    return tirx.reinterpret(VECTOR, tirx.BufferLoad(buffer, [tirx.Ramp(byte, 1, BYTES)]))


def doubleword(buffer: tirx.Buffer, byte: object) -> tirx.Expr:
    """Load 8 bytes of a uint8 or int8 buffer, from byte `byte` on: two words."""
    return tirx.reinterpret("int64", tirx.BufferLoad(buffer, [tirx.Ramp(byte, 1, PAIR_BYTES)]))


def halves(pair: tirx.Expr) -> list[tirx.Expr]:
    """Return the two words of a doubleword."""
    return [tirx.Cast("int32", pair), tirx.Cast("int32", pair >> tirx.IntImm("int64", 32))]


def stored(value: tirx.Expr) -> tirx.Expr:
    """Return a vector as the 128 bytes that a uint8 buffer takes."""
    return tirx.reinterpret(f"uint8x{BYTES}", value)


def at(byte: object) -> tirx.Expr:
    """Return the index of the 128 bytes from `byte` on."""
    return tirx.Ramp(byte, 1, BYTES)


def splat(word: "int | tirx.Expr") -> tirx.Expr:
    """Put one word into every lane."""
    return tirx.Broadcast(int32(word) if isinstance(word, int) else word, WORDS)


def splat_byte(byte: tirx.Expr) -> tirx.Expr:
    """Put the low byte of a word into all four bytes of a word."""
    return tirx.call_llvm_pure_intrin("int32", "llvm.hexagon.S2.vsplatrb", byte)


def shift_right(words: tirx.Expr, shift: int) -> tirx.Expr:
    """Shift words right, without rounding."""
    return instruction("vasrw", words, int32(shift))


def shift_right_by(words: tirx.Expr, bits: tirx.Expr) -> tirx.Expr:
    """Shift words right, each lane by its own number of bits, without rounding."""
    return instruction("vasrwv", words, bits)


def less_one_where(words: tirx.Expr, some: tirx.Expr, equal: tirx.Expr) -> tirx.Expr:
    """Subtract one from the words in lanes where `some` and `equal` are the same."""
    lanes = instruction("veqw", some, equal, result=f"boolx{BYTES}")
    return instruction("vsubwq", lanes, words, splat(1))


def upper_halves(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Take the upper half of each word from `one`, and the lower half from `other`."""
    lanes = instruction("vandvrt", splat(signed(0xFFFF0000)), int32(signed(0xFFFF0000)), result=f"boolx{BYTES}")
    return instruction("vmux", lanes, one, other)


def held_within(words: tirx.Expr, least: int, most: int) -> tirx.Expr:
    """Hold words between two constants."""
    return instruction("vmaxw", instruction("vminw", words, splat(most)), splat(least))


def shift_left(words: tirx.Expr, bits: int) -> tirx.Expr:
    """Shift words left."""
    return instruction("vaslw", words, int32(bits))


def shift_left_add(total: tirx.Expr, words: tirx.Expr, bits: int) -> tirx.Expr:
    """Shift words left, and add `total`."""
    return instruction("vaslw.acc", total, words, int32(bits))


def less_one_where_negative(words: tirx.Expr, some: tirx.Expr) -> tirx.Expr:
    """Subtract one from the words in lanes where `some` are negative."""
    return instruction("vasrw.acc", words, some, int32(31))


def negative(words: tirx.Expr) -> tirx.Expr:
    """Set all bits of the words that are negative, and clear all others."""
    return instruction("vasrw", words, int32(31))


def add_saturating(one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Add words; sums saturate."""
    return instruction("vaddwsat", one, other)


def shift_right_logical(words: tirx.Expr, bits: int) -> tirx.Expr:
    """Shift words right, and fill them with zeros."""
    return instruction("vlsrw", words, int32(bits))


def filled(byte: int) -> tirx.Expr:
    """Return 128 equal bytes that LLVM doesn't take for a constant: a loop that stores them is no call of memset."""
    return moved(splat(signed(byte * 0x01010101)))


def signed(word: int) -> int:
    """Return a word of 32 bits as a signed number."""
    return (word & 0xFFFFFFFF) - ((word & 0x80000000) << 1)


def repeated(pattern: Sequence[int]) -> tirx.Expr:
    """Return a constant of 128 bytes: the pattern, repeated."""
    words = [signed(int.from_bytes(bytes(pattern[at : at + 4]), "little")) for at in range(0, BYTES, 4)]
    return tirx.Shuffle([int32(word) for word in words], [int32(lane) for lane in range(WORDS)])


def moved(value: tirx.Expr) -> tirx.Expr:
    """Return a vector unchanged, without LLVM knowing so: a loop that copies through it is no call of memcpy."""
    return instruction("vassign", value)


def concealed(word: tirx.Expr) -> tirx.Expr:
    """Return a word unchanged, without LLVM knowing so."""
    return tirx.call_llvm_pure_intrin("int32", CONCEALING["int32"], word, word)


def revealed(body: tirx.Stmt) -> tirx.Stmt:
    """Put the words themselves into the places where `concealed` hid them."""
    conceals = [codegen.llvm_lookup_intrinsic_id(name) for name in CONCEALING.values()]

    def shown(call: Call) -> tirx.Expr:
        is_hidden = call.op.name == "tirx.call_llvm_pure_intrin" and int(call.args[0]) in conceals
        return call.args[1] if is_hidden else call

    return tvm_ffi.structural_map(body, (Call, shown))


def concealed_bytes(value: tirx.Expr, dtype: str) -> tirx.Expr:
    """Return 1, 2, 4 or 8 bytes unchanged, without LLVM knowing so: a loop that copies through them isn't memcpy.

    Args:
        value: the bytes.
        dtype: what they are, `uint8x4`.
    """
    kind = tvm.DataType(dtype)
    word = f"int{kind.bits * kind.lanes}"
    bits = tirx.reinterpret(word, value)
    if word == "int64":
        return tirx.reinterpret(dtype, tirx.call_llvm_pure_intrin(word, CONCEALING[word], bits, bits))
    return tirx.reinterpret(dtype, tirx.Cast(word, concealed(tirx.Cast("int32", bits))))


def low_bytes(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """Pack the low bytes of the halfwords of `low`, then those of the halfwords of `high`."""
    return instruction("vpackeb", high, low)


def high_bytes(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """Pack the high bytes of the halfwords of `low`, then those of the halfwords of `high`."""
    return instruction("vpackob", high, low)


def interleaved_low_bytes(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Interleave low bytes: byte 2i is that of halfword i of `even`, byte 2i + 1 that of `odd`."""
    return instruction("vshuffeb", odd, even)


def interleaved_high_bytes(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Interleave high bytes: byte 2i is that of halfword i of `even`, byte 2i + 1 that of `odd`."""
    return instruction("vshuffob", odd, even)


def interleaved_low_halfwords(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Interleave low halfwords: halfword 2i is that of word i of `even`, halfword 2i + 1 that of `odd`."""
    return instruction("vshufeh", odd, even)


def interleaved_high_halfwords(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Interleave high halfwords: halfword 2i is that of word i of `even`, halfword 2i + 1 that of `odd`."""
    return instruction("vshufoh", odd, even)


def deal_halfwords(value: tirx.Expr) -> tirx.Expr:
    """Move the even halfwords to the lower half of the vector, the odd ones to the upper half."""
    return instruction("vdealh", value)


def flipped(value: tirx.Expr) -> tirx.Expr:
    """Add 128 to every byte, which turns signed bytes into unsigned ones, and unsigned bytes into signed ones."""
    return tirx.bitwise_xor(value, splat(signed(0x80808080)))


def deal_bytes(value: tirx.Expr) -> tirx.Expr:
    """Move the even bytes to the lower half of the vector, the odd ones to the upper half."""
    return instruction("vdealb", value)


def shuffle_bytes(value: tirx.Expr) -> tirx.Expr:
    """Undo `deal_bytes`: move the bytes of the lower half to even places, those of the upper half to odd ones."""
    return instruction("vshuffb", value)


def deal_words(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """Return a pair of vectors: the even words of `low`, then those of `high`; and the odd words likewise."""
    return dealt(high, low, 4)


def shuffle_words(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """Undo `deal_words`: return a pair whose even words come from `low` and whose odd words come from `high`."""
    return interleaved(high, low, 4)


def exchange(high: tirx.Expr, low: tirx.Expr, run: int) -> tirx.Expr:
    """Return a pair of vectors: the first one of each two runs of `run` bytes, and the second one of each two.

    `run` is a power of two.

    low, high    a0 a1 a2 a3, b0 b1 b2 b3    becomes    a0 b0 a2 b2, a1 b1 a3 b3
    """
    return instruction("vshuffvdd", high, low, int32(run), result=PAIR)


def interleaved(high: tirx.Expr, low: tirx.Expr, size: int) -> tirx.Expr:
    """Return a pair of vectors: units of `size` bytes of `low` and of `high` in turn.

    low, high    a0 a1 a2 a3, b0 b1 b2 b3    becomes    a0 b0 a1 b1, a2 b2 a3 b3
    """
    return instruction("vshuffvdd", high, low, int32(-size), result=PAIR)


def folded(block: Block, vectors: Sequence[tirx.Expr], count: int) -> tirx.Expr:
    """Put the first lanes of up to `count` vectors into one, in their order: a share of 1 / `count` of each.

    `count` is 1, 2 or 4. Places of missing vectors hold anything.
    """
    some, run = [*vectors, *[vectors[-1]] * (count - len(vectors))], BYTES // 2
    while len(some) > 1:
        half = len(some) // 2
        pairs = [exchange(high, low, run) for low, high in zip(some[:half], some[half:], strict=True)]
        some, run = [block.bind("folded", lower(pair), VECTOR) for pair in pairs], run // 2
    return some[0]


def twice(block: Block, value: tirx.Expr) -> tirx.Expr:
    """Put the lower half of a vector into both of its halves."""
    return block.bind("twice", lower(exchange(value, value, BYTES // 2)), VECTOR)


def way_to_word(word: int) -> tirx.Expr:
    """Return the operand by which `spread` finds word `word`.

    Its bytes say in which halves, quarters, ... the place of the word and the place of the byte differ.
    """
    return moved(repeated([(byte ^ word * 4) & 0x7C for byte in range(BYTES)]))


def spread(value: tirx.Expr, way: tirx.Expr) -> tirx.Expr:
    """Copy one word of a vector to every lane; `way` says which (`way_to_word`)."""
    return instruction("vdelta", value, way)


def spread_runs(value: tirx.Expr, run: int, apart: int, target_apart: int) -> tirx.Expr:
    """Move runs of bytes that begin `apart` bytes apart to places `target_apart` bytes apart.

    Bytes between the runs may be any. Bytes go to their places by exchanges over 64, 32, .. 1 bytes. No two bytes need
    the same place on the way where runs keep their order and move apart, nor where up to four runs move closer, each to
    a block of 32 bytes.
    """
    if apart == target_apart:
        return value
    steps = [0] * BYTES
    for byte in range(BYTES):
        number, within = divmod(byte, target_apart)
        source = number * apart + within
        for over in (64, 32, 16, 8, 4, 2, 1) if within < run else ():
            steps[byte & -over | source & over - 1] |= (source ^ byte) & over
    return spread(value, repeated(steps))


def rotated(value: tirx.Expr, count: "int | tirx.Expr") -> tirx.Expr:
    """Rotate a vector: its bytes from byte `count` on come first, those before it last."""
    return instruction("vror", value, int32(count) if isinstance(count, int) else count)


def aligned(high: tirx.Expr, low: tirx.Expr, byte: tirx.Expr) -> tirx.Expr:
    """Take 128 bytes out of two vectors, from byte `byte` modulo 128 of `low` on.

    The code takes the remainder, though the instruction would too: where LLVM finds `byte` to be 128, it writes
    `vlalign(high,low,#0)`, which is `high`.
    """
    return instruction("valignb", high, low, byte & int32(BYTES - 1))


def dealt(high: tirx.Expr, low: tirx.Expr, size: int) -> tirx.Expr:
    """Undo `interleaved`: return a pair of vectors, the even units of `low`, then of `high`; and the odd ones."""
    return instruction("vdealvdd", high, low, int32(-size), result=PAIR)


def lower(pair: tirx.Expr) -> tirx.Expr:
    """Return the first vector of a pair."""
    return instruction("lo", pair)


def upper(pair: tirx.Expr) -> tirx.Expr:
    """Return the second vector of a pair."""
    return instruction("hi", pair)


def dot4(weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add 4 products in each lane: those of the unsigned bytes of lane i of `weights` and of `word`."""
    return instruction("vrmpyub", weights, word)


def dot4_add(total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add `dot4` to `total`."""
    return instruction("vrmpyub.acc", total, weights, word)


def signed_dot4(weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Compute `dot4` of unsigned bytes of `weights` and signed bytes of `word`."""
    return instruction("vrmpybus", weights, word)


def signed_dot4_add(total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of unsigned bytes of `weights` and signed bytes of `word`."""
    return instruction("vrmpybus.acc", total, weights, word)


def signed_bytes_dot4_add(total: tirx.Expr, one: tirx.Expr, other: tirx.Expr) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of the signed bytes of two vectors."""
    return instruction("vrmpybv.acc", total, one, other)


def dot4_of_vectors(
    total: tirx.Expr, one: tirx.Expr, other: tirx.Expr, one_is_signed: bool, other_is_signed: bool
) -> tirx.Expr:
    """Add to `total` 4 products in each lane, of the bytes of two vectors; HVX issues one such instruction a packet."""
    if one_is_signed and other_is_signed:
        return instruction("vrmpybv.acc", total, one, other)
    if one_is_signed:
        return instruction("vrmpybusv.acc", total, other, one)
    return instruction("vrmpybusv.acc" if other_is_signed else "vrmpyubv.acc", total, one, other)


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
    """Look each byte up in a table of 256 entries, which two vectors hold (`hexconv.spec.vectors`); 8 instructions."""
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
