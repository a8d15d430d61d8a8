"""Emit rows or columns of a depthwise conv: words of 4 pixels times words of taps, one channel per lane.

for 4 outputs of some rows: for rows of the source:
        words: 128 bytes are 4 pixels of 32 channels; two shuffles make a word of each channel; words from pixel 2 on
               are halves of two; some words stay in registers for the next 4 outputs (`carried_quads`)
        sums of each output += dot4(words, taps)
        outputs that have all of their sums are narrowed and stored (`Rows.ends`)

If a block has 16 channels or fewer, two tiles of a row share their vectors (`row_tiles`): lanes 0 to 15 are the
channels of one tile, lanes 16 to 31 those of the other.

for 4 columns of outputs:
        words of the rows of the source that the first window shares with the one below (`handed_down`)
        sums of the first row of outputs
        for other rows of outputs:
            sums of this row, out of words that were handed down and of rows that no window above reads
            narrow and store the row above

A row is narrowed while the next one is summed: so products fill the packets in which narrowing waits for itself. Where
narrowing takes half to even, it needs more registers than that leaves; then each row is narrowed after its own sums.

A variant is a word of the filter as it lies, or one whose bytes are shifted. So registers get all variants from one
load of each word, and no memory holds them. What is no tap is 0 in the filter.

    5 taps     w0 w1 w2 w3 | w4 0 0 0      becomes, for every second output,      0 w0 w1 w2 | w3 w4 0 0
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tvm import tirx

from hexconv.kernel.depthwise import (
    WORD_PIXELS,
    Moved,
    RowTiles,
    Use,
    Variant,
    carried_quads,
    halved_blocks,
    handed_down,
    holds_taps,
    moved_words,
    row_tiles,
    source_rows,
    taps_of,
    tile_rows,
    tile_uses,
    turns_words,
    variants,
    words_of_row,
)
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import VECTOR_BYTES
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.channel_rows import Channels, filter_byte, initial_sums, row_of_source, source_of, target_of
from hexconv.lower.hvx.stores import Target, columns_filled, fill_columns, stores
from hexconv.lower.hvx.tile_sums import put, value_in
from hexconv.spec import Conv2d
from hexconv.spec.narrowing import FixedPoint
from hexconv.tir.statements import Block, Number, int32, vector_register

PIXEL_BYTES = 32


def emit_rows(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit `count` rows of outputs from row `first` of the step on: several together, or column by column."""
    emit = _emit_columns if channels.conv.form.goes_down else _emit_rows_together
    emit(block, channels, first, count)


