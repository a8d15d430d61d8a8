"""Depthwise convs with channels as lanes: tiles of a row, and words of pixels against words of taps.

`hexconv.kernel.depthwise` says which words of pixels and taps are multiplied.

`hexconv.kernel.grouped` says how convs with other groups are computed.

A word holds 4 neighbouring pixels of one channel; a vector holds the words of 32 channels. An output reads one or more
words in a row of its window, and the first of them begins at an even pixel. So a word serves two neighbouring outputs:
the second one multiplies it with weights that are shifted by a pixel.

    stride 1, 3 taps:   pixels 0 1 2 3    output 0: w0 w1 w2 0    output 1: 0 w0 w1 w2
                        pixels 2 3 4 5    output 2: w0 w1 w2 0    output 3: 0 w0 w1 w2

The weights of a row of taps come in variants: by the shift in pixels, and by the number of the word. 3 taps of stride 1
have two variants.

A word that begins in the middle of 4 pixels is put together of two. That takes one instruction where its halves are
turned, 4 5 2 3, since all bytes then stay where they are; but it takes further variants of the weights. So words are
turned where registers hold all variants (`turns_words`):

    stride 2, 3 taps:   pixels 0 1 2 3    output 0: w0 w1 w2 0
                        pixels 4 5 2 3    output 1: w2 0 w0 w1
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, prod
from typing import NamedTuple

from hexconv.kernel.cost import LEAST_ROWS_DOWN, TILE_ROWS, WAYS_TOGETHER, Cost, Parts
from hexconv.kernel.form import RowsTogether, VectorForm, signed_packing
from hexconv.kernel.layouts import Packing
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import BYTES, VECTOR_BYTES
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Conv2d, Plan, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.names import filter_cache, source_cache
from hexconv.spec.vectors import Array

WORD_PIXELS = 4
TURN = WORD_PIXELS // 2
TILE_PIXELS = 4
"""Neighbouring outputs of a row that are computed together."""
MOST_CARRIED = 5
"""The most vectors of words that stay in registers from a tile to the next one of its row."""
MOST_TURNED = 8
"""The most vectors of taps with which words are turned: more of them would leave too few registers for sums."""


class Variant(NamedTuple):
    """How the weights of a row of taps lie in a word.

    Attributes:
        shift: the pixels by which they are shifted.
        word: the number of the word in the row of taps.
        turned: whether the halves of the word are turned.
    """

    shift: int
    word: int
    turned: bool = False


@dataclass(frozen=True)
class Use:
    """One product of an output: the pixel at which its word begins, counted from the tile's window, and its weights."""

    pixel: int
    variant: Variant

    @property
    def pixels(self) -> tuple[int, ...]:
        """The pixels of the word, in the order of its bytes."""
        return tuple(self.pixel + (byte ^ (TURN if self.variant.turned else 0)) for byte in range(WORD_PIXELS))


def taps_of(conv: Conv2d, variant: Variant) -> Iterator[tuple[int, int]]:
    """Yield (tap, byte of the word) for the taps of a row that lie in the word of a variant."""
    for tap in range(conv.kernel[1]):
        place = variant.shift + tap * conv.dilation[1]
        if place // WORD_PIXELS == variant.word:
            yield tap, place % WORD_PIXELS ^ (TURN if variant.turned else 0)


class Moved(NamedTuple):
    """Part of a variant: the taps that come from one word of the filter, all shifted by as many bytes.

    Attributes:
        word: the number of the word in the row of taps, as it is packed: tap 0 is byte 0 of word 0.
        up: the bytes by which the taps move up; down if it is negative.
        kept: the bytes of the variant that hold these taps, as bits; None where a shift leaves nothing else.
    """

    word: int
    up: int
    kept: int | None


