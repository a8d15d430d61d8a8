"""Output channels as lanes: tiles of pixels by blocks of 32 channels, whose words are 4 channels of a pixel.

    tile:    for rows of taps, planes, words: sums of pixels x 32 channels += dot4(weights, word)

The source is multiplied as it lies. A conv in groups multiplies the blocks around the diagonal of its filter
(`hexconv.kernel.grouped`); a source of int16 has its high and low bytes set apart before.

Where the filter has a zero point, every window is summed: for a whole row ahead of its tiles, where rows are whole
vectors, else by each tile. Where a window is one short run of words, a tile's first words are multiplied while the tile
before it is narrowed, and the last tile of a row starts once more.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from typing import Any

from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.form import Memory, VectorForm, unsigned_packing
from hexconv.kernel.grouped import diagonal_of
from hexconv.kernel.layouts import Diagonal, Packing
from hexconv.kernel.planes import Plane
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import (
    FIRST_WORDS,
    LANES,
    PAIR_BYTES,
    VECTOR_BYTES,
    WORD_BYTES,
    WORD_CHANNELS,
    has_vector_rows,
    interleaved_blocks,
    joins_planes,
    makes_blocks,
    multiplied_words,
    overlaps_tiles,
    packets_of_words,
    splats_serve,
    tile_blocks,
    tile_pixels,
)
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.names import filter_cache, numbered, source_cache
from hexconv.spec.vectors import Array

TURN = 3
"""What it takes to enter the inner loop once more, where the words of a row of taps are several runs."""
MADE_ONE = range(8, 0, -1)
"""Trips of an inner loop of one pixel and its window that LLVM makes one of, which takes a packet more than they do."""
LONG_TRIP = 8
"""The packets of an inner loop's trip from which on its start and its end hide behind the loop's own work."""


def of_tiles(conv: RowConv) -> Layout:
    """Return the layout of a filter in the order in which tiles of channels multiply it."""
    chain, index = conv.chain, conv.index
    outputs, inputs, rows, columns = chain.filter_shapes[index]
    diagonal = diagonal_of(chain, index)
    shape = outputs, diagonal.channels if diagonal else inputs, rows, columns
    inner, words = f"{_side_by_side(conv)}o32o4i", conv.reads.unit // WORD_CHANNELS
    in_blocks = index > 0 or conv.spec.groups > 1
    order = f"HIW{words}i{inner}" if in_blocks else f"HWI{1 if conv.reads.is_dense else 2}i{inner}"
    if not conv.filter_is_wide:
        return packed(f"O{order}", shape, logical="OIHW")
    return packed(f"OB{order}", (*shape, 2), logical="OIHWB")


def _side_by_side(conv: RowConv) -> int:
    if conv.spec.groups > 1:
        return _tile_blocks(conv)
    return interleaved_blocks(conv.out_blocks, conv.plan.k_split)


def _tile_blocks(conv: RowConv) -> int:
    k_split, diagonal = conv.plan.k_split, diagonal_of(conv.chain, conv.index)
    return diagonal.tile_blocks(k_split) if diagonal else tile_blocks(min(k_split, conv.out_blocks))


@lru_cache(REMEMBERED)
def _row_packets(spec: Conv2d, dtype: str, plane: Plane, channels: int, columns: int, unit: int, blocks: int) -> float:
    """Estimate the packets of a row of `columns` outputs, of tiles of `blocks` blocks, from planes of all channels."""
    (rows, taps), words = spec.kernel, multiplied_words(channels, plane.words, plane.count)
    is_one_run = taps == 1 or (spec.dilation[1] == 1 and words == plane.words)
    runs = 1 if joins_planes(taps, plane.words, plane.count) else plane.count * (1 if is_one_run else taps)
    trips = words * taps * plane.count // runs * WORD_CHANNELS // PAIR_BYTES
    tiles = ceil(ceil(spec.out_channels / CHANNEL_BLOCK) / blocks) * ceil(columns / tile_pixels(blocks))
    broken = tiles * rows * (runs - 1) * TURN if trips > 1 else 0
    return packets_of_words(spec, dtype, columns, unit, rows * taps * plane.count * words) + broken


@dataclass(frozen=True)
class ChannelForm(VectorForm):
    """Tiles of output channels that multiply words of the source as it lies."""

    name = "channels"
    code = "channel_tiles"

    @classmethod
    def keeps_groups(cls, chain: Chain, index: int) -> bool:
        """Keep groups of which a diagonal of blocks leaves some zeros out."""
        return diagonal_of(chain, index) is not None

    @classmethod
    def tile_of_groups(cls, chain: Chain, index: int, k_split: int) -> int:
        """As many blocks as multiply the same words."""
        diagonal = diagonal_of(chain, index)
        return diagonal.tile_blocks(k_split) if diagonal else 1

    @classmethod
    def serves(cls, conv: RowConv) -> str:
        """Serve all that lies in blocks of 8 channels or more."""
        if conv.spec.groups > 1 and not cls.keeps_groups(conv.chain, conv.index):
            return "its groups are computed by lanes of their own"
        if conv.reads.is_dense or conv.plane.is_of_words:
            return "it reads fewer than 8 channels together"
        return (
            ""
            if makes_blocks(conv.makes.unit, conv.spec.out_channels, _tile_blocks(conv))
            else "its tiles fill no vector"
        )

    @property
    def lanes(self) -> str:
        """Channels, or those of groups."""
        return "channels of groups" if self.diagonal else "output channels"

    @cached_property
    def diagonal(self) -> Diagonal | None:
        """The planes that each block of output channels multiplies where it has groups of its own; else None."""
        return diagonal_of(self.conv.chain, self.conv.index)

    @property
    def row_packets(self) -> float:
        """The products and endings of a row, and what it takes to begin runs of words anew."""
        conv = self.conv
        if self.diagonal:
            return 0.0
        at = conv.source.channels, conv.columns, conv.makes.unit, _tile_blocks(conv)
        return _row_packets(conv.spec, conv.chain.dtype, conv.plane, *at)

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """OHWI2i(g)o32o4i behind the input, OHIW(8 to 32)i(g)o32o4i behind an intermediate; OBHWI.. of int16."""
        return of_tiles(self.conv), unsigned_packing(self.conv.chain, diagonal=self.diagonal)

    @property
    def side_by_side(self) -> int:
        """Those of a tile, if they can."""
        return _side_by_side(self.conv)

    @property
    def tile_blocks(self) -> int:
        """At most 4, so that the tiles of a step are nearly equal; those of a group."""
        return _tile_blocks(self.conv)

    @property
    def planes(self) -> int:
        """The planes of the source that a tile multiplies."""
        return self.diagonal.width if self.diagonal else self.conv.plane.count

    @property
    def tile_row_bytes(self) -> int:
        """The bytes of a stored row of the source that a tile multiplies, or sets apart."""
        return self.planes * self.conv.plane.bytes

    def planes_ahead(self, block: Any, blocks: Any, least: Callable[[Any, int], Any]) -> Any | None:
        """The planes from the first one that a block multiplies to that of a later one; None without groups."""
        diagonal = self.diagonal
        return diagonal and diagonal.first_plane(block + blocks, least) - diagonal.first_plane(block, least)

    @cached_property
    def multiplied_words(self) -> int:
        """The words of a pixel that tiles multiply; splats of a run multiply all words."""
        conv = self.conv
        if self.splats or self.diagonal:
            return conv.plane.words
        return multiplied_words(conv.source.channels, conv.plane.words, conv.plane.count)

    @property
    def multiplied_steps(self) -> int:
        """The filter vectors that tiles multiply for one block of output channels."""
        (rows, columns) = self.conv.spec.kernel
        return rows * columns * self.planes * self.multiplied_words

    @property
    def is_one_run(self) -> bool:
        """Whether the words that tiles multiply for a row of taps lie side by side."""
        spec = self.conv.spec
        return spec.kernel[1] == 1 or (spec.dilation[1] == 1 and self.multiplied_words == self.conv.plane.words)

    @property
    def joins_planes(self) -> bool:
        """Whether the words that tiles multiply for a row of taps are one run, from plane to plane."""
        return not self.splats and joins_planes(self.conv.spec.kernel[1], self.conv.plane.words, self.planes)

    @property
    def planes_apart(self) -> int:
        """The planes of the source that are runs of their own."""
        return 1 if self.joins_planes else self.planes

    @property
    def runs(self) -> int:
        """The runs that the words of a row of taps are."""
        if self.joins_planes:
            return 1
        return self.planes * (1 if self.is_one_run else self.conv.spec.kernel[1])

    @property
    def sums_windows_ahead(self) -> bool:
        """Whether windows are summed before the tiles: where rows are whole vectors."""
        conv = self.conv
        return conv.filter_zero != 0 and has_vector_rows(conv.plane.pixel_bytes, conv.plane.columns)

    @property
    def sums_windows_inside(self) -> bool:
        """Whether tiles sum their windows themselves."""
        return self.conv.filter_zero != 0 and not self.sums_windows_ahead

    @cached_property
    def splats(self) -> bool:
        """Whether it multiplies splats (a word in every lane), not scalar words.

        Its rows are whole vectors then, and its tiles don't sum windows.
        """
        conv = self.conv
        wants = conv.plan.activations == "splats"
        return wants and splats_serve(conv.plane.row_bytes, conv.filter_zero, self.sums_windows_ahead)

    def overlaps(self, blocks: int, tiles: int) -> bool:
        """Whether the first words of tiles of `blocks` blocks are multiplied during the tile before."""
        if self.sums_windows_inside or self.splats or not self.is_one_run:
            return False
        return overlaps_tiles(self.conv.spec.kernel[0], self.planes_apart, self.multiplied_steps, blocks, tiles)

    @cached_property
    def overlapped(self) -> Counter[int]:
        """How many tiles of channels, by their blocks, have first words that are multiplied during the tile before."""
        columns, tiles = self.conv.columns, self.conv.tiles.items()
        found = {blocks: times for blocks, times in tiles if self.overlaps(blocks, columns // tile_pixels(blocks))}
        return Counter(found)

    @property
    def begun_again(self) -> int:
        """The instructions of each row that start its last tile once more, where tiles start during the one before."""
        tiles = self.overlapped.items()
        return sum(times * blocks * tile_pixels(blocks) * FIRST_WORDS for blocks, times in tiles)

    @property
    def window_pixels(self) -> int:
        """The words for the sums of windows."""
        return _vectors(self.conv.columns)

    @property
    def window_columns(self) -> int:
        """The words for the sums of columns: those of the source, and those that the last windows read past them."""
        conv = self.conv
        first, _ = conv.target.valid_columns
        read = first * conv.spec.stride[1] + self.window_pixels + conv.spec.reach[1] - 1
        return _vectors(max(conv.plane.columns, read))

    def scratch(self) -> Iterator[Memory]:
        """Rows of int16 whose bytes are set apart; sums of columns, and of windows."""
        conv = self.conv
        if conv.splits:
            yield Memory("split", "split", "uint8", conv.spec.reach[0] * self.tile_row_bytes)
        if self.sums_windows_ahead:
            yield Memory("columns", "window", "int32", self.window_columns)
            yield Memory("corrections", "window", "int32", self.window_pixels)

    def summed_weights(self, filter: Array) -> Array:
        """Sum the words that tiles multiply; all words where windows are summed ahead."""
        conv, words = self.conv, self.conv.plane.words
        shape = (-1, conv.filter_steps // words, words, conv.side_by_side, CHANNEL_BLOCK, WORD_CHANNELS)
        total = filter.reshape(shape)[:, :, : self.multiplied_words].sum(axis=(1, 2, 5))
        summed = conv.filter_steps if self.sums_windows_ahead else self.multiplied_steps
        return total.reshape(-1)[: conv.out_blocks * CHANNEL_BLOCK] - summed * WORD_CHANNELS * conv.filter_zero

    @property
    def products(self) -> int:
        """For each pixel, block and word, and for the sums of windows."""
        conv = self.conv
        products = conv.columns * self.multiplied_steps * conv.out_blocks * conv.passes + self.begun_again
        if self.sums_windows_ahead:
            products += conv.tiles.total() * conv.spec.kernel[0] * self.tile_row_bytes // VECTOR_BYTES
        elif conv.filter_zero:
            products += conv.columns * self.multiplied_steps * conv.tiles.total() * conv.source_bytes
        return products

    def tile_parts(self, blocks: int) -> Parts:
        """Count the parts of a row of tiles: whole ones, and one of the pixels that are left."""
        parts = Parts()
        for pixels, times in self.row_tiles(blocks):
            parts.add(self._tile(blocks, pixels), times)
        return parts

    def _tile(self, blocks: int, pixels: int) -> Parts:
        """Count the parts of one tile: sums of `blocks` channel blocks by `pixels` pixels."""
        conv, sums, in_tile = self.conv, blocks * pixels, self.sums_windows_inside
        runs, tiles = conv.spec.kernel[0] * self.runs * conv.passes, conv.columns // pixels
        is_whole = pixels == tile_pixels(blocks)
        trips = self.multiplied_steps * conv.passes // 2
        trip = max(pixels * (blocks + in_tile), 2 * blocks, (2 * blocks + pixels) / 2)
        if in_tile and pixels == blocks == 1:
            trip += 1 / next(together for together in MADE_ONE if trips // runs % together == 0)
        parts = Parts(tile=1, run=runs if trips > 1 else 0, sum=sums, inside=sums * in_tile)
        if is_whole and self.overlaps(blocks, tiles):
            parts["begun"], trips = trip, trips - 1
        parts["within" if in_tile else f"multiply{blocks}"] = trips * trip
        lacking = runs * max(0, LONG_TRIP - trip)
        if trips == runs:
            parts["straight_short"] = lacking if trips > 1 else 0  # a window of one trip is no loop in any
        elif trips == 2 * runs:
            parts.add({"twice": runs, "twice_short": lacking})
        else:
            parts.add({f"turn{blocks}": runs * trip, "short": lacking})
        parts[f"apart{blocks}"] = trips * (ceil(blocks / conv.side_by_side) - 1)
        parts["initial"] = blocks * conv.has_offsets
        parts["splat"] = pixels if self.sums_windows_ahead else 0
        parts.add(self.leaving(blocks, pixels))
        return parts

    def parts_ahead(self) -> Parts:
        """Count the parts of the sums of windows, and of rows of int16 that are set apart."""
        conv, tiles, parts = self.conv, self.conv.tiles.total(), Parts()
        parts.add(self._windows() if self.sums_windows_ahead else {}, tiles)
        if conv.splits:
            parts["split"] = tiles * conv.spec.stride[0] * self.tile_row_bytes / VECTOR_BYTES
        return parts

    def _windows(self) -> Parts:
        """Count the parts that it takes to sum the windows of a row of outputs."""
        conv, pixel_bytes = self.conv, self.conv.plane.pixel_bytes
        leaf = max(pixel_bytes // VECTOR_BYTES, 1)
        leaves = LANES * pixel_bytes // VECTOR_BYTES // leaf
        groups, rest = divmod(conv.plane.columns * pixel_bytes // VECTOR_BYTES // leaf, leaves)
        window = self.tile_row_bytes // VECTOR_BYTES * conv.spec.kernel[0]
        parts = Parts(window=window, windows=groups + (rest > 0))
        parts["deal"] = groups * (leaves - 1) + _pairs(leaves, rest)
        if conv.spec.stride[1] == 1:
            parts["correction"] = ceil(conv.columns / LANES) * conv.spec.kernel[1]
        else:
            parts["column"] = conv.columns * conv.spec.kernel[1]
        return parts

    def traffic(self) -> Cost:
        """Add the reads of source and filter."""
        conv, cost = self.conv, super().traffic()
        source, filter = source_cache(conv.number), filter_cache(conv.number)
        words, tiles, columns = self.multiplied_steps, conv.tiles, conv.columns
        if conv.splits:
            source = self._split(cost)
        read = self._splatted_bytes(words) if self.splats else words * WORD_BYTES
        cost.row[source] += columns * read * conv.passes * tiles.total()
        if self.sums_windows_ahead:
            cost.row[source] += tiles.total() * conv.spec.kernel[0] * self.tile_row_bytes
        for blocks, times in tiles.items():
            of_pixels = ceil(columns / tile_pixels(blocks))
            cost.row[filter] += times * of_pixels * blocks * words * conv.passes * VECTOR_BYTES
        for blocks, times in self.overlapped.items():
            cost.row[source] += times * tile_pixels(blocks) * FIRST_WORDS * WORD_BYTES
            cost.row[filter] += times * blocks * FIRST_WORDS * VECTOR_BYTES
        return cost

    def _split(self, cost: Cost) -> str:
        """Add the rows of int16 whose bytes are set apart; tiles read these rows instead of the source."""
        conv, tiles, apart = self.conv, self.conv.tiles.total(), numbered("split", self.conv.number)
        rows, stride = conv.spec.reach[0], conv.spec.stride[0]
        for name in (source_cache(conv.number), apart):
            cost.row[name] += tiles * min(rows, stride) * self.tile_row_bytes
            cost.step[name] += tiles * max(rows - stride, 0) * self.tile_row_bytes
        return apart

    def _splatted_bytes(self, words: int) -> int:
        """The bytes that are read under a window by vectors: two vectors for each 32 words of a run."""
        spec = self.conv.spec
        runs = spec.kernel[0] * self.planes * (1 if spec.dilation[1] == 1 else spec.kernel[1])
        return runs * ceil(words // runs / LANES) * 2 * VECTOR_BYTES


def _vectors(words: int) -> int:
    """Round a number of words up to whole vectors."""
    return ceil(words / LANES) * LANES


def _pairs(leaves: int, there: int) -> int:
    """How many pairs a binary tree over `leaves` leaves has, if only its first `there` leaves exist.

    >>> [_pairs(8, there) for there in (0, 1, 5, 8)]
    [0, 3, 6, 7]
    """
    if there <= 0 or leaves == 1:
        return 0
    return 1 + _pairs(leaves // 2, there) + _pairs(leaves // 2, there - leaves // 2)


def channel_form(conv: RowConv) -> ChannelForm:
    """Return the form of a conv whose tiles multiply words of its source."""
    form = conv.form
    assert isinstance(form, ChannelForm)
    return form
