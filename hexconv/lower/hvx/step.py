"""Emit one step of a conv: what is staged where its channels come for the first time, then rows of tiles.

for tile of channels: for row: fill what is no element; for tile of pixels: sums, narrowing, stores
"""

from math import ceil

from tvm import tirx

from hexconv.kernel.depthwise import tile_rows
from hexconv.lower.conv_step import ConvStep
from hexconv.lower.hvx.channels import Channels, target_of
from hexconv.lower.hvx.dense import emit_dense_row
from hexconv.lower.hvx.depthwise_down import emit_columns
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.own_words import emit_own_words_row
from hexconv.lower.hvx.pixels import emit_pixels_row
from hexconv.lower.hvx.row import counted, emit_depthwise_rows, emit_row
from hexconv.lower.hvx.scratch import Scratch
from hexconv.lower.hvx.write import fill_row
from hexconv.lower.step_rows import each_row
from hexconv.schedule.block import Block, int32
from hexconv.spec.extents import CHANNEL_BLOCK


def emit_step(conv: InnerConv, scratch: Scratch, step: ConvStep) -> tirx.Stmt:
    """Emit the statements of one step."""
    block = Block()
    full = ceil(step.most_blocks * conv.units.together / CHANNEL_BLOCK)
    rest = conv.out_blocks % full or full
    is_ragged = conv.last_channels < CHANNEL_BLOCK
    if conv.out_blocks <= full or not (is_ragged or rest < full):
        _channels(block, conv, scratch, step, full if conv.out_blocks > full else conv.out_blocks, is_ragged)
        return block.statement()
    block.when(step.block + full < conv.out_blocks, lambda at: _channels(at, conv, scratch, step, full, False))
    block.when(step.block + full >= conv.out_blocks, lambda at: _channels(at, conv, scratch, step, rest, is_ragged))
    return block.statement()


def _channels(block: Block, conv: InnerConv, scratch: Scratch, step: ConvStep, blocks: int, is_ragged: bool) -> None:
    """Emit all blocks of channels of a step, the blocks of one tile at a time."""
    if step.operands and scratch.staged:
        block.when(step.is_first, lambda at: _stage(at, scratch, step, blocks))
    full, rest = divmod(blocks, conv.tile_blocks)
    apart = 1 if is_ragged and not rest and full else 0  # the last tile differs from the others
    block.loop(
        "group",
        full - apart,
        lambda at, number: _tile_channels(at, conv, scratch, step, number * conv.tile_blocks, conv.tile_blocks, False),
    )
    if apart or rest:
        first = int32((full - apart) * conv.tile_blocks)
        _tile_channels(block, conv, scratch, step, first, rest or conv.tile_blocks, is_ragged)


def _tile_channels(
    block: Block, conv: InnerConv, scratch: Scratch, step: ConvStep, first: tirx.Expr, blocks: int, is_ragged: bool
) -> None:
    """Emit all rows of a step, for the channels of one tile."""
    channels = Channels(conv, scratch, step, first, blocks, is_ragged)

    def padding(at: Block, row: tirx.Expr) -> None:
        fill_row(at, target_of(at, channels, row))

    def made(at: Block, first: tirx.Expr, count: tirx.Expr) -> None:
        emit = emit_columns if conv.goes_down else _depthwise_rows if conv.is_depthwise else _tiled_rows
        emit(at, channels, first, count)

    each_row(block, step, conv.target, conv.made_as, padding, made)


def _tiled_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit row after row."""
    conv = channels.conv
    emit = emit_pixels_row if conv.pixels else emit_dense_row if conv.dense else emit_row
    emit = emit_own_words_row if conv.own_words else emit

    def row(at: Block, index: tirx.Expr) -> None:
        emit(at, channels, at.bind("y", counted(channels, index) + first), index == 0)

    block.loop("y", count, row)


def _depthwise_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit four rows together as often as that goes, then two together, then one."""
    for rows in tile_rows(channels.conv.spec):
        tiles = block.bind("tiles", tirx.floordiv(count, rows))

        def together(at: Block, index: tirx.Expr, rows: int = rows, start: tirx.Expr = first) -> None:
            emit_depthwise_rows(at, channels, at.bind("y", index * rows + start), rows)

        block.loop("y", tiles, together)
        first, count = block.bind("first", first + tiles * rows), block.bind("left", count - tiles * rows)


def _stage(block: Block, scratch: Scratch, step: ConvStep, blocks: int) -> None:
    """Copy the constants of the step's channels into VTCM."""
    first = step.block * CHANNEL_BLOCK
    for each in scratch.staged:
        block.loop("block", blocks, lambda at, part, each=each: each.stage(at, first + part * CHANNEL_BLOCK))
