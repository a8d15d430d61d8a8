"""Lay out the filter in words of 4 weights of an output channel, in the order of their loads.

Where lanes are pixels, a word is a scalar. Where windows of dense rows are multiplied, 32 words are a vector.
"""

from collections.abc import Mapping, Sequence

from tvm import tirx

from hexconv.kernel.hvx.planes import Read
from hexconv.kernel.hvx.tiles import MADE_UNSIGNED
from hexconv.lower.conv_step import StepOperands
from hexconv.lower.hvx import vector
from hexconv.lower.hvx.inner import VECTOR_BYTES, InnerConv
from hexconv.lower.hvx.planes import Planes
from hexconv.schedule.block import Block, int32

ONES = 0x01010101
WORD = range(4)


def block_bytes(planes: Planes) -> int:
    """Count the bytes of the words of 32 output channels."""
    return planes.layout.steps * VECTOR_BYTES


def stage_words(block: Block, planes: Planes, operands: StepOperands, first: tirx.Expr, blocks: int) -> None:
    """Lay out the filter of `blocks` blocks of channels, from block `first` of the conv on."""
    conv, layout = planes.conv, planes.layout
    side, of_tap = conv.side_by_side, layout.source.words
    reads, taps = layout.reads, conv.kernel[1]

    def one(at: Block, part: tirx.Expr) -> None:
        group, lane = tirx.floordiv(part, int32(side)), tirx.floormod(part, int32(side))
        base = at.bind("base", operands.filter_origin + group * conv.group_bytes + lane * VECTOR_BYTES)
        to = at.bind("to", (first + part) * block_bytes(planes))

        def word(inner: Block, run: tirx.Expr, number: tirx.Expr) -> None:
            lies = inner.bind("lies", run * (taps * of_tap) + number)
            goes = inner.bind("goes", (run * layout.words + number) * len(reads))
            for place, read in enumerate(reads):
                stored = {
                    tap: vector.load(operands.filter, base + (lies + tap * of_tap) * (side * VECTOR_BYTES))
                    for tap, _ in read.taps
                }
                if layout.goes_on:  # several bytes of a word come from one load
                    stored = {tap: inner.bind("stored", load, vector.VECTOR) for tap, load in stored.items()}
                value = inner.bind("word", _word(conv, stored, read), vector.VECTOR)
                inner.store(planes.words, vector.at(to + (goes + place) * VECTOR_BYTES), vector.stored(value))

        at.loop(
            "run",
            conv.kernel[0] * layout.source.count,
            lambda inner, run: inner.loop("word", layout.words, lambda each, number: word(each, run, number)),
        )

    block.loop("block", blocks, one)


def _word(conv: InnerConv, stored: Mapping[int, tirx.Expr], read: Read) -> tirx.Expr:
    """Assemble the weights that a word multiplies, zero where it has none."""
    there = sum(0xFF << 8 * byte for byte in range(len(read.taps)))
    flip = vector.splat(vector.signed(there & MADE_UNSIGNED * ONES))
    if [byte for _, byte in read.taps] == list(WORD) and len(stored) == 1:
        value = stored[read.taps[0][0]]
    else:
        value = vector.splat(0)
        for byte, (tap, channel) in enumerate(read.taps):
            value = tirx.bitwise_or(value, tirx.bitwise_and(_moved(stored[tap], byte - channel), _only(byte)))
    return tirx.bitwise_xor(value, flip) if conv.has_signed_words else vector.moved(value)


def _moved(words: tirx.Expr, up: int) -> tirx.Expr:
    """Move the bytes of words up by `up` bytes, or down if it is negative."""
    if up == 0:
        return words
    return vector.shift_left(words, 8 * up) if up > 0 else vector.shift_right_logical(words, -8 * up)


def _only(byte: int) -> tirx.Expr:
    return vector.splat(vector.signed(0xFF << 8 * byte))


def weights_of(block: Block, words: tirx.Buffer, byte: tirx.Expr, channels: Sequence[int]) -> list[tirx.Expr]:
    """Load the words of some output channels, two at a time; the first channel is even."""
    found: list[tirx.Expr] = []
    for channel in channels[::2]:
        read = tirx.BufferLoad(words, [tirx.Ramp(byte + channel * len(WORD), 1, 2 * len(WORD))])
        pair = block.bind("weights", tirx.reinterpret("int64", read), "int64")
        found += [tirx.Cast("int32", pair), tirx.Cast("int32", pair >> tirx.IntImm("int64", 32))]
    return found[: len(channels)]
