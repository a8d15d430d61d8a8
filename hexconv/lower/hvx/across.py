"""HVX instructions that move bytes and words between lanes: they deal, pack, spread, rotate and exchange."""

from collections.abc import Sequence

from tvm import tirx

from hexconv.lower.hvx.vector import BYTES, VECTOR, instruction, moved, repeated, signed, splat
from hexconv.schedule.block import Block, int32


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
    return instruction("vdealvdd", high, low, int32(-4), result="int32x64")


def shuffle_words(high: tirx.Expr, low: tirx.Expr) -> tirx.Expr:
    """Undo `deal_words`: return a pair whose even words come from `low` and whose odd words come from `high`."""
    return instruction("vshuffvdd", high, low, int32(-4), result="int32x64")


def exchange(high: tirx.Expr, low: tirx.Expr, run: int) -> tirx.Expr:
    """Return a pair of vectors: the first one of each two runs of `run` bytes, and the second one of each two.

    `run` is a power of two.

    low, high    a0 a1 a2 a3, b0 b1 b2 b3    becomes    a0 b0 a2 b2, a1 b1 a3 b3
    """
    return instruction("vshuffvdd", high, low, int32(run), result="int32x64")


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


def spread_pixels(value: tirx.Expr, channels: int) -> tirx.Expr:
    """Give each of 32 pixels of 1 to 3 bytes, which lie side by side, a word of its own; its other bytes may be any.

    Bytes go to their places by exchanges over 64, 32, .. 1 bytes. Since pixels keep their order and move apart, no two
    bytes need the same place on the way.
    """
    steps = [0] * BYTES
    for byte in range(BYTES):
        pixel, channel = divmod(byte, 4)
        source = pixel * channels + channel
        for over in (64, 32, 16, 8, 4, 2, 1) if channel < channels else ():
            steps[byte & -over | source & over - 1] |= (source ^ byte) & over
    return spread(value, repeated(steps))


def rotated(value: tirx.Expr, count: int) -> tirx.Expr:
    """Rotate a vector: its bytes from byte `count` on come first, those before it last."""
    return instruction("vror", value, int32(count))


def aligned(high: tirx.Expr, low: tirx.Expr, byte: tirx.Expr) -> tirx.Expr:
    """Take 128 bytes out of two vectors, from byte `byte` modulo 128 of `low` on.

    The code takes the remainder, though the instruction would too: where LLVM finds `byte` to be 128, it writes
    `vlalign(high,low,#0)`, which is `high`.
    """
    return instruction("valignb", high, low, byte & int32(BYTES - 1))


def lower(pair: tirx.Expr) -> tirx.Expr:
    """Return the first vector of a pair."""
    return instruction("lo", pair)


def upper(pair: tirx.Expr) -> tirx.Expr:
    """Return the second vector of a pair."""
    return instruction("hi", pair)