def _emit_rows_together(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
    """Emit four rows together as often as that goes, then two together, then one."""
    for rows in tile_rows(channels.conv.spec):
        tiles = block.bind("tiles", tirx.floordiv(count, rows))

        def together(at: Block, index: tirx.Expr, rows: int = rows, start: tirx.Expr = first) -> None:
            _emit_some_rows(at, channels, at.bind("y", index * rows + start), rows)

        block.loop("y", tiles, together)
        first, count = block.bind("first", first + tiles * rows), block.bind("left", count - tiles * rows)


def _emit_some_rows(block: Block, channels: Channels, y: tirx.Expr, count: int) -> None:
    """Emit `count` neighbouring rows of a depthwise conv, whose tiles have one block of channels."""
    conv, apart = channels.conv, channels.first * channels.conv.plane.bytes
    targets = [target_of(block, channels, block.bind("y", y + output)) for output in range(count)]
    for target in targets:
        fill_columns(block, target)
    rows = [
        SourceRow(block.bind("row", row_of_source(block, channels, y, place) + apart), tuple(uses))
        for place, uses in source_rows(conv.spec.kernel[0], conv.spec.stride[0], conv.spec.dilation[0], count).items()
    ]
    rows = in_order(conv, rows)
    first = initial_sums(block, channels, int32(0), 1)(0, 0)
    halves = channels.is_ragged and halved_blocks(conv.spec) > 0
    filter, taps, source = channels.operands.filter, filter_byte(channels), source_of(channels)
    _emit_together(block, Rows(conv, filter, taps, source, rows, first, targets, halves))


class RowWords:
    """The words that a tile reads of one row of the source; each is loaded and put together once."""

    def __init__(
        self,
        block: Block,
        source: tirx.Buffer,
        byte: tirx.Expr,
        apart: int,
        carried: Mapping[int, tirx.Buffer] | None = None,
    ) -> None:
        """Say where the words come from.

        Args:
            block: the block to emit into.
            source: the buffer that holds the row.
            byte: the byte where the tile's first window begins, for 32 channels.
            apart: the distance in bytes to a second tile that shares the vectors; 0 if there is only one tile.
            carried: the registers in which the tile before left words, by the number of 4 pixels.
        """
        self._block, self._source, self._byte, self._apart = block, source, byte, apart
        self._carried = carried or {}
        self._found: dict[int, tirx.Expr] = {}

    def of(self, use: Use) -> tirx.Expr:
        """Return the word of each channel that a product reads."""
        quad, rest = divmod(use.pixel, WORD_PIXELS)
        if not rest:
            return self.of_quad(quad)
        if use.pixel not in self._found:
            low, high = self.of_quad(quad), self.of_quad(quad + 1)
            value = instructions.upper_halves(low, high) if use.variant.turned else self._middle(low, high)
            self._found[use.pixel] = self._block.bind("words", value, instructions.VECTOR)
        return self._found[use.pixel]

    def of_quad(self, quad: int) -> tirx.Expr:
        """Return the word of each channel that holds pixels `4 * quad` to `4 * quad + 3`."""
        pixel = quad * WORD_PIXELS
        if pixel not in self._found:
            self._found[pixel] = self._taken_over(quad) if quad in self._carried else self._loaded(quad)
        return self._found[pixel]

    def hand_on(self, quads: int) -> None:
        """Leave words to the next tile, whose window begins `quads` times 4 pixels further right."""
        for quad, register in self._carried.items():
            put(self._block, register, self.of_quad(quad + quads))

    def _taken_over(self, quad: int) -> tirx.Expr:
        return self._block.bind("carried", value_in(self._carried[quad]), instructions.VECTOR)

    def _loaded(self, quad: int) -> tirx.Expr:
        """Load 4 pixels of 32 channels; two shuffles make a word of each channel."""
        once = self._block.bind("shuffled", instructions.shuffle_bytes(self._pixels(quad)), instructions.VECTOR)
        return self._block.bind("words", instructions.shuffle_bytes(once), instructions.VECTOR)

    def _middle(self, low: tirx.Expr, high: tirx.Expr) -> tirx.Expr:
        """Put the last 2 pixels of a word before the first 2 of the next one."""
        right = self._block.bind("right", instructions.shift_right_logical(low, 16), instructions.VECTOR)
        return instructions.shift_left_add(right, high, 16)

    def _pixels(self, quad: int) -> tirx.Expr:
        """Load 4 pixels of 32 channels; or, for two tiles, 4 pixels of 16 channels of each, pixel by pixel."""
        byte = self._byte + quad * VECTOR_BYTES
        here = self._block.bind("pixels", instructions.load(self._source, byte), instructions.VECTOR)
        if not self._apart:
            return here
        there = self._block.bind("pixels", instructions.load(self._source, byte + self._apart), instructions.VECTOR)
        both = instructions.lower(instructions.exchange(there, here, PIXEL_BYTES // 2))
        return self._block.bind("both", both, instructions.VECTOR)


Taps = Mapping[tuple[int, Variant], tirx.Expr]
"""Vectors of taps by (row of taps, variant)."""


def loaded_taps(block: Block, conv: RowConv, filter: tirx.Var, byte: Number) -> Taps:
    """Load all taps of 32 channels, which begin at byte `byte` of the filter cache."""
    spec, found = conv.spec, dict[tuple[int, Variant], tirx.Expr]()
    base, words_of_row = block.bind("of_block", byte), -(-spec.kernel[1] // WORD_PIXELS)
    rows = range(spec.kernel[0])
    places = [[base + (row * words_of_row + word) * VECTOR_BYTES for word in range(words_of_row)] for row in rows]
    words = [
        [block.bind("tap", instructions.load(filter, place), instructions.VECTOR) for place in of_row]
        for of_row in places
    ]
    for row in rows:
        for variant in variants(spec):
            value = _assembled(words[row], moved_words(spec, variant))
            found[row, variant] = block.bind("tap", instructions.moved(value), instructions.VECTOR)
    return found


def _assembled(words: Sequence[tirx.Expr], parts: Sequence[Moved]) -> tirx.Expr:
    """Put a variant together of words of the filter."""
    first, *others = parts
    value = _moved(words[first.word], first)
    for part in others:
        if part.up > 0 and part.kept is None:
            value = instructions.shift_left_add(value, words[part.word], 8 * part.up)
        else:
            value = tirx.bitwise_or(value, _moved(words[part.word], part))
    return value


def _moved(word: tirx.Expr, part: Moved) -> tirx.Expr:
    """Shift the bytes of a word, and keep those that the variant has of it."""
    if part.up:
        bits = 8 * abs(part.up)
        word = instructions.shift_left(word, bits) if part.up > 0 else instructions.shift_right_logical(word, bits)
    return word if part.kept is None else tirx.bitwise_and(word, _bytes(part.kept, 0xFF))


def _bytes(there: int, value: int) -> tirx.Expr:
    """Return a word, in every lane, that has `value` in the bytes that `there` has bits for."""
    word = sum(value << 8 * byte for byte in range(WORD_PIXELS) if there >> byte & 1)
    return instructions.splat(instructions.signed(word))


def twice(block: Block, taps: Taps) -> Taps:
    """Put the taps of the first 16 channels into both halves of each vector."""
    return {name: instructions.twice(block, value) for name, value in taps.items()}


def add_product(
    block: Block, conv: RowConv, total: tirx.Expr, words: tirx.Expr, taps: tirx.Expr, variant: Variant
) -> tirx.Expr:
    """Add to `total` the products of one word in every lane, corrected for the zero point of the filter."""
    signed = conv.filter_is_signed
    value = block.bind(
        "sum", instructions.dot4_of_vectors(total, words, taps, conv.is_signed, signed), instructions.VECTOR
    )
    if not conv.filter_zero:
        return value
    there = sum(1 << byte for _, byte in taps_of(conv.spec, variant))
    zeros = _bytes(there, -conv.filter_zero & 0xFF)
    return block.bind(
        "sum", instructions.dot4_of_vectors(value, words, zeros, conv.is_signed, True), instructions.VECTOR
    )


Carried = Sequence[Mapping[int, tirx.Buffer]]
"""For each row of the source, the registers in which a tile leaves words to the next one, by the number of 4 pixels."""


@dataclass(frozen=True)
class SourceRow:
    """A row of the source, and the outputs that read it.

    Attributes:
        byte: the byte of the source at which the row begins, for 32 channels.
        uses: its readers: (row of outputs, row of taps).
    """

    byte: tirx.Expr
    uses: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Rows:
    """Neighbouring rows of outputs of 32 channels, which share the words that they read.

    Attributes:
        conv: a depthwise conv.
        filter: the filter cache.
        taps: the byte of the filter cache where the taps of the channels begin.
        source: the buffer that the rows read.
        read: the rows of the source that they read, in the order in which tiles read them.
        first: the vector that sums start from.
        targets: where each row of outputs is stored.
        halves: whether two tiles share their vectors.
    """

    conv: RowConv
    filter: tirx.Var
    taps: Number
    source: tirx.Buffer
    read: Sequence[SourceRow]
    first: tirx.Expr
    targets: Sequence[Target]
    halves: bool

    @property
    def ends(self) -> list[list[int]]:
        """For each row of the source, the rows of outputs that are narrowed after it.

        Requantising by a multiplier takes both pipes that multiply, so outputs are narrowed as soon as they can be.
        That frees their registers. Shifts go wherever products leave room.
        """
        last = {output: place for place, row in enumerate(self.read) for output, _tap in row.uses}
        if not isinstance(self.conv.narrowing, FixedPoint):
            last = dict.fromkeys(last, len(self.read) - 1)
        return [[output for output, end in last.items() if end == place] for place in range(len(self.read))]


def in_order(conv: RowConv, rows: Sequence[SourceRow]) -> list[SourceRow]:
    """Put rows of the source, which come from the top, in the order in which tiles read them.

    A tile that is narrowed row by row begins with the last row of its first outputs, then goes up: more outputs read
    that row, so there are products to add while the next words are shuffled. These outputs are all under way from the
    start, so rows stay in order where their registers are taken: by taps, words that are handed on, or half to even.
    """
    how = conv.narrowing
    if not isinstance(how, FixedPoint) or how.has_halves:
        return list(rows)
    if turns_words(conv.spec) or not holds_taps(conv.spec):
        return list(rows)
    top = next(place for place, row in enumerate(rows) if (0, conv.spec.kernel[0] - 1) in row.uses) + 1
    return [*reversed(rows[:top]), *rows[top:]]


def _emit_together(block: Block, rows: Rows) -> None:
    """Emit all tiles of some rows of outputs; a tile has pixels of all of these rows."""
    held = loaded_taps(block, rows.conv, rows.filter, rows.taps) if holds_taps(rows.conv.spec) else None
    for tiles in row_tiles(rows.conv.columns, rows.halves):
        first = instructions.twice(block, rows.first) if tiles.apart else rows.first
        taps = twice(block, held) if held and tiles.apart else held
        carried = _carried(block, rows, tiles)

        def tile(
            at: Block,
            index: tirx.Expr,
            tiles: RowTiles = tiles,
            first: tirx.Expr = first,
            taps: Taps | None = taps,
            carried: Carried = carried,
        ) -> None:
            if not taps:
                loaded = loaded_taps(at, rows.conv, rows.filter, rows.taps)
                taps = twice(at, loaded) if tiles.apart else loaded
            _emit_tile(at, rows, tiles, taps, first, carried, index * tiles.pixels + tiles.first)

        block.loop("x", tiles.count, tile)


def _carried(block: Block, rows: Rows, tiles: RowTiles) -> Carried:
    """Allocate the registers in which tiles leave words, and load the words that the first tile takes over."""
    spec = rows.conv.spec
    quads = carried_quads(spec) if tiles.count > 1 else ()
    found = [{quad: vector_register(block, f"{place}_{quad}") for quad in quads} for place in range(len(rows.read))]
    step = spec.stride[1] * PIXEL_BYTES
    left = (tiles.first + rows.conv.target.left) * step
    for row, registers in zip(rows.read, found, strict=True):
        words = RowWords(block, rows.source, row.byte + left, tiles.apart * step)
        for quad, register in registers.items():
            put(block, register, words.of_quad(quad))
    return found


def _emit_tile(
    block: Block, rows: Rows, tiles: RowTiles, taps: Taps, first: tirx.Expr, carried: Carried, x: Number
) -> None:
    """Emit one tile, or two that share their vectors; store each row of outputs once its sums are complete."""
    conv, spec = rows.conv, rows.conv.spec
    column, step = x + conv.target.left, spec.stride[1] * PIXEL_BYTES
    left = block.bind("left", column * step)
    apart = tiles.apart * step
    sums = [[first] * tiles.pixels for _ in rows.targets]
    for row, ends, registers in zip(rows.read, rows.ends, carried, strict=True):
        words = RowWords(block, rows.source, row.byte + left, apart, registers)
        for pixel, uses in enumerate(tile_uses(spec, tiles.pixels)):
            for (output, tap), use in product(row.uses, uses):
                total = sums[output][pixel]
                weights = taps[tap, use.variant]
                sums[output][pixel] = add_product(block, conv, total, words.of(use), weights, use.variant)
        words.hand_on(spec.stride[1])
        for output in ends:
            for store in stores(rows.targets[output], column, [[total] for total in sums[output]], tiles.apart):
                store(block)


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


def _emit_columns(block: Block, channels: Channels, first: tirx.Expr, count: tirx.Expr) -> None:
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
        begin = instructions.twice(block, start) if tiles.apart else start

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
        sums = [at.bind("sum", total, instructions.VECTOR) for total in _summed(at, column, at.bind("y", y + 1))]
        _narrow(at, column, y)
        _keep(at, column, sums)

    def at_once(at: Block, index: tirx.Expr) -> None:
        y = at.bind("y", index + column.start)
        _keep(at, column, _summed(at, column, y))
        _narrow(at, column, y)

    others = block.bind("others", count - 1) if narrowed_later else count
    block.loop("y", instructions.concealed(others), later if narrowed_later else at_once)
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
    return {place: block.bind("handed", value_in(column.handed[place]), instructions.VECTOR) for place in places}


def _keep(block: Block, column: Column, sums: Sequence[tirx.Expr]) -> None:
    for register, total in zip(column.sums, sums, strict=True):
        put(block, register, total)


def _narrow(block: Block, column: Column, y: tirx.Expr) -> None:
    """Narrow the sums that are kept, and store them as row `y`."""
    sums = [[block.bind("sum", value_in(register), instructions.VECTOR)] for register in column.sums]
    for store in stores(target_of(block, column.channels, y), column.column, sums, column.tiles.apart):
        store(block)
