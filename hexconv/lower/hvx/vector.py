"""HVX instructions as TIR expressions: one call, one instruction of the hardware.

A vector is 128 bytes, `int32x32` whatever its lanes mean; names and lane orders are those of Qualcomm's HVX
programmer's reference, as LLVM spells them (`llvm.hexagon.V6.*.128B`). Here are words: what is loaded, stored, constant
or shifted. `dots` has products, `scaling` the way from sums to bytes, `across` what goes from lane to lane.
"""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call
from tvm.target import codegen

from hexconv.schedule.block import int32

VECTOR = "int32x32"
CONCEALING = {"int32": "llvm.hexagon.A2.or", "int64": "llvm.hexagon.A2.orp"}
"""Instructions that LLVM doesn't look into: a word or the same word is that word."""
BYTES = 128
WORDS = 32


def instruction(name: str, *operands: object, result: str = VECTOR) -> tirx.Expr:
    """One instruction, by its name without prefix and suffix."""
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


def shift_right(words: tirx.Expr, shift: int) -> tirx.Expr:
    """Words shifted right, without rounding."""
    return instruction("vasrw", words, int32(shift))


def shift_right_by(words: tirx.Expr, bits: tirx.Expr) -> tirx.Expr:
    """Words shifted right, each lane by its own number of bits, without rounding."""
    return instruction("vasrwv", words, bits)


def shift_left_by(words: tirx.Expr, bits: tirx.Expr) -> tirx.Expr:
    """Words shifted left, each lane by its own number of bits."""
    return instruction("vaslwv", words, bits)


def leading_zeros(words: tirx.Expr) -> tirx.Expr:
    """Zeros above the highest one of each word."""
    return instruction("vcl0w", words)


def less_one_where(words: tirx.Expr, some: tirx.Expr, equal: tirx.Expr) -> tirx.Expr:
    """Words, less one in lanes where `some` and `equal` are the same."""
    lanes = instruction("veqw", some, equal, result=f"boolx{BYTES}")
    return instruction("vsubwq", lanes, words, splat(1))


def shift_left(words: tirx.Expr, bits: int) -> tirx.Expr:
    """Words shifted left."""
    return instruction("vaslw", words, int32(bits))


def shift_left_add(total: tirx.Expr, words: tirx.Expr, bits: int) -> tirx.Expr:
    """`total` plus words shifted left."""
    return instruction("vaslw.acc", total, words, int32(bits))


def shift_right_add(total: tirx.Expr, words: tirx.Expr, bits: int) -> tirx.Expr:
    """`total` plus words shifted right, without rounding."""
    return instruction("vasrw.acc", total, words, int32(bits))


def shift_right_logical(words: tirx.Expr, bits: int) -> tirx.Expr:
    """Words shifted right, zeros behind."""
    return instruction("vlsrw", words, int32(bits))


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
    return instruction("vassign", value)


def concealed(word: tirx.Expr) -> tirx.Expr:
    """A word, unchanged, that LLVM doesn't know to be so."""
    return tirx.call_llvm_pure_intrin("int32", CONCEALING["int32"], word, word)


def revealed(body: tirx.Stmt) -> tirx.Stmt:
    """Statements with the words themselves where `concealed` was."""
    conceals = [codegen.llvm_lookup_intrinsic_id(name) for name in CONCEALING.values()]

    def shown(call: Call) -> tirx.Expr:
        is_hidden = call.op.name == "tirx.call_llvm_pure_intrin" and int(call.args[0]) in conceals
        return call.args[1] if is_hidden else call

    return tvm_ffi.structural_map(body, (Call, shown))


def concealed_bytes(value: tirx.Expr, dtype: str) -> tirx.Expr:
    """1, 2, 4 or 8 bytes, unchanged, that LLVM doesn't know to be so: a loop that copies through it isn't memcpy.

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
