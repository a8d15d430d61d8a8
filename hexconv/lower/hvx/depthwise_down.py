"""Columns of a depthwise conv: tiles of 4 neighbouring outputs that follow each other down the image (`goes_down`).

    for 4 columns of outputs:
        words of the rows of the source that the first window shares with the one below (`handed_down`)
        sums of the first row of outputs
        for other rows of outputs:
            sums of this row, out of words that were handed down and of rows that no window above reads
            narrow and store the row above

A row is narrowed while the next one is summed: so products fill the packets in which narrowing waits for itself. Where
narrowing takes half to even, it needs more registers than that leaves; then each row is narrowed after its own sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tvm import tirx

from hexconv.kernel.depthwise import RowTiles, halved_blocks, handed_down, row_tiles, source_rows
from hexconv.kernel.depthwise_words import Use, tile_uses, words_of_row
from hexconv.lower.hvx import across, vector
from hexconv.lower.hvx.channels import Channels, filter_byte, initial_sums, row_of_source, source_of, target_of
from hexconv.lower.hvx.depthwise_words import PIXEL_BYTES, RowWords
from hexconv.lower.hvx.taps import Taps, add_product, loaded_taps, twice
from hexconv.lower.hvx.tile import put, value_in
from hexconv.lower.hvx.write import columns_filled, fill_columns, stores
from hexconv.schedule.block import Block, Number, int32, vector_register
from hexconv.spec import Conv2d
from hexconv.spec.narrowing import FixedPoint

SUMMED_IN_TURN = (3, 1, 2, 0)
"""The order in which the outputs of a tile take their products: LLVM's loop over rows of 56x56x144 with a stride of 2
has 43 packets so, and 45 in the order of the columns, for more sums begin as copies of registers there."""
Place = tuple[int, int]
"""A row of the source, counted from the top of a tile's windows, and the pixel where a word of it begins."""


@dataclass(frozen=True)
class Column:
    """Neighbouring columns of outputs of 32 channels, from a row of outputs down.

    Attributes:
        channels: the block of channels.
        spec: the depthwise conv.
        tiles: the tiles of a row, of which this is one.
        taps: all taps of the block.
        first: the vector that sums start from.
        start: the first row of outputs.
        column: the stored column of the first output.
        sums: the registers of the sums of a row, by output.
        handed: the registers of the words that a row hands to the next.
    """

    channels: Channels
    spec: Conv2d
    tiles: RowTiles
    taps: Taps
    first: tirx.Expr
    start: tirx.Expr
    column: tirx.Expr
    sums: Sequence[tirx.Buffer]
    handed: Mapping[Place, tirx.Buffer]

    def words(self, block: Block, y: tirx.Expr, row: int) -> dict[Place, tirx.Expr]:
        """Load the words of a row of the source that output row `y` reads."""
        step = self.spec.stride[1] * PIXEL_BYTES
        apart = self.channels.first * self.channels.conv.plane.bytes
        byte = row_of_source(block, self.channels, y, row) + apart + self.column * step
        found = RowWords(block, source_of(self.channels), block.bind("row", byte), self.tiles.apart * step)
        return {(row, use.pixel): found.of(use) for use in self.used}

    @property
    def used(self) -> tuple[Use, ...]:
        """The words that a row of the tile multiplies for a row of taps."""
        return words_of_row(self.spec, self.tiles.pixels)


