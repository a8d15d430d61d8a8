"""Find where a row of some channel blocks of a step reads and writes, and what its sums start from."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tvm import tirx

from hexconv.kernel.row_conv import RowConv
from hexconv.lower.conv_step import ConvStep, Rows, StepOperands, in_ring
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.byte_halves import row_of_split
from hexconv.lower.hvx.narrow_sums import Lanes
from hexconv.lower.hvx.parameters import Scratch
from hexconv.lower.hvx.stores import Target, block_of_output
from hexconv.lower.hvx.tile_sums import Initial, Raising, offset_of
from hexconv.lower.hvx.windows import splats, splats_apart
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.vectors import OFFSET
from hexconv.tir.statements import Block, Number, int32


@dataclass(frozen=True)
class Channels:
    """The blocks of output channels of a step that one tile computes."""

    conv: RowConv
    scratch: Scratch
    step: ConvStep
    first: tirx.Expr
    blocks: int
    is_ragged: bool

    @property
    def operands(self) -> StepOperands:
        """The operands that the step multiplies."""
        assert self.step.operands, "a step that makes nothing but padding has no tiles"
        return self.step.operands


EmitRow = Callable[[Block, Channels, tirx.Expr, tirx.Expr], None]
"""Emits one row of outputs; the last argument says whether it is the first row of the step."""


def source_of(channels: Channels) -> tirx.Buffer:
    """Return the buffer that tiles read: the source, or its high and low bytes after a split has taken them apart."""
    split = channels.scratch.split
    return channels.operands.source.buffer if split is None else split


def source_row(channels: Channels, y: tirx.Expr) -> Callable[[Block, tirx.Expr], tirx.Expr]:
    """Return a function from a row of taps to the byte where the source row begins that output row `y` reads for it."""
    conv = channels.conv

    def row(at: Block, tap: tirx.Expr) -> tirx.Expr:
        if conv.splits:
            return at.bind("row", row_of_split(conv, y * conv.spec.stride[0] + tap * conv.spec.dilation[0]))
        # LLVM would take the number of the row apart, and keep an address for each pixel of a tile: they spill.
        number = instructions.concealed(_number_of_row(channels, y, tap * conv.spec.dilation[0]))
        return at.bind("row", number * conv.plane.row_bytes + rows_of_tile(channels).origin)

    return row


def rows_of_tile(channels: Channels) -> Rows:
    """Return the rows that tiles read, from the first plane on that they multiply."""
    conv, source = channels.conv, channels.operands.source
    ahead = conv.form.planes_ahead(channels.step.block, channels.first, tirx.min)
    return source if ahead is None else source.behind(ahead * conv.plane_elements)


def row_of_source(block: Block, channels: Channels, y: tirx.Expr, place: Number) -> tirx.Expr:
    """Return the byte where row `place` of the source begins, counted from the first row that output row `y` reads."""
    row_bytes, origin = channels.conv.plane.row_bytes, rows_of_tile(channels).origin
    return block.bind("row", _number_of_row(channels, y, place) * row_bytes + origin)


def _number_of_row(channels: Channels, y: tirx.Expr, place: Number) -> tirx.Expr:
    """Return the row of the source's cache that holds row `place`, counted from the first one that `y` reads."""
    source = rows_of_tile(channels)
    return in_ring(source, source.first + y * channels.conv.spec.stride[0] + place)


def filter_byte(channels: Channels) -> tirx.Expr:
    """Return the byte of the filter cache where the tile's first block of channels begins."""
    conv = channels.conv
    group = tirx.floordiv(channels.first, int32(conv.side_by_side))
    return channels.operands.filter_origin + group * conv.group_bytes


def initial_sums(block: Block, channels: Channels, x: tirx.Expr, pixels: int) -> Initial:
    """Return a function from a pixel and a channel block to the vector with which its sums start."""
    windows, by_block = channels.scratch.windows, _offsets(block, channels)
    return _added(by_block, splats(block, windows, x, pixels) if windows else [])


def raising(block: Block, channels: Channels, x: tirx.Expr, pixels: int) -> Raising:
    """Return what is added to the sums of a tile when they grow by a byte."""
    conv, windows = channels.conv, channels.scratch.windows
    if conv.raised is None or windows is None:
        return Raising(initial_sums(block, channels, x, pixels))
    by_block = _offsets(block, channels)
    high, low = splats_apart(block, conv, windows, x, pixels)
    return Raising(_added(by_block, low), high)


def _offsets(block: Block, channels: Channels) -> list[tirx.Expr]:
    """Return for each block of channels what its sums start from, whatever the pixel."""
    offsets = channels.scratch.offsets
    if offsets is None:
        return [offset_of(channels.conv.offset)] * channels.blocks
    first = channels.step.block + channels.first
    starts = [(first + part) * CHANNEL_BLOCK for part in range(channels.blocks)]
    return [offsets.lanes(block, start)[OFFSET] for start in starts]


def _added(by_block: list[tirx.Expr], by_pixel: list[tirx.Expr]) -> Initial:
    if not by_pixel:
        return lambda _pixel, part: by_block[part]
    return lambda pixel, part: by_pixel[pixel] + by_block[part]


def target_of(block: Block, channels: Channels, y: tirx.Expr) -> Target:
    """Say where the results of row `y` of the step are stored."""
    conv, place = channels.conv, channels.step.target
    if conv.makes_blocks:
        columns, row = conv.target_columns, block.bind("target_row", y + place.first * ROW_BLOCK)

        def pixel(part: Number, column: Number) -> Number:
            at = channels.first + part
            return place.origin + block_of_output(row, column, channels.step.most_blocks, at, columns)
    else:
        bytes_apart = 2 if conv.is_wide and not conv.is_last else 1
        block_elements, together = conv.target_columns * CHANNEL_BLOCK * bytes_apart, conv.narrowed_blocks
        held = channels.step.most_blocks * together if conv.is_last else conv.out_blocks
        of_row = conv.units.count * conv.units.elements if conv.units.is_narrow else held * block_elements
        index = in_ring(place, place.first + y) * of_row
        base = block.bind("target_row", place.origin + index + channels.first * block_elements)

        def pixel(part: Number, column: Number) -> Number:
            return base + part * block_elements + column * conv.units.together

    table = channels.scratch.table
    return Target(conv, place.buffer, pixel, channels.blocks, channels.is_ragged, _lanes(channels), table)


def _lanes(channels: Channels) -> Callable[[Block, int], Lanes] | None:
    """Return what loads the values of narrowing for each channel of a block of the tile; None without such values."""
    scales = channels.scratch.scales
    if scales is None:
        return None
    first = channels.step.block + channels.first
    return lambda at, part: scales.lanes(at, (first + part) * CHANNEL_BLOCK)


def counted(channels: Channels, index: tirx.Expr) -> tirx.Expr:
    """Return the index of a loop around tiles, in a form that keeps LLVM from running out of registers.

    LLVM carries an address of its own for each pixel of a tile from trip to trip. Tiles of one block of channels have
    more such addresses than there are registers, but those of one tap whose pixels lie side by side. For these tiles
    LLVM isn't told that the index counts up.
    """
    spec = channels.conv.spec
    is_side_by_side = prod((*spec.kernel, *spec.stride)) == 1
    return index if channels.blocks > 1 or is_side_by_side else instructions.concealed(index)


def emit_one_by_one(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr, emit: EmitRow) -> None:
    """Emit `count` rows from row `first` of the step on, one after the other."""

    def row(at: Block, index: tirx.Expr) -> None:
        emit(at, channels, at.bind("y", counted(channels, index) + first), index == 0)

    block.loop("y", count, row)
