"""Convs whose lanes are output channels, behind a dense input: an input of 1 to 3 channels, its pixels side by side.

In a dense row the bytes under a row of a window are one run: 21 bytes for 7 taps of 3 channels, 6 words instead of one
for each tap. The first byte of a window lies anywhere, but a scalar load takes aligned doublewords. So a row is copied
as often as windows that follow each other begin at other places of a doubleword, each time from the next window on:

    copies of a row, windows 6 bytes apart:   windows 0, 4, 8, ..  |  1, 5, 9, ..  |  2, 6, ..  |  3, 7, ..

    tile:    for rows of taps: for words: sums of pixels x 32 channels += dot4(weights, word)

If the filter has a zero point, every window is summed, once for all channels: rows of taps first, as halfwords that
hold the even bytes and as halfwords that hold the sums of two neighbours; then the halfwords under a window.

    halfwords of even bytes + halfwords of pairs:     window of 21 bytes = 10 pairs + 1 even byte

Windows whose first byte is odd are summed from the second copy, in which it is even.

The alternative is pixels as lanes (`hexconv.kernel.pixels`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gcd, inf

from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.form import Memory, VectorForm, unsigned_packing
from hexconv.kernel.layouts import Packing
from hexconv.kernel.pixels import fits_pixels, in_runs, lanes_between, summed_words, why_no_pixels_of_one_group
from hexconv.kernel.planes import PixelPlanes
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import (
    MOST_BLOCKS,
    PAIR_BYTES,
    PRODUCTS_OF_PACKET,
    VECTOR_BYTES,
    WORD_BYTES,
    WORD_CHANNELS,
    ending_instructions,
    interleaved_blocks,
    makes_blocks,
    tile_blocks,
)
from hexconv.layout import Layout
from hexconv.spec.names import filter_cache, numbered, source_cache
from hexconv.spec.vectors import Array

MOST_WINDOW = 257
"""The most bytes of a window whose sum a halfword holds: 65535 is 257 times 255."""
MOST_SUMS = 16
"""The sums that a tile keeps in registers."""
HALFWORD_BYTES = 2
FEW_STEPS = 12
"""The most words of a window whose rows of taps are no loop."""


def window_pixels(blocks: int) -> int:
    """Pixels of a tile of `blocks` blocks of channels: a power of two, so that copies come in turn in every tile.

    >>> [window_pixels(blocks) for blocks in (1, 2, 3, 4)]
    [16, 8, 4, 4]
    """
    return MOST_SUMS // blocks if blocks != MOST_BLOCKS - 1 else MOST_SUMS // MOST_BLOCKS


@dataclass(frozen=True)
class DenseForm(VectorForm):
    """Output channels as lanes on windows of dense rows: words of the run of bytes that a row of a window is."""

    name = "windows of dense rows"
    code = "dense_windows"
    lays_source_out = True

    @classmethod
    def serves(cls, conv: RowConv) -> str:
        """Serve inputs of 1 to 3 channels whose pixels lie side by side."""
        if not conv.reads.is_dense:
            return "pixels of its source fill words"
        refusal = why_no_pixels_of_one_group(conv.chain, conv.index)
        return refusal if refusal or fits_pixels(conv.plane) else "rows of its source fill no vector"

    @property
    def lanes(self) -> str:
        """Channels, as where words are those of a pixel."""
        return "output channels"

    @cached_property
    def planes(self) -> PixelPlanes:
        """The words under a row of a window, and the source."""
        conv = self.conv
        return lanes_between(conv.chain, conv.index, conv.plane, conv.makes.unit, conv.plan.k_split).planes

    @property
    def apart(self) -> int:
        """Bytes from a window to the next one."""
        return self.conv.spec.stride[1] * self.planes.channels

    @property
    def window_bytes(self) -> int:
        """Bytes under a row of a window."""
        return self.conv.spec.kernel[1] * self.planes.channels

    @property
    def words(self) -> int:
        """Words under a row of a window; the last one may hold bytes that the window doesn't."""
        return ceil(self.window_bytes / WORD_CHANNELS)

    @property
    def loops_over_rows(self) -> bool:
        """Whether a tile's rows of taps are a loop."""
        return self.planes.steps > FEW_STEPS

    @property
    def copies(self) -> int:
        """Copies of a row, so that each window begins at a doubleword of one of them."""
        return PAIR_BYTES // gcd(PAIR_BYTES, self.apart)

    @property
    def copy_vectors(self) -> int:
        """Vectors of a copy: windows of the first one reach as far as those of the others, and sums as far as both."""
        words = ceil(self.words * WORD_CHANNELS / PAIR_BYTES) * PAIR_BYTES
        return ceil(((self.conv.columns - 1) * self.apart + words) / VECTOR_BYTES)

    @property
    def copy_bytes(self) -> int:
        """Bytes from one copy of a row to the next one."""
        return self.copy_vectors * VECTOR_BYTES

    def left(self, copy: int) -> int:
        """The byte of a row of the source at which a copy begins."""
        return (self.planes.left + copy) * self.apart

    def copied(self, copy: int) -> int:
        """Vectors of a copy that hold bytes of the row; those behind it are left as they are."""
        there = self.planes.source.bytes - self.left(copy)
        return min(self.copy_vectors, max(ceil(there / VECTOR_BYTES), 0))

    @property
    def copied_vectors(self) -> int:
        """Vectors that a row of the source is copied in."""
        return sum(self.copied(copy) for copy in range(self.copies))

    @property
    def phases(self) -> int:
        """Copies from which windows are summed: two where the first bytes of windows are odd and even by turns."""
        return 1 + self.apart % HALFWORD_BYTES

    @property
    def pairs(self) -> int:
        """Pairs of bytes under a row of a window that are summed."""
        return self.window_bytes // HALFWORD_BYTES

    @property
    def has_odd_byte(self) -> bool:
        """Whether a window has a byte more than its pairs."""
        return self.window_bytes % HALFWORD_BYTES == 1

    @property
    def row_bytes(self) -> int:
        """Bytes of all copies of a row."""
        return self.copies * self.copy_bytes

    @property
    def halfwords_bytes(self) -> int:
        """Bytes of the halfwords of one kind; windows are summed from halfwords past those of a copy, too."""
        return self.copy_bytes + VECTOR_BYTES * ceil((self.pairs + 1) * HALFWORD_BYTES / VECTOR_BYTES)

    @property
    def corrections_byte(self) -> int:
        """The byte behind all copies, and behind halfwords of pairs and of even bytes, where sums of windows begin."""
        return self.planes.rows * self.row_bytes + 2 * self.halfwords_bytes

    @property
    def summed(self) -> int:
        """Vectors that are loaded and stored to sum the windows of a row of outputs."""
        halfwords = self.conv.spec.kernel[0] + 1 + self.has_odd_byte
        windows = self.pairs + self.has_odd_byte + 1
        return self.phases * self.copy_vectors * (halfwords + windows)

    @property
    def laid(self) -> int:
        """Vectors that are loaded and stored to copy a row of the source."""
        return 2 * self.copied_vectors

    @property
    def row_packets(self) -> float:
        """Products, endings, copies and sums of windows; infinite where windows can't be multiplied as runs.

        Weights are taken to have a zero point, as int8 weights have. Taps have to lie side by side, and halfwords to
        hold the sums of windows.
        """
        conv, planes = self.conv, self.planes
        window = conv.spec.kernel[0] * self.window_bytes
        blocks = makes_blocks(conv.makes.unit, conv.spec.out_channels, self.tile_blocks)
        if conv.spec.dilation[1] > 1 or window > MOST_WINDOW or not blocks:
            return inf
        sums, tiles = conv.columns * conv.out_blocks, ceil(conv.out_blocks / self.tile_blocks)
        moved = tiles * (planes.new_rows * self.laid + self.summed)
        ending = ending_instructions(conv.spec, conv.chain.dtype)
        return sums * (planes.steps / PRODUCTS_OF_PACKET + ending) + moved

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """OHR(g)o32o4r: words of the run of bytes that a row of a window is."""
        return in_runs(self.conv, self.side_by_side), unsigned_packing(self.conv.chain, pads_zeros=True)

    @property
    def side_by_side(self) -> int:
        """Those of a tile, if they can."""
        return interleaved_blocks(self.conv.out_blocks, self.conv.plan.k_split)

    @property
    def tile_blocks(self) -> int:
        """At most 4, so that the tiles of a step are nearly equal."""
        return tile_blocks(min(self.conv.plan.k_split, self.conv.out_blocks))

    @property
    def sums_windows(self) -> bool:
        """Whether windows are summed, for the filter's zero point."""
        return self.conv.filter_zero != 0

    def scratch(self) -> Iterator[Memory]:
        """Copies of a window's rows, halfwords and sums."""
        sums = 2 * self.halfwords_bytes + self.phases * self.copy_bytes
        size = self.planes.rows * self.row_bytes + sums * self.sums_windows
        yield Memory("planes", "planes", "uint8", size)

    def summed_weights(self, filter: Array) -> Array:
        """Sum all words, less the zero points of a window."""
        window = self.conv.spec.kernel[0] * self.window_bytes
        return summed_words(self.conv, filter) - window * self.conv.filter_zero

    @property
    def products(self) -> int:
        """For each pixel, block and word under a window; additions sum windows."""
        return self.conv.columns * self.planes.steps * self.conv.out_blocks

    def row_parts(self) -> Parts:
        """Count the parts of tiles, and of the copies that they read."""
        planes, tiles = self.planes, self.conv.tiles
        summed = self.summed if self.sums_windows else 0
        parts = Parts(copied=tiles.total() * (planes.new_rows * self.laid + summed))
        for blocks, times in tiles.items():
            for pixels, count in self.row_tiles(blocks):
                parts.add(self._tile(blocks, pixels), times * count)
        return parts

    def step_parts(self) -> Parts:
        """Count the rows that the first row of a step copies beside its own new ones."""
        planes = self.planes
        return Parts(copied=self.conv.tiles.total() * (planes.rows - planes.new_rows) * self.laid)

    def _tile(self, blocks: int, pixels: int) -> Parts:
        """Count the parts of a tile: sums of `blocks` channel blocks by `pixels` pixels."""
        conv, sums = self.conv, blocks * pixels
        parts = Parts(tile=1, run=conv.spec.kernel[0] * self.loops_over_rows, sum=sums)
        parts["of_windows" if blocks > 1 else "of_windows1"] = sums * self.planes.steps / 2
        parts["splat"] = pixels if self.sums_windows else 0
        parts.add(self.leaving(blocks, pixels))
        parts["initial"] += blocks * conv.has_offsets
        return parts

    def traffic(self) -> Cost:
        """Add the reads of source, copies and filter."""
        conv, planes, cost = self.conv, self.planes, super().traffic()
        copies, tiles = numbered("planes", conv.number), conv.tiles.total()
        for name in (source_cache(conv.number), copies):
            cost.row[name] += tiles * planes.new_rows * self.copied_vectors * VECTOR_BYTES
            cost.step[name] += tiles * (planes.rows - planes.new_rows) * self.copied_vectors * VECTOR_BYTES
        pairs = ceil(self.words * WORD_BYTES / PAIR_BYTES)
        cost.row[copies] += tiles * conv.columns * conv.spec.kernel[0] * pairs * PAIR_BYTES
        if self.sums_windows:
            cost.row[copies] += tiles * (self.summed * VECTOR_BYTES + conv.columns * HALFWORD_BYTES)
        for blocks, times in conv.tiles.items():
            of_pixels = sum(count for _, count in self.row_tiles(blocks))
            cost.row[filter_cache(conv.number)] += times * of_pixels * blocks * planes.steps * VECTOR_BYTES
        return cost

    def row_tiles(self, blocks: int) -> Sequence[tuple[int, int]]:
        """Tiles in which copies come in turn."""
        return self.cut(window_pixels(blocks))
