"""Emit one step of a conv with HVX: staged rows, then rows of tiles: sums, requantisation, stores.

for tile of channels: for row: fill what is no element; for tile of pixels: sums, narrowing, stores
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

from tvm import tirx

from hexconv.kernel import Forms
from hexconv.kernel.depthwise import halved_blocks, source_rows, tile_rows
from hexconv.kernel.tiles import overlaps_tiles, tile_pixels
from hexconv.lower.conv_step import ConvStep, each_row
from hexconv.lower.hvx import depthwise_tiles, instructions
from hexconv.lower.hvx.byte_halves import split_rows
from hexconv.lower.hvx.channel_rows import (
    Channels,
    filter_byte,
    initial_sums,
    raising,
    row_of_source,
    rows_of_tile,
    source_of,
    source_row,
    target_of,
)
from hexconv.lower.hvx.dense_windows import emit_dense_row
from hexconv.lower.hvx.depthwise_tiles import emit_columns
from hexconv.lower.hvx.group_words import emit_own_words_row
from hexconv.lower.hvx.inner_conv import InnerConv, inner_conv
from hexconv.lower.hvx.parameters import Scratch, laid_out, scratch_of
from hexconv.lower.hvx.pixel_lanes import emit_pixels_row
from hexconv.lower.hvx.stores import Target, fill_columns, fill_row, stores
from hexconv.lower.hvx.tile_sums import Operands, Tile, allocate, no_sum, reduce, results, start, start_with_words
from hexconv.lower.hvx.windows import correct_row
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import FixedPoint
from hexconv.spec.vectors import Array
from hexconv.tir.statements import Block, int32

Step = Callable[[], None]
"""Emits some statements of a tile."""


def emit_row(block: Block, channels: Channels, y: tirx.Expr, is_first: tirx.Expr) -> None:
    """Emit one row of outputs; `is_first` says whether it is the first row of the step."""
    conv, scratch = channels.conv, channels.scratch
    target = target_of(block, channels, y)
    fill_columns(block, target)
    if scratch.split is not None:
        split_rows(block, conv, rows_of_tile(channels), scratch.split, y * conv.spec.stride[0], is_first)
    if scratch.windows:
        correct_row(block, conv, source_of(channels), source_row(channels, y), scratch.windows)
    pixels = tile_pixels(channels.blocks)
    whole, rest = divmod(conv.columns, pixels)
    if whole:
        tile = allocate(block, conv, pixels, channels.blocks)
        tiles = _Tiles(channels, target, tile, y, whole)
        _overlapped(block, tiles) if _overlaps(tiles) else _one_by_one(block, tiles)
    if rest:
        tile = allocate(block, conv, rest, channels.blocks)
        _one_tile(block, _Tiles(channels, target, tile, y, 1), int32(whole * pixels))


def emit_depthwise_rows(block: Block, channels: Channels, y: tirx.Expr, count: int) -> None:
    """Emit `count` neighbouring rows of a depthwise conv, whose tiles have one block of channels."""
    conv, apart = channels.conv, channels.first * channels.conv.plane.bytes
    targets = [target_of(block, channels, block.bind("y", y + output)) for output in range(count)]
    for target in targets:
        fill_columns(block, target)
    rows = [
        depthwise_tiles.SourceRow(block.bind("row", row_of_source(block, channels, y, place) + apart), tuple(uses))
        for place, uses in source_rows(conv.spec.kernel[0], conv.spec.stride[0], conv.spec.dilation[0], count).items()
    ]
    rows = depthwise_tiles.in_order(conv, rows)
    first = initial_sums(block, channels, int32(0), 1)(0, 0)
    halves = channels.is_ragged and halved_blocks(conv.spec) > 0
    filter, taps, source = channels.operands.filter, filter_byte(channels), source_of(channels)
    depthwise_tiles.emit_rows(block, depthwise_tiles.Rows(conv, filter, taps, source, rows, first, targets, halves))


@dataclass(frozen=True)
class _Tiles:
    """Tiles of one row that all have the same number of pixels."""

    channels: Channels
    target: Target
    tile: Tile
    y: tirx.Expr
    count: int

    @property
    def operands(self) -> Operands:
        """The operands that the tiles multiply."""
        row = source_row(self.channels, self.y)
        return Operands(source_of(self.channels), row, self.channels.operands.filter, filter_byte(self.channels))

    def column(self, x: tirx.Expr) -> tirx.Expr:
        """Return the stored column of a logical column."""
        return x + self.channels.conv.target.left

    def left(self, block: Block, x: tirx.Expr) -> tirx.Expr:
        """Return the byte where the window of a logical column begins, counted from the start of its row."""
        conv = self.channels.conv
        return block.bind("left", self.column(x) * (conv.spec.stride[1] * conv.plane.pixel_bytes))


def _one_by_one(block: Block, tiles: _Tiles) -> None:
    """Emit tiles each of which ends before the next one starts."""

    def one(at: Block, index: tirx.Expr) -> None:
        _one_tile(at, tiles, at.bind("x", counted(tiles.channels, index)) * tiles.tile.pixels)

    block.loop("x", tiles.count, one)


def _one_tile(block: Block, tiles: _Tiles, x: tirx.Expr) -> None:
    """Emit one tile: start its sums, reduce, store."""
    tile, channels = tiles.tile, tiles.channels
    start(block, tile, no_sum if tile.conv.is_wide else initial_sums(block, channels, x, tile.pixels))
    left = tiles.left(block, x)
    reduce(block, tile, tiles.operands, left, lambda: raising(block, channels, x, tile.pixels))
    for store in stores(tiles.target, tiles.column(x), results(tile)):
        store(block)


def _overlaps(tiles: _Tiles) -> bool:
    """Whether a tile's first words are multiplied while the tile before it is narrowed."""
    conv, blocks = tiles.channels.conv, tiles.channels.blocks
    planes = 1 if conv.joins_planes else conv.planes
    return (
        conv.is_one_run
        and not tiles.tile.windows
        and not conv.splats
        and overlaps_tiles(conv.spec.kernel[0], planes, conv.multiplied_steps, blocks, tiles.count)
    )


