"""Derive how convs of a nest of rows multiply: which lanes they have, and the tiles and filter vectors of each."""

from collections import Counter
from dataclasses import dataclass
from math import ceil, prod

from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.of_conv import of_conv
from hexconv.analyze.rows_steps import RowSteps
from hexconv.kernel.depthwise import is_depthwise
from hexconv.kernel.forms import has_bytes_apart
from hexconv.kernel.grouped import blocks_of_tile, diagonal_of, own_words_of
from hexconv.kernel.hvx.dense import DenseRows
from hexconv.kernel.hvx.lanes import dense_rows, pixel_lanes
from hexconv.kernel.hvx.own_words import TILE_PIXELS
from hexconv.kernel.hvx.pixels import PixelLanes
from hexconv.kernel.hvx.plane import plane_of
from hexconv.kernel.hvx.tiles import (
    FIRST_WORDS,
    VECTOR_BYTES,
    has_vector_rows,
    joins_planes,
    multiplied_words,
    overlaps_tiles,
    splats_serve,
    tile_pixels,
)
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import MADE_UNSIGNED

MACS_OF_INSTRUCTION = 128


@dataclass(frozen=True)
class RowTiles(RowSteps):
    """A chain under a plan whose nest is kept in rows, with the tiles in which its convs multiply."""

    @of_conv
    def filter_zero(self, index: int) -> int:
        """The zero point of the filter of conv `index` as it is packed."""
        return self.chain.conv[index].filter_zero_point + self.forms.packings[index].shift

    @property
    def source_bytes(self) -> int:
        """The bytes of an element of what convs read."""
        return DTYPE_BYTES[self.chain.dtype]

    @property
    def filter_bytes(self) -> int:
        """The bytes of an element of a filter."""
        return DTYPE_BYTES[self.chain.dtype_of_filters]

    @of_conv
    def source_columns(self, index: int) -> int:
        """How many pixels a stored row of what conv `index` reads has."""
        return self.forms.activations[index].stored_extent("W")

    @of_conv
    def row_bytes(self, index: int) -> int:
        """How many bytes a stored row of what conv `index` reads has, for all channels."""
        layout = self.forms.activations[index]
        return prod(layout.physical_shape[2:]) * (1 if has_bytes_apart(layout) else self.source_bytes)

    @of_conv
    def planes(self, index: int) -> int:
        """How many planes of what conv `index` reads a tile multiplies, which don't lie side by side."""
        diagonal = diagonal_of(self.chain, index)
        return diagonal.width if diagonal else plane_of(self.forms, index, halves=False).count

    @of_conv
    def planes_apart(self, index: int) -> int:
        """How many planes of what conv `index` reads are runs of their own for its tiles."""
        return 1 if self.joins_planes(index) else self.planes(index)

    @of_conv
    def tile_row_bytes(self, index: int) -> int:
        """How many bytes of a stored row of what conv `index` reads a tile of channels multiplies, or takes apart."""
        return self.row_bytes(index) // plane_of(self.forms, index, halves=False).count * self.planes(index)

    @of_conv
    def pixels(self, index: int) -> PixelLanes | None:
        """How pixels of conv `index` are dealt to lanes; None if its lanes are channels."""
        if self.kernels[index] != "hvx":
            return None
        return pixel_lanes(self.chain, index, self.forms, self.plan.k_split)

    @of_conv
    def dense(self, index: int) -> DenseRows | None:
        """How conv `index` multiplies windows of dense rows; None if it doesn't."""
        if self.kernels[index] != "hvx":
            return None
        return dense_rows(self.chain, index, self.forms, self.plan.k_split)

    def makes_narrow(self, index: int) -> bool:
        """Whether conv `index` makes a tensor of which fewer than 32 channels lie together."""
        return self.forms.channel_units[index + 1] < CHANNEL_BLOCK

    def narrow_blocks(self, index: int) -> int:
        """How many narrow blocks of channels a tensor has that conv `index` makes."""
        return ceil(self.chain.conv[index].out_channels / self.forms.channel_units[index + 1])

    def narrow_pixels(self, index: int) -> int:
        """How many pixels of a narrow tensor that conv `index` makes are a vector."""
        return VECTOR_BYTES // self.forms.channel_units[index + 1]

    def blocks_together(self, index: int) -> int:
        """How many blocks of 32 channels lie together in what conv `index` makes, which isn't narrow."""
        return self.forms.channel_units[index + 1] // CHANNEL_BLOCK

    @of_conv
    def has_offsets(self, index: int) -> bool:
        """Whether what is added to the sums of conv `index` differs by channel."""
        starts_from_bias = self.chain.conv[index].bias and not self.chain.adds_bias_last(index)
        return starts_from_bias or self.source_zero(index) != 0

    def source_zero(self, index: int) -> int:
        """The zero point of what conv `index` reads, as it is multiplied: as uint8 where it is laid out before."""
        is_laid = self.pixels(index) is not None or self.dense(index) is not None
        flip = MADE_UNSIGNED if is_laid and self.chain.dtype == "int8" else 0
        return self.chain.output_zero_point(index) + flip

    @of_conv
    def multiplies_tiles(self, index: int) -> bool:
        """Whether lanes of conv `index` are output channels, and tiles multiply words of its source as it lies."""
        has_own = is_depthwise(self.chain, index) or own_words_of(self.chain, index)
        return not has_own and not self.pixels(index) and not self.dense(index)

    @of_conv
    def sums_windows_ahead(self, index: int) -> bool:
        """Whether the windows of conv `index` are summed before its tiles."""
        if not self.multiplies_tiles(index):
            return False
        pixel_bytes = self.forms.activations[index].physical_shape[-1]
        return self.filter_zero(index) != 0 and has_vector_rows(pixel_bytes, self.source_columns(index))

    @of_conv
    def splats(self, index: int) -> bool:
        """Whether conv `index` multiplies splats of its source's words."""
        wants = self.plan.activations == "splats" and self.multiplies_tiles(index)
        return wants and splats_serve(self.row_bytes(index), self.filter_zero(index), self.sums_windows_ahead(index))

    @of_conv
    def tiles(self, index: int) -> Counter[int]:
        """How many tiles of channels conv `index` has, by the channel blocks of a tile."""
        blocks = self.extents[index + 1].channel_blocks
        if is_depthwise(self.chain, index):
            return Counter({1: blocks})
        split = min(self.plan.k_split, blocks)
        most, (whole, rest) = blocks_of_tile(self.chain, index, self.plan.k_split), divmod(blocks, split)
        found: Counter[int] = Counter()
        for size, times in ((split, whole), (rest, 1)):
            found[most] += size // most * times
            found[size % most] += times
        return Counter({size: times for size, times in found.items() if size and times})

    def own_tiles(self, index: int) -> tuple[tuple[int, int], ...]:
        """(pixels of a tile, how many of these a row has) where lanes of conv `index` have words of their own."""
        first, end = self.extents[index + 1].valid_columns
        whole, rest = divmod(end - first, TILE_PIXELS)
        return tuple((pixels, times) for pixels, times in ((TILE_PIXELS, whole), (rest, 1)) if pixels and times)

    def own_quads(self, index: int, pixels: int) -> int:
        """Vectors that a tile of conv `index` loads of its source, where lanes have words of their own."""
        conv, own = self.chain.conv[index], own_words_of(self.chain, index)
        first = self.extents[index + 1].valid_columns[0]
        return conv.kernel[0] * own.quads(conv, first, pixels) if own else 0

    @of_conv
    def filter_vectors(self, index: int) -> int:
        """How many vectors the filter of conv `index` fills, or one byte of each of its elements."""
        return prod(self.forms.filters[index].physical_shape) // MACS_OF_INSTRUCTION // self.filter_bytes

    @of_conv
    def is_one_run(self, index: int) -> bool:
        """Whether the words that tiles of conv `index` multiply for a row of taps lie side by side."""
        conv = self.chain.conv[index]
        is_whole = self.multiplied_vectors(index) == self.filter_vectors(index)
        return conv.kernel[1] == 1 or (conv.dilation[1] == 1 and is_whole)

    @of_conv
    def joins_planes(self, index: int) -> bool:
        """Whether the words that tiles of conv `index` multiply for a row of taps are one run, from plane to plane."""
        words = plane_of(self.forms, index, halves=False).words
        return not self.splats(index) and joins_planes(self.chain.conv[index].kernel[1], words, self.planes(index))

    @of_conv
    def runs(self, index: int) -> int:
        """How many runs the words are that tiles of conv `index` multiply for a row of taps."""
        if self.joins_planes(index):
            return 1
        return self.planes(index) * (1 if self.is_one_run(index) else self.chain.conv[index].kernel[1])

    @of_conv
    def multiplied_vectors(self, index: int) -> int:
        """How many vectors of the filter tiles multiply: those of channels that the source has."""
        if lanes := self.pixels(index) or self.dense(index):
            return lanes.planes.steps * self.extents[index + 1].channel_blocks
        if index == 0 or self.splats(index) or self.chain.conv[index].groups > 1:
            return self.filter_vectors(index)
        plane = plane_of(self.forms, index, halves=False)
        words, planes = plane.words, plane.count
        multiplied = multiplied_words(self.extents[index].channels, words, planes)
        return self.filter_vectors(index) // words * multiplied

    @of_conv
    def overlapped(self, index: int) -> Counter[int]:
        """How many tiles of channels, by their blocks, have first words that are multiplied during the tile before."""
        conv, tensor = self.chain.conv[index], self.extents[index + 1]
        first, end = tensor.valid_columns
        words = self.multiplied_vectors(index) // tensor.channel_blocks
        in_tiles = self.filter_zero(index) != 0 and not self.sums_windows_ahead(index)
        if in_tiles or self.splats(index) or not self.multiplies_tiles(index) or not self.is_one_run(index):
            return Counter()
        return Counter(
            {
                blocks: times
                for blocks, times in self.tiles(index).items()
                if overlaps_tiles(
                    conv.kernel[0], self.planes_apart(index), words, blocks, (end - first) // tile_pixels(blocks)
                )
            }
        )

    def begun_again(self, index: int) -> int:
        """The instructions of each row that start its last tile once more, where tiles start during the one before."""
        tiles = self.overlapped(index).items()
        return sum(times * blocks * tile_pixels(blocks) * FIRST_WORDS for blocks, times in tiles)
