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

from hexconv.kernel.hvx.tiles import PAIR_BYTES
from hexconv.schedule.block import int32

VECTOR = "int32x32"
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