def _overlapped(block: Block, tiles: _Tiles) -> None:
    """Pipeline tiles by hand, as LLVM does within a tile only: start a tile while the one before it is narrowed.

    before:  for tile: start; reduce; store
    after:   first words of tile 0
             for tile: reduce the rest; store, and first words of the next tile (of the last one again, at the end)
    """
    tile, operands = tiles.tile, tiles.operands

    def starts(at: Block, x: tirx.Expr) -> list[Step]:
        conv, scratch = tiles.channels.conv, tiles.channels.scratch
        is_zero = (scratch.offsets is None and scratch.windows is None and conv.offset == 0) or conv.is_wide
        first = None if is_zero else initial_sums(at, tiles.channels, x, tile.pixels)
        return start_with_words(at, tile, operands, tiles.left(at, x), first)

    def one(at: Block, index: tirx.Expr) -> None:
        x = at.bind("x", index * tile.pixels)
        left = tiles.left(at, x)
        reduce(at, tile, operands, left, lambda: raising(at, tiles.channels, x, tile.pixels), skip_pairs=1)
        sums = [[at.bind("sum", total, instructions.VECTOR) for total in row] for row in results(tile)]
        following = at.bind("following", tirx.min(index + 1, tiles.count - 1) * tile.pixels)
        written = [lambda store=store: store(at) for store in stores(tiles.target, tiles.column(x), sums)]
        for step in _interleaved(tiles.channels.conv, written, starts(at, following)):
            step()

    for begin in starts(block, int32(0)):
        begin()
    block.loop("x", tiles.count, one)


def _interleaved(conv: InnerConv, written: Sequence[Step], begun: Sequence[Step]) -> list[Step]:
    """Return the order of the steps that narrow a tile and of those that start the next one.

    With shifts alone, narrowing is short and goes where the multiplications leave room. A multiplier takes both pipes
    of HVX for two packets per sum: then narrowing and starting alternate, and narrowing is one step ahead.
    """
    if not isinstance(conv.narrowing, FixedPoint):
        return [*begun, *written]
    lead, *rest = written
    return [lead, *(step for pair in zip_longest(rest, begun) for step in pair if step)]


def counted(channels: Channels, index: tirx.Expr) -> tirx.Expr:
    """Return the index of a loop around tiles, in a form that keeps LLVM from running out of registers.

    LLVM carries an address of its own for each pixel of a tile from trip to trip. Tiles of one block of channels have
    more such addresses than there are registers. For these tiles LLVM isn't told that the index counts up.
    """
    taps = channels.conv.spec.kernel[0] * channels.conv.spec.kernel[1]
    return instructions.concealed(index) if channels.blocks == 1 and taps > 1 else index


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


@dataclass(frozen=True)
class HvxConv:
    """A conv that HVX instructions compute: what is known of it before its steps, and its scratch."""

    conv: InnerConv
    scratch: Scratch

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The scratch buffers that the kernel needs beside the caches of the nest."""
        return self.scratch.memory

    @property
    def constants(self) -> list[tirx.Buffer]:
        """The arguments that it has in the place of its bias, multipliers and shifts."""
        return [each.argument for each in self.scratch.constants]

    def emit(self, step: ConvStep) -> tirx.Stmt:
        """Emit the statements of one step."""
        return emit_step(self.conv, self.scratch, step)


def hvx_conv(chain: Chain, index: int, forms: Forms, plan: Plan, arguments: Mapping[str, tirx.Buffer]) -> HvxConv:
    """Prepare conv `index` (from 0) of a chain for the HVX kernel."""
    conv = inner_conv(chain, index, forms, plan)
    return HvxConv(conv, scratch_of(conv, arguments, plan))


def hvx_constants(chain: Chain, index: int, forms: Forms, plan: Plan, given: Mapping[str, Array]) -> dict[str, Array]:
    """Lay out the constants of conv `index` (from 0) of a chain, from what it is given, by argument."""
    return laid_out(inner_conv(chain, index, forms, plan), given)
