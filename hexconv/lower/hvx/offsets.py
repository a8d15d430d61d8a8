"""Compute the offset of each output channel's sums: its bias, and the correction for the zero point of the input.

    sum((a - za) * (w - zw)) = sum(a * w) - zw * sum(a) - za * sum(w) + n * za * zw

The tiles take care of sum(a). Channels that the source lacks hold its zero point, so that they count nothing, whatever
the filter has there.
"""

from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.lower.conv_step import StepOperands
from hexconv.lower.hvx import dots, vector
from hexconv.lower.hvx.inner import VECTOR_BYTES, InnerConv
from hexconv.lower.hvx.planes import Planes
from hexconv.lower.hvx.reduce import ONES
from hexconv.lower.hvx.taps import taps_sum, taps_zero
from hexconv.lower.hvx.tile import offset_of
from hexconv.lower.hvx.words import words_sum
from hexconv.schedule.block import Block, int32, vector_register
from hexconv.spec.extents import CHANNEL_BLOCK

WHOLE = tirx.Ramp(0, 1, vector.WORDS)


@dataclass(frozen=True)
class Offsets:
    """The offsets of one step.

    Attributes:
        memory: int32, the offsets of all channels.
        bias: the argument that holds the bias, if there is one.
        block: the first block of 32 channels of the step.
        operands: the operands of the step.
        taps: the taps of a depthwise conv, as they are laid out; else None.
        planes: the planes and words of a conv whose lanes are pixels; else None.
    """

    memory: tirx.Buffer
    bias: tirx.Buffer | None
    block: tirx.Expr
    operands: StepOperands
    taps: tirx.Buffer | None = None
    planes: Planes | None = None


def stage_offsets(block: Block, conv: InnerConv, offsets: Offsets, blocks: int) -> None:
    """Compute and store the offsets of `blocks` blocks of channels."""
    memory = offsets.memory
    summed = conv.filter_steps if conv.sums_windows_ahead else conv.multiplied_steps
    count, zero = summed * WORD_CHANNELS, conv.filter_zero
    if conv.depthwise:
        count, zero = conv.kernel[0] * conv.kernel[1], taps_zero(conv)
    if conv.pixels:
        zero = 0  # of words as they are laid out
    if conv.dense:
        count = conv.kernel[0] * conv.dense.window_bytes
    constant = offset_of(conv.offset + count * conv.in_zero * zero)

    def one(at: Block, part: tirx.Expr) -> None:
        first = at.bind("first", (offsets.block + part) * CHANNEL_BLOCK)
        value: tirx.Expr = constant
        if offsets.bias is not None:
            value = value + _bias(at, conv, offsets.bias, memory, first)
        if conv.in_zero:
            value = value - _summed(at, conv, offsets, part) * vector.splat(conv.in_zero)
        at.store(memory, tirx.Ramp(first, 1, CHANNEL_BLOCK), value)

    block.loop("block", blocks, one)


def _summed(block: Block, conv: InnerConv, offsets: Offsets, part: tirx.Expr) -> tirx.Expr:
    """Sum each channel's weights in the form in which the kernel multiplies them."""
    if offsets.planes:
        return words_sum(block, offsets.planes, offsets.block + part)
    if offsets.taps is not None:
        return taps_sum(block, conv, offsets.taps, offsets.block + part)
    return _filter_sum(block, conv, offsets.operands, part)


def _bias(block: Block, conv: InnerConv, bias: tirx.Buffer, memory: tirx.Buffer, first: tirx.Expr) -> tirx.Expr:
    """Load the bias of 32 channels; where the bias ends inside of the block, copy it to the offsets' memory first."""
    lanes = tirx.Ramp(first, 1, CHANNEL_BLOCK)
    if conv.last_channels == CHANNEL_BLOCK:
        return block.bind("bias", tirx.BufferLoad(bias, [lanes]), vector.VECTOR)

    def channel(at: Block, lane: tirx.Expr) -> None:
        place = tirx.min(first + lane, conv.out_channels - 1)
        at.store(memory, first + lane, tirx.BufferLoad(bias, [place]))

    def whole(at: Block) -> None:
        at.store(memory, lanes, tirx.BufferLoad(bias, [lanes]))

    end = first + CHANNEL_BLOCK
    block.when(end <= conv.out_channels, whole)
    block.when(end > conv.out_channels, lambda at: at.loop("channel", CHANNEL_BLOCK, channel))
    return block.bind("bias", tirx.BufferLoad(memory, [lanes]), vector.VECTOR)


def _filter_sum(block: Block, conv: InnerConv, operands: StepOperands, part: tirx.Expr) -> tirx.Expr:
    """Sum each channel's weights in the filter cache, as far as tiles multiply them."""
    register = vector_register(block, "filter_sum")
    block.store(register, WHOLE, vector.splat(0))
    side = int32(conv.side_by_side)
    first = tirx.floordiv(part, side) * conv.group_bytes + tirx.floormod(part, side) * VECTOR_BYTES
    base = block.bind("base", operands.filter_origin + first)

    def add(at: Block, index: tirx.Expr) -> None:
        weights = vector.load(operands.filter, base + index * (conv.side_by_side * VECTOR_BYTES))
        at.store(register, WHOLE, dots.dot4_add(tirx.BufferLoad(register, [WHOLE]), weights, int32(ONES)))

    runs = conv.filter_steps // conv.plane.words if conv.multiplied_words < conv.plane.words else 1
    words = conv.multiplied_steps // runs

    def add_run(at: Block, run: tirx.Expr) -> None:
        at.loop("step", words, lambda inner, index: add(inner, run * conv.plane.words + index))

    block.loop("run", runs, add_run)
    return block.bind("filter_sum", tirx.BufferLoad(register, [WHOLE]), vector.VECTOR)
