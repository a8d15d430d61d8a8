"""Rows of a depthwise conv: words of 4 pixels times words of taps, one channel per lane (`hexconv.kernel.depthwise`).

    for 4 outputs of some rows: for rows of the source:
        words: 128 bytes are 4 pixels of 32 channels; two shuffles make a word of each channel; words from pixel 2 on
               are halves of two
        sums of each output += dot4(words, taps)
        outputs that have all of their sums are narrowed and stored (`Rows.ends`)

If a block has 16 channels or fewer, two tiles of a row share their vectors (`row_tiles`): lanes 0 to 15 are the
channels of one tile, lanes 16 to 31 those of the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from tvm import tirx

from hexconv.kernel.depthwise import MOST_HELD, WORD_PIXELS, RowTiles, quads_read, row_tiles, tile_uses, variants
from hexconv.lower.hvx import across, vector
from hexconv.lower.hvx.inner import VECTOR_BYTES, InnerConv
from hexconv.lower.hvx.taps import Taps, add_product, loaded_taps, twice
from hexconv.lower.hvx.write import Target, stores
from hexconv.schedule.block import Block, Number
from hexconv.spec.narrowing import FixedPoint

PIXEL_BYTES = 32


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
        memory: the buffer of its taps.
        block: the block of 32 channels.
        source: the buffer that the rows read.
        read: the rows of the source that they read.
        first: the vector that sums start from.
        targets: where each row of outputs is stored.
        halves: whether two tiles share their vectors.
    """

    conv: InnerConv
    memory: tirx.Buffer
    block: Number
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


def emit_rows(block: Block, rows: Rows) -> None:
    """Emit all tiles of some rows of outputs; a tile has pixels of all of these rows."""
    spec = rows.conv.depthwise
    assert spec
    are_held = spec.kernel[0] * len(variants(spec)) <= MOST_HELD
    held = loaded_taps(block, rows.conv, rows.memory, rows.block) if are_held else None
    for tiles in row_tiles(rows.conv.columns, rows.halves):
        first = across.twice(block, rows.first) if tiles.apart else rows.first
        taps = twice(block, held) if held and tiles.apart else held

        def tile(
            at: Block, index: tirx.Expr, tiles: RowTiles = tiles, first: tirx.Expr = first, taps: Taps | None = taps
        ) -> None:
            if not taps:
                loaded = loaded_taps(at, rows.conv, rows.memory, rows.block)
                taps = twice(at, loaded) if tiles.apart else loaded
            _emit_tile(at, rows, tiles, taps, first, index * tiles.pixels + tiles.first)

        block.loop("x", tiles.count, tile)


def _emit_tile(block: Block, rows: Rows, tiles: RowTiles, taps: Taps, first: tirx.Expr, x: Number) -> None:
    """Emit one tile, or two that share their vectors; store each row of outputs once its sums are complete."""
    conv = rows.conv
    spec = conv.depthwise
    assert spec
    column, step = x + conv.target.left, conv.stride[1] * PIXEL_BYTES
    left = block.bind("left", column * step)
    apart = tiles.apart * step
    sums = [[first] * tiles.pixels for _ in rows.targets]
    for row, ends in zip(rows.read, rows.ends, strict=True):
        words = _words(block, rows.source, row.byte + left, quads_read(spec, tiles.pixels), apart)
        for pixel, uses in enumerate(tile_uses(spec, tiles.pixels)):
            for (output, tap), use in product(row.uses, uses):
                total = sums[output][pixel]
                weights = taps[tap, use.variant]
                sums[output][pixel] = add_product(block, conv, total, words(use.pixel), weights, use.variant)
        for output in ends:
            for store in stores(rows.targets[output], column, [[total] for total in sums[output]], tiles.apart):
                store(block)


def _words(block: Block, source: tirx.Buffer, byte: tirx.Expr, quads: int, apart: int) -> Callable[[int], tirx.Expr]:
    """Return what loads the word of 4 pixels of each channel from an even pixel on.

    `apart` is the distance in bytes to a second tile that shares the vectors; 0 if there is only one tile.
    """
    found: dict[int, tirx.Expr] = {}

    def whole(quad: int) -> tirx.Expr:
        if WORD_PIXELS * quad not in found:
            loaded = _pixels(block, source, byte + quad * VECTOR_BYTES, apart)
            once = block.bind("shuffled", across.shuffle_bytes(loaded), vector.VECTOR)
            found[WORD_PIXELS * quad] = block.bind("words", across.shuffle_bytes(once), vector.VECTOR)
        return found[WORD_PIXELS * quad]

    def words(pixel: int) -> tirx.Expr:
        quad, rest = divmod(pixel, WORD_PIXELS)
        if rest and pixel not in found:
            low = block.bind("low", vector.shift_right_logical(whole(quad), 16), vector.VECTOR)
            # no word needs pixels beyond the last one that counts
            found[pixel] = (
                block.bind("words", vector.shift_left_add(low, whole(quad + 1), 16), vector.VECTOR)
                if quad + 1 < quads
                else low
            )
        return found[pixel] if rest else whole(quad)

    return words


def _pixels(block: Block, source: tirx.Buffer, byte: tirx.Expr, apart: int) -> tirx.Expr:
    """Load 4 pixels of 32 channels; or, for two tiles, 4 pixels of 16 channels of each, interleaved pixel by pixel."""
    here = block.bind("pixels", vector.load(source, byte), vector.VECTOR)
    if not apart:
        return here
    there = block.bind("pixels", vector.load(source, byte + apart), vector.VECTOR)
    return block.bind("both", across.lower(across.exchange(there, here, PIXEL_BYTES // 2)), vector.VECTOR)