@lru_cache(REMEMBERED)
def moved_words(conv: Conv2d, variant: Variant) -> tuple[Moved, ...]:
    """The words of the filter that a variant is put together of, those that move down first.

    >>> conv = Conv2d(out_channels=8, kernel=(5, 5))
    >>> [tuple(part) for part in moved_words(conv, Variant(1, 1))]
    [(0, -3, None), (1, 1, None)]
    """
    parts: dict[tuple[int, int], int] = {}
    for tap, byte in taps_of(conv, variant):
        word, place = divmod(tap, WORD_PIXELS)
        parts[byte - place, word] = parts.get((byte - place, word), 0) | 1 << byte
    found = []
    for (up, word), wanted in sorted(parts.items()):
        taps = range(min(conv.kernel[1] - word * WORD_PIXELS, WORD_PIXELS))
        there = sum(1 << place + up for place in taps if 0 <= place + up < WORD_PIXELS)
        found.append(Moved(word, up, wanted if there != wanted else None))
    return tuple(found)


def variants(conv: Conv2d) -> tuple[Variant, ...]:
    """All variants of weights that the outputs of a row use, in order.

    >>> [tuple(variant) for variant in variants(Conv2d(out_channels=8, kernel=(5, 5)))]
    [(0, 0, False), (0, 1, False), (1, 0, False), (1, 1, False)]
    >>> [tuple(variant) for variant in variants(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)))]
    [(0, 0, False), (0, 0, True)]
    """
    found = {use.variant for uses in tile_uses(conv, TILE_PIXELS) for use in uses}
    return tuple(sorted(found))


@lru_cache(REMEMBERED)
def tile_uses(conv: Conv2d, pixels: int) -> tuple[tuple[Use, ...], ...]:
    """For each of `pixels` neighbouring outputs, the products of one row of its window."""
    found = _straight_uses(conv, pixels)
    return tuple(tuple(map(_turned, uses)) for uses in found) if turns_words(conv) else found


def turns_words(conv: Conv2d) -> bool:
    """Whether words that begin in the middle of 4 pixels are turned.

    >>> turns_words(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2))), turns_words(
    ...     Conv2d(out_channels=8, kernel=(3, 3))
    ... )
    (True, False)
    """
    found = {_turned(use).variant for uses in _straight_uses(conv, TILE_PIXELS) for use in uses}
    return conv.kernel[0] * len(found) <= MOST_TURNED


def _turned(use: Use) -> Use:
    return replace(use, variant=use.variant._replace(turned=use.pixel % WORD_PIXELS != 0))


def _straight_uses(conv: Conv2d, pixels: int) -> tuple[tuple[Use, ...], ...]:
    return tuple(tuple(_uses(conv, pixel * conv.stride[1])) for pixel in range(pixels))


