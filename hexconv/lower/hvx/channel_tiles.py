"""Emit rows of tiles of output channels: staged rows, then for each tile: sums, requantisation, stores.

for row: fill what is no element; for tile of pixels: sums, narrowing, stores
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tvm import tirx

from hexconv.kernel.channels import channel_form
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import tile_pixels
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.byte_halves import split_rows
from hexconv.lower.hvx.channel_rows import (
    Channels,
    counted,
    emit_one_by_one,
    filter_byte,
    initial_sums,
    raising,
    rows_of_tile,
    source_of,
    source_row,
    target_of,
)
from hexconv.lower.hvx.stores import Target, fill_columns, stores
from hexconv.lower.hvx.tile_sums import Operands, Tile, allocate, no_sum, reduce, results, start, start_with_words
from hexconv.lower.hvx.windows import correct_row
from hexconv.spec.narrowing import FixedPoint
from hexconv.tir.statements import Block, int32

Step = Callable[[], None]
"""Emits some statements of a tile."""


def emit_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit `count` rows of outputs from row `first` of the step on."""
    emit_one_by_one(block, channels, first, count, _emit_row)


def _emit_row(block: Block, channels: Channels, y: tirx.Expr, is_first: tirx.Expr) -> None:
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
        _overlapped(block, tiles) if channel_form(conv).overlaps(channels.blocks, whole) else _one_by_one(block, tiles)
    if rest:
        tile = allocate(block, conv, rest, channels.blocks)
        _one_tile(block, _Tiles(channels, target, tile, y, 1), int32(whole * pixels))


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


def _interleaved(conv: RowConv, written: Sequence[Step], begun: Sequence[Step]) -> list[Step]:
    """Return the order of the steps that narrow a tile and of those that start the next one.

    With shifts alone, narrowing is short and goes where the multiplications leave room. A multiplier takes both pipes
    of HVX for two packets per sum: then narrowing and starting alternate, and narrowing is one step ahead.
    """
    if not isinstance(conv.narrowing, FixedPoint):
        return [*begun, *written]
    lead, *rest = written
    return [lead, *(step for pair in zip_longest(rest, begun) for step in pair if step)]
