"""HVX instructions that move bytes and words from lane to lane: dealt, packed, spread, rotated."""

from tvm import tirx

from hexconv.lower.hvx.vector import BYTES, VECTOR, instruction, moved, repeated, signed, splat
from hexconv.schedule.block import Block, int32


def low_bytes(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """The low bytes of the halfwords of `low`, then those of `high`."""
    return instruction("vpackeb", high, low)


def high_bytes(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """The high bytes of the halfwords of `low`, then those of `high`."""
    return instruction("vpackob", high, low)


def interleaved_low_bytes(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Byte 2i is the low byte of halfword i of `even`, 2i + 1 of `odd`."""
    return instruction("vshuffeb", odd, even)


def interleaved_high_bytes(odd: tirx.Expr, even: tirx.Expr) -> tirx.Expr:
    """Byte 2i is the high byte of halfword i of `even`, 2i + 1 of `odd`."""
    return instruction("vshuffob", odd, even)


def deal_halfwords(value: tirx.Expr) -> tirx.Expr:
    """Even halfwords to the lower half, odd halfwords to the upper half."""
    return instruction("vdealh", value)


def flipped(value: tirx.Expr) -> tirx.Expr:
    """128 added to every byte, which makes signed bytes unsigned, and back."""
    return tirx.bitwise_xor(value, splat(signed(0x80808080)))


def deal_bytes(value: tirx.Expr) -> tirx.Expr:
    """Even bytes to the lower half, odd bytes to the upper half."""
    return instruction("vdealb", value)


def shuffle_bytes(value: tirx.Expr) -> tirx.Expr:
    """Bytes of the lower half to even places, of the upper half to odd ones: `deal_bytes` back."""
    return instruction("vshuffb", value)


def deal_words(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """A pair of vectors: the even words of `low` then `high`, and their odd words."""
    return instruction("vdealvdd", high, low, int32(-4), result="int32x64")


def shuffle_words(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """A pair of vectors: words of `low` in even places, of `high` in odd ones: `deal_words` back."""
    return instruction("vshuffvdd", high, low, int32(-4), result="int32x64")


def exchange(high: tirx.Expr, low: tirx.Expr, run: int) -> tirx.Expr:
    """A pair of vectors: of each two runs of so many bytes, a power of two, the first ones, then the second ones.

    low, high    a0 a1 a2 a3, b0 b1 b2 b3    becomes    a0 b0 a2 b2, a1 b1 a3 b3
    """
    return instruction("vshuffvdd", high, low, int32(run), result="int32x64")


def twice(block: Block, value: tirx.Expr) -> tirx.Expr:
    """The lower half of a vector in both halves."""
    return block.bind("twice", lower(exchange(value, value, BYTES // 2)), VECTOR)


def way_to_word(word: int) -> tirx.Expr:
    """What `spread` wants to know of a word: for each byte, the halves, quarters, .. in which its place differs."""
    return moved(repeated([(byte ^ word * 4) & 0x7C for byte in range(BYTES)]))


def spread(value: tirx.Expr, way: tirx.Expr) -> tirx.Expr:
    """One word of a vector in every lane."""
    return instruction("vdelta", value, way)


def rotated(value: tirx.Expr, count: int) -> tirx.Expr:
    """The bytes of a vector from byte `count` on, then those before it."""
    return instruction("vror", value, int32(count))


def aligned(high: tirx.Expr, low: tirx.Expr, byte: tirx.Expr) -> tirx.Expr:
    """128 bytes of two vectors, from byte `byte` modulo 128 of `low` on.

    The remainder is taken here, though the instruction would: where LLVM finds `byte` to be 128, it writes
    `vlalign(high,low,#0)`, which is `high`.
    """
    return instruction("valignb", high, low, byte & int32(BYTES - 1))


def lower(pair: tirx.Expr) -> tirx.Expr:
    """The first vector of a pair."""
    return instruction("lo", pair)


def upper(pair: tirx.Expr) -> tirx.Expr:
    """The second vector of a pair."""
    return instruction("hi", pair)