def emit_columns(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit `count` rows of a depthwise conv from row `first` on, whose tiles have one block of channels."""

    def fill(at: Block, index: tirx.Expr) -> None:
        fill_columns(at, target_of(at, channels, at.bind("y", index + first)))

    if columns_filled(target_of(Block(), channels, int32(0))):
        block.loop("y", count, fill)
    block.when(count > 0, lambda at: _columns(at, channels, first, count))


def _columns(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit all columns of `count` rows; there is one row at least."""
    conv, spec = channels.conv, channels.conv.spec
    start = initial_sums(block, channels, int32(0), 1)(0, 0)
    held = loaded_taps(block, conv, channels.operands.filter, filter_byte(channels))
    for tiles in row_tiles(conv.columns, channels.is_ragged and halved_blocks(spec) > 0):
        taps = twice(block, held) if tiles.apart else held
        begin = across.twice(block, start) if tiles.apart else start

        def column(
            at: Block, index: Number, tiles: RowTiles = tiles, taps: Taps = taps, begin: tirx.Expr = begin
        ) -> None:
            place = at.bind("column", index * tiles.pixels + (tiles.first + conv.target.left))
            sums = [vector_register(at, f"sum_{pixel}") for pixel in range(tiles.pixels)]
            _emit(at, Column(channels, spec, tiles, taps, begin, first, place, sums, _handed(at, spec, tiles)), count)

        block.loop("x", tiles.count, column)


def _handed(block: Block, spec: Conv2d, tiles: RowTiles) -> dict[Place, tirx.Buffer]:
    """Allocate a register for each word that a row hands to the next."""
    places = ((row, use.pixel) for row in handed_down(spec) for use in words_of_row(spec, tiles.pixels))
    return {(row, pixel): vector_register(block, f"{row}_{pixel}") for row, pixel in places}


def _emit(block: Block, column: Column, count: tirx.Expr) -> None:
    """Emit all rows of a column; there is one at least."""
    for row in handed_down(column.spec):
        for place, words in column.words(block, column.start, row).items():
            put(block, column.handed[place], words)
    narrowed_later = _narrows_later(column)
    if narrowed_later:
        _keep(block, column, _summed(block, column, column.start))

    def later(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index + column.start)
        sums = [at.bind("sum", total, vector.VECTOR) for total in _summed(at, column, at.bind("y", y + 1))]
        _narrow(at, column, y)
        _keep(at, column, sums)

    def at_once(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index + column.start)
        _keep(at, column, _summed(at, column, y))
        _narrow(at, column, y)

    others = block.bind("others", count - 1) if narrowed_later else count
    block.loop("y", vector.concealed(others), later if narrowed_later else at_once)
    if narrowed_later:
        _narrow(block, column, block.bind("y", others + column.start))


def _narrows_later(column: Column) -> bool:
    """Whether a row is narrowed while the next one is summed."""
    how = column.channels.conv.narrowing
    return not (isinstance(how, FixedPoint) and how.has_halves)


def _summed(block: Block, column: Column, y: tirx.Expr) -> list[tirx.Expr]:
    """Sum a row of outputs, and hand words down to the next one."""
    spec, conv, tiles = column.spec, column.channels.conv, column.tiles
    sums, words = [column.first] * tiles.pixels, dict[Place, tirx.Expr]()
    for row, uses in source_rows(spec.kernel[0], spec.stride[0], spec.dilation[0], 1).items():
        words |= _taken(block, column, row) if row in handed_down(spec) else column.words(block, y, row)
        of_outputs = tile_uses(spec, tiles.pixels)
        for pixel in sorted(range(tiles.pixels), key=SUMMED_IN_TURN.index):
            for (_output, tap), use in product(uses, of_outputs[pixel]):
                weights = column.taps[tap, use.variant]
                sums[pixel] = add_product(block, conv, sums[pixel], words[row, use.pixel], weights, use.variant)
    for (row, pixel), register in column.handed.items():
        put(block, register, words[row + spec.stride[0], pixel])
    return sums


def _taken(block: Block, column: Column, row: int) -> dict[Place, tirx.Expr]:
    """Take the words of a row that were handed down."""
    places = [place for place in column.handed if place[0] == row]
    return {place: block.bind("handed", value_in(column.handed[place]), vector.VECTOR) for place in places}


def _keep(block: Block, column: Column, sums: Sequence[tirx.Expr]) -> None:
    for register, total in zip(column.sums, sums, strict=True):
        put(block, register, total)


def _narrow(block: Block, column: Column, y: tirx.Expr) -> None:
    """Narrow the sums that are kept, and store them as row `y`."""
    sums = [[block.bind("sum", value_in(register), vector.VECTOR)] for register in column.sums]
    for store in stores(target_of(block, column.channels, y), column.column, sums, column.tiles.apart):
        store(block)
