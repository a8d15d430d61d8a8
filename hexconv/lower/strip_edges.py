"""Fill what a strip of columns makes outside of the image: a conv behind it reads padding there.

A kernel makes all columns of a strip, those left and right of the image too. They then get the zero point of the
tensor, row by row:

    for row of the step:
        for column in range(0, first), then range(end, columns): for 8 channels: cache[..] = zero point
"""

from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.compute.stored import Position, Stored
from hexconv.kernel import Forms, has_bytes_apart
from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.lower.conv_step import ConvStep, in_ring
from hexconv.lower.plain.cache import FlatCache
from hexconv.schedule.block import Block
from hexconv.spec import Chain, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.strips import Strips

TOGETHER_BYTES = 8
"""The bytes that are stored at a time."""


@dataclass(frozen=True)
class Edges:
    """The columns of a tensor that may lie outside of the image.

    Attributes:
        strips: the strips of the chain.
        tensor: the number of the tensor; 0 is the input.
        stored: the tensor of a strip.
        unit: the channels that one block of its steps has.
        zero: the zero point of its elements, as they are stored; codes of uint8 are read as int8 there.
        dtype: the dtype of its elements.
    """

    strips: Strips
    tensor: int
    stored: Stored
    unit: int
    zero: int
    dtype: str

    @property
    def columns(self) -> int:
        """The columns that a strip makes."""
        return self.strips.tensors[self.tensor].made


def edges_of(strips: Strips, chain: Chain, index: int, forms: Forms) -> Edges | None:
    """Describe what conv `index` (from 0) makes outside of the image; None where it makes nothing there."""
    if not strips.fills(index + 1):
        return None
    # In blocks of 4 channels int8 lies as uint8, in a buffer of int8.
    flip = MADE_UNSIGNED if forms.channel_units[index + 1] == WORD_CHANNELS and chain.dtype == "int8" else 0
    stored = Stored(tensor_extents(chain)[index + 1], forms.activations[index + 1])
    held = chain.output_zero_point(index + 1) ^ -flip  # its sign bit changes
    return Edges(strips, index + 1, stored, forms.channel_units[index + 1], held, chain.dtype)


def fill_edges(edges: Edges, step: ConvStep) -> tirx.Stmt:
    """Emit the stores of one step."""
    block, (begin, end) = Block(), step.rows(1)
    first, last = edges.strips.valid_columns(edges.tensor, step.image, tirx.min, tirx.max)
    left, right = block.bind("left", first), block.bind("right", last)

    def row(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", in_ring(step.target, step.target.first + index + begin))
        at.loop("column", left, lambda inner, x: _pixel(inner, edges, step, y, x))
        at.loop("column", edges.columns - right, lambda inner, x: _pixel(inner, edges, step, y, x + right))

    outside = tirx.any(left > 0, right < edges.columns)
    block.when(outside, lambda at: at.loop("row", tirx.max(end - begin, 0), row))
    return block.statement()


def _pixel(block: Block, edges: Edges, step: ConvStep, y: tirx.Expr, x: tirx.Expr) -> None:
    """Fill the channels of one pixel, in row `y` and column `x` of the cache."""
    layout, place = edges.stored.layout, step.target
    cache = FlatCache.of(layout, place.buffer, place.origin)
    lanes = min(TOGETHER_BYTES // tvm.DataType(place.buffer.dtype).itemsize, edges.unit)
    first, most = step.block * CHANNEL_BLOCK, step.most_blocks * edges.unit
    there = block.bind("there", tirx.min(most, edges.stored.padded[3] - first))

    def some(at: Block, group: tirx.Expr) -> None:
        for byte in (0, 1) if has_bytes_apart(layout) else (0,):
            element = Position(0, y, x, group * lanes, tirx.const(byte, "int32"))
            value = edges.stored.as_stored(tirx.const(edges.zero, edges.dtype), element)
            start = _not_negative(cache.place(element.packed(layout, byte)))
            at.store(place.buffer, tirx.Ramp(start, 1, lanes), tirx.Broadcast(value, lanes))

    block.loop("group", tirx.floordiv(there, lanes), some)


def _not_negative(index: tirx.Expr) -> tirx.Expr:
    """Divide in an index as one divides what is not negative.

    TVM doesn't know the sign of bound values, and would correct every quotient.
    """

    def divided(node: tirx.FloorDiv) -> tirx.Expr:
        return tirx.truncdiv(node.a, node.b)

    def rest(node: tirx.FloorMod) -> tirx.Expr:
        return tirx.truncmod(node.a, node.b)

    return tvm_ffi.structural_map(index, [(tirx.FloorDiv, divided), (tirx.FloorMod, rest)])
