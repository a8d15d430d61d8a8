"""Rows of a depthwise conv: words of 4 pixels times words of taps, one channel per lane (`hexconv.kernel.depthwise`).

    for 4 outputs of some rows: for rows of the source:
        words: 128 bytes are 4 pixels of 32 channels; two shuffles make a word of each channel; words from pixel 2 on
               are halves of two; some words stay in registers for the next 4 outputs (`carried_quads`)
        sums of each output += dot4(words, taps)
        outputs that have all of their sums are narrowed and stored (`Rows.ends`)

If a block has 16 channels or fewer, two tiles of a row share their vectors (`row_tiles`): lanes 0 to 15 are the
channels of one tile, lanes 16 to 31 those of the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tvm import tirx

from hexconv.kernel.depthwise import RowTiles, holds_taps, row_tiles
from hexconv.kernel.depthwise_words import carried_quads, tile_uses, turns_words
from hexconv.lower.hvx import across
from hexconv.lower.hvx.depthwise_words import PIXEL_BYTES, RowWords
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.taps import Taps, add_product, loaded_taps, twice
from hexconv.lower.hvx.target import Target
from hexconv.lower.hvx.tile import put
from hexconv.lower.hvx.write import stores
from hexconv.schedule.block import Block, Number, vector_register
from hexconv.spec.narrowing import FixedPoint

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

    conv: InnerConv
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


def in_order(conv: InnerConv, rows: Sequence[SourceRow]) -> list[SourceRow]:
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


def emit_rows(block: Block, rows: Rows) -> None:
    """Emit all tiles of some rows of outputs; a tile has pixels of all of these rows."""
    held = loaded_taps(block, rows.conv, rows.filter, rows.taps) if holds_taps(rows.conv.spec) else None
    for tiles in row_tiles(rows.conv.columns, rows.halves):
        first = across.twice(block, rows.first) if tiles.apart else rows.first
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