def _uses(conv: Conv2d, start: int) -> Iterator[Use]:
    shift = start % 2
    for word in range((shift + conv.reach[1] - 1) // WORD_PIXELS + 1):
        variant = Variant(shift, word)
        if any(taps_of(conv, variant)):
            yield Use(start - shift + word * WORD_PIXELS, variant)


def quads_read(conv: Conv2d, pixels: int) -> int:
    """The groups of 4 pixels of a row that `pixels` neighbouring outputs read, from the first one's window on.

    >>> quads_read(Conv2d(out_channels=8, kernel=(3, 3)), 8)
    3
    """
    ends = [use.pixel + WORD_PIXELS for uses in tile_uses(conv, pixels) for use in uses]
    return -(-max(ends) // WORD_PIXELS)


@lru_cache(REMEMBERED)
def quads_used(conv: Conv2d, pixels: int) -> tuple[int, ...]:
    """The numbers of the groups of 4 pixels of a row whose words `pixels` neighbouring outputs multiply.

    >>> quads_used(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)), 4)
    (0, 1, 2)
    """
    pixels_read = {use.pixel for uses in tile_uses(conv, pixels) for use in uses}
    quads = {pixel // WORD_PIXELS for pixel in pixels_read}
    return tuple(sorted(quads | {pixel // WORD_PIXELS + 1 for pixel in pixels_read if pixel % WORD_PIXELS}))


@lru_cache(REMEMBERED)
def carried_quads(conv: Conv2d) -> tuple[int, ...]:
    """The groups of 4 pixels whose words a tile takes over from the tile before it, in registers.

    Tiles of convs whose words aren't turned load all of their words: these convs need the registers for taps.

    >>> carried_quads(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2))), carried_quads(
    ...     Conv2d(out_channels=8, kernel=(3, 3))
    ... )
    ((0,), ())
    """
    used = quads_used(conv, TILE_PIXELS)
    found = tuple(quad for quad in used if quad + conv.stride[1] in used)
    return found if turns_words(conv) and conv.kernel[0] * len(found) <= MOST_CARRIED else ()


@lru_cache(REMEMBERED)
def words_of_row(conv: Conv2d, pixels: int) -> tuple[Use, ...]:
    """The words of a row of the source that `pixels` neighbouring outputs multiply, each once.

    >>> [use.pixel for use in words_of_row(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)), 4)]
    [0, 2, 4, 6]
    """
    found = {use.pixel: use for uses in tile_uses(conv, pixels) for use in uses}
    return tuple(found[pixel] for pixel in sorted(found))


MOST_PRODUCTS = 256
"""The most vector products of a tile of several rows: TVM and LLVM take minutes for straight code that is longer."""
MOST_HELD = 12
"""The most vectors of taps that stay in registers for a row."""


def is_depthwise(chain: Chain, index: int) -> bool:
    """Whether conv `index` of a chain has one output channel for each input channel, and elements that are bytes."""
    conv = chain.conv[index]
    return chain.dtype in BYTES and 1 < conv.groups == conv.out_channels == chain.shapes[index][3]


def holds_taps(conv: Conv2d) -> bool:
    """Whether registers hold the taps of a block of channels for a row, in all variants."""
    return conv.kernel[0] * len(variants(conv)) <= MOST_HELD


def source_rows(kernel: int, stride: int, dilation: int, outputs: int) -> dict[int, list[tuple[int, int]]]:
    """The rows of the source that neighbouring rows of outputs read, and who reads them.

    Args:
        kernel: rows of taps.
        stride: rows of the source from one row of outputs to the next.
        dilation: rows of the source from one row of taps to the next.
        outputs: the number of neighbouring rows of outputs.

    Returns:
        For each row of the source, counted from the first window's top, its readers: (row of outputs, row of taps).

    >>> source_rows(3, 1, 1, 2)
    {0: [(0, 0)], 1: [(0, 1), (1, 0)], 2: [(0, 2), (1, 1)], 3: [(1, 2)]}
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for output in range(outputs):
        for tap in range(kernel):
            found.setdefault(output * stride + tap * dilation, []).append((output, tap))
    return dict(sorted(found.items()))


def columns_read(conv: Conv2d, first: int, columns: int) -> int:
    """The stored columns of a source that the outputs of a row read, in whole words.

    Args:
        conv: a depthwise conv.
        first: the stored column of the first output.
        columns: the number of outputs in a row.
    """
    whole, rest = divmod(columns, TILE_PIXELS)
    starts = [((whole - 1) * TILE_PIXELS, TILE_PIXELS)] if whole else []
    starts += [(whole * TILE_PIXELS, rest)] if rest else []
    return max((first + x) * conv.stride[1] + quads_read(conv, pixels) * WORD_PIXELS for x, pixels in starts)


@dataclass(frozen=True)
class RowTiles:
    """Equal tiles of a row of outputs.

    Attributes:
        first: the column at which the first tile begins, counted from the first output.
        count: the number of tiles, or of pairs of tiles that share their vectors.
        pixels: the pixels of a tile.
        apart: the columns from a tile to the other one of its pair; 0 where tiles are alone.
    """

    first: int
    count: int
    pixels: int
    apart: int = 0


@lru_cache(REMEMBERED)
def row_tiles(columns: int, halves: bool) -> tuple[RowTiles, ...]:
    """Cut a row of outputs into tiles, for one block of channels.

    Args:
        columns: the number of outputs in the row.
        halves: whether the block has 16 channels at most, so that two tiles share their vectors.

    >>> row_tiles(22, False)
    (RowTiles(first=0, count=5, pixels=4, apart=0), RowTiles(first=20, count=1, pixels=2, apart=0))
    >>> [(tiles.first, tiles.count, tiles.apart) for tiles in row_tiles(22, True)]
    [(0, 2, 8), (16, 1, 0), (20, 1, 0)]
    """
    whole, rest = divmod(columns, TILE_PIXELS)
    pairs = whole // 2 if halves else 0
    alone = RowTiles(2 * pairs * TILE_PIXELS, whole - 2 * pairs, TILE_PIXELS)
    found = (RowTiles(0, pairs, TILE_PIXELS, pairs * TILE_PIXELS), alone, RowTiles(whole * TILE_PIXELS, 1, rest))
    return tuple(tiles for tiles in found if tiles.count and tiles.pixels)


def halved_blocks(conv: Conv2d) -> int:
    """How many blocks of channels of a depthwise conv let two tiles share their vectors: 0 or 1."""
    return int(conv.requantize is not None and 0 < conv.out_channels % CHANNEL_BLOCK <= CHANNEL_BLOCK // 2)


def all_tiles(conv: Conv2d, columns: int) -> tuple[tuple[RowTiles, int], ...]:
    """The tiles of a row of outputs for all channels: (equal tiles, number of channel blocks cut into them)."""
    halved = halved_blocks(conv)
    whole = -(-conv.out_channels // CHANNEL_BLOCK) - halved
    kinds = ((row_tiles(columns, False), whole), (row_tiles(columns, True), halved))
    return tuple((tiles, blocks) for found, blocks in kinds if blocks for tiles in found)


def tile_rows(conv: Conv2d) -> tuple[int, ...]:
    """The numbers of `TILE_ROWS` that outputs of a conv are computed by.

    >>> tile_rows(Conv2d(out_channels=8, kernel=(7, 7))), tile_rows(
    ...     Conv2d(out_channels=8, kernel=(7, 7), dilation=(1, 3))
    ... )
    ((4, 2, 1), (1,))
    >>> tile_rows(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)))
    (2, 1)
    """
    return tuple(rows for rows in TILE_ROWS if rows == 1 or _goes_together(conv, rows))


def _goes_together(conv: Conv2d, rows: int) -> bool:
    """Whether code for a tile of some rows is short enough, and registers hold the words that it takes over."""
    products = rows * conv.kernel[0] * products_of_tile(conv, TILE_PIXELS)
    read = len(source_rows(conv.kernel[0], conv.stride[0], conv.dilation[0], rows))
    return products <= MOST_PRODUCTS and read * len(carried_quads(conv)) <= MOST_CARRIED


def products_of_tile(conv: Conv2d, pixels: int) -> int:
    """The vector products that `pixels` neighbouring outputs take for one row of taps."""
    return sum(map(len, tile_uses(conv, pixels)))


def handed_down(conv: Conv2d) -> tuple[int, ...]:
    """The rows of a window that are rows of the next window below it, too, counted from the first window's top.

    >>> handed_down(Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2)))
    (0,)
    """
    read = source_rows(conv.kernel[0], conv.stride[0], conv.dilation[0], 1)
    return tuple(row for row in read if row + conv.stride[0] in read)


def goes_down(chain: Chain, plan: Plan, index: int) -> bool:
    """Whether conv `index` is a depthwise one whose tiles follow each other down the image, not along a row.

    A tile has 4 neighbouring outputs then, and hands the words of rows that it shares to the tile below. So LLVM's
    pipeline is filled and drained once for all rows of a stripe, not once for two rows; stripes have to be tall for
    that. Registers hold all taps and the words that are handed down.
    """
    return can_go_down(chain, index) and _rows_of_stripe(chain, plan, index) >= LEAST_ROWS_DOWN


def can_go_down(chain: Chain, index: int) -> bool:
    """Whether tiles of conv `index` go down the image where stripes are tall."""
    conv = chain.conv[index]
    if not is_depthwise(chain, index):
        return False
    words = len(handed_down(conv)) * len(words_of_row(conv, TILE_PIXELS))
    return turns_words(conv) and words <= MOST_CARRIED


def _rows_of_stripe(chain: Chain, plan: Plan, index: int) -> int:
    """The rows of what conv `index` makes that a stripe of a thread has, without a halo."""
    rows = plan.stripe_rows * prod(conv.stride[0] for conv in chain.conv[index + 1 :])
    return min(rows, ceil(chain.shapes[index + 1][1] / plan.threads))


def quads_loaded(conv: Conv2d, tiles: RowTiles, goes_down: bool = False) -> int:
    """Count the vectors of 4 pixels that equal tiles load from a row; two tiles in the same vectors load twice as many.

    Of the words that a tile takes over from the one before it in its row, the first tile alone loads the pixels. Tiles
    that go down take none over from their row.

    >>> quads_loaded(Conv2d(out_channels=8, kernel=(3, 3)), RowTiles(0, 1, 4)), quads_loaded(
    ...     Conv2d(out_channels=8, kernel=(3, 3)), RowTiles(0, 1, 4, apart=4)
    ... )
    (2, 4)
    >>> stepping = Conv2d(out_channels=8, kernel=(3, 3), stride=(2, 2))
    >>> [quads_loaded(stepping, RowTiles(0, 7, 4), goes_down) for goes_down in (False, True)]
    [15, 21]
    """
    used, along = len(quads_used(conv, tiles.pixels)), tiles.count > 1 and not goes_down
    carried = len(carried_quads(conv)) if along else 0
    return (tiles.count * (used - carried) + carried) * (2 if tiles.apart else 1)


def of_channels(chain: Chain, index: int) -> Layout:
    """Return the layout OIHW32o4w of a depthwise filter: words of 4 taps of a row."""
    return packed("OIHW32o4w", chain.filter_shapes[index], logical="OIHW")


@dataclass(frozen=True)
class DepthwiseForm(VectorForm):
    """Channels as lanes: words of 4 neighbouring pixels against words of taps, both of them vectors."""

    name = "depthwise"
    code = "depthwise_tiles"
    products_of_packet = 1
    blank_part = "lane_blank"

    @classmethod
    def keeps_groups(cls, chain: Chain, index: int) -> bool:
        """Keep groups of one channel."""
        return is_depthwise(chain, index)

    @classmethod
    def columns_read(cls, chain: Chain, index: int, unit: int) -> int:
        """Whole words of pixels."""
        if not is_depthwise(chain, index):
            return 0
        first, end = tensor_extents(chain)[index + 1].valid_columns
        return columns_read(chain.conv[index], first, end - first)

    @classmethod
    def rows_together(cls, chain: Chain, index: int) -> RowsTogether:
        """So many as registers hold, or all of a stripe."""
        return RowsTogether(tile_rows(chain.conv[index]), can_go_down(chain, index))

    @classmethod
    def serves(cls, conv: RowConv) -> str:
        """Serve an output channel for each input channel, of bytes."""
        return "" if is_depthwise(conv.chain, conv.index) else "it is no depthwise conv of bytes"

    @property
    def reads_fringe(self) -> bool:
        """Not so: each channel is multiplied in a lane of its own."""
        return False

    @property
    def goes_down(self) -> bool:
        """Whether stripes are tall enough for tiles to follow each other down the image."""
        return goes_down(self.conv.chain, self.conv.plan, self.conv.index)

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """OIHW32o4w: words of 4 taps of a row."""
        return of_channels(self.conv.chain, self.conv.index), signed_packing(self.conv.chain, self.conv.index)

    @property
    def side_by_side(self) -> int:
        """One: words of taps lie between blocks."""
        return 1

    def summed_weights(self, filter: Array) -> Array:
        """Sum the taps, without those that fill up words, less the zero points of a window."""
        conv, spec = self.conv, self.conv.spec
        words = filter.reshape(conv.out_blocks, spec.kernel[0], -1, CHANNEL_BLOCK, WORD_PIXELS)
        taps = words.transpose(0, 3, 1, 2, 4).reshape(conv.out_blocks * CHANNEL_BLOCK, spec.kernel[0], -1)
        return (taps[:, :, : spec.kernel[1]] - conv.filter_zero).sum(axis=(1, 2))

    @property
    def _passes(self) -> int:
        """How often words are multiplied: once more for the zero point of the filter."""
        return 2 if self.conv.filter_zero else 1

    @property
    def products(self) -> int:
        """For each word that outputs read; a zero point of the filter doubles them."""
        spec = self.conv.spec
        of_row = sum(blocks * tiles.count * products_of_tile(spec, tiles.pixels) for tiles, blocks in self._row_tiles)
        return of_row * spec.kernel[0] * self._passes

    @cached_property
    def _row_tiles(self) -> tuple[tuple[RowTiles, int], ...]:
        """The tiles of a row: (equal tiles, blocks of channels that are cut into them)."""
        return all_tiles(self.conv.spec, self.conv.columns)

    def row_parts(self) -> Parts:
        """Count the parts of all tiles of a row, without those that rows share."""
        parts = Parts()
        for tiles, blocks in self._row_tiles:
            parts.add(self._tile(tiles.pixels), tiles.count * blocks)
        return parts

    def _tile(self, pixels: int) -> Parts:
        """Count the parts of a tile, or of two tiles that share their vectors."""
        spec = self.conv.spec
        parts = Parts(sum=pixels, lane=products_of_tile(spec, pixels) * spec.kernel[0] * self._passes)
        parts["initial"] = 1 if self.conv.has_offsets else 0
        parts.add(self.leaving(1, pixels))
        return parts

    def parts_together(self) -> tuple[Parts, ...]:
        """Count words of the source, taps, and loops over tiles that go along a row."""
        taps = self._in_registers * self.conv.spec.kernel[0] * len(variants(self.conv.spec))
        found = tuple(self._words(rows, goes_down) for rows, goes_down in self._rows_loaded)
        for way, parts in zip(WAYS_TOGETHER, found, strict=True):
            if way != "row down":
                parts["tap"] += taps
                parts["tap_halved"] = taps * halved_blocks(self.conv.spec) / self.conv.out_blocks
            if way in TILE_ROWS:
                parts["lane_fill"] = sum(blocks for _, blocks in self._row_tiles)
        return found

    @property
    def _rows_loaded(self) -> list[tuple[int, bool]]:
        """For each way in which rows are made, the rows of the source that are loaded, and whether tiles go down."""
        shared = len(handed_down(self.conv.spec))
        return [*((self._read(rows), False) for rows in TILE_ROWS), (self._read(1) - shared, True), (shared, True)]

    def _read(self, rows: int) -> int:
        """Count the rows of the source that `rows` neighbouring rows of outputs read."""
        spec = self.conv.spec
        return len(source_rows(spec.kernel[0], spec.stride[0], spec.dilation[0], rows))

    def _words(self, rows: int, goes_down: bool) -> Parts:
        """Count the parts of the words of `rows` rows of the source, for all channels."""
        spec, parts = self.conv.spec, Parts()
        for tiles, blocks in self._row_tiles:
            halves = {use.pixel for uses in tile_uses(spec, tiles.pixels) for use in uses if use.pixel % WORD_PIXELS}
            words = Parts(quad=quads_loaded(spec, tiles, goes_down), half=len(halves) * tiles.count)
            parts.add(words, rows * blocks)
        return parts

    @property
    def _in_registers(self) -> int:
        """How often rows made together load all taps of a block of channels: once, or in each tile."""
        if holds_taps(self.conv.spec):
            return self.conv.out_blocks
        return sum(tiles.count * blocks for tiles, blocks in self._row_tiles)

    def traffic(self) -> Cost:
        """Add the reads of source and filter, which rows made together share."""
        conv, cost = self.conv, super().traffic()
        words = conv.spec.kernel[0] * ceil(conv.spec.kernel[1] / WORD_PIXELS)
        for way, bytes, (rows, down) in zip(WAYS_TOGETHER, cost.together, self._rows_loaded, strict=True):
            quads = sum(quads_loaded(conv.spec, tiles, down) * blocks for tiles, blocks in self._row_tiles)
            bytes[source_cache(conv.number)] += rows * quads * VECTOR_BYTES
            if way != "row down":
                bytes[filter_cache(conv.number)] += self._in_registers * words * VECTOR_BYTES
        return cost
