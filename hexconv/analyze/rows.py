"""The closed form of a nest of rows, from the shapes and the plan alone: its tiles, its products, the bytes it moves.

Products. One instruction computes 128 products: 4 in each of 32 lanes. Every logical pixel of a step takes one
instruction for each block of 32 output channels and each word of 4 channels under its window. If the filter has a zero
point (int8 filters have 128, as uint8), every tile of channels sums its windows: all vectors of the rows under a row of
outputs, or, if rows are no whole vectors, one instruction more for each word. If the source has a zero point, the
filter is summed once. If the first words of a tile are multiplied during the tile before it, the last tile of a row
starts once more. int16 has a pass for each pair of bytes, and sums the windows of both bytes. Where lanes are pixels
(`hexconv.kernel.hvx.pixels`), an instruction takes 4 input channels of 32 pixels, for one output channel; no windows
are summed.

Traffic. Counted are the input's logical elements of all rows that are read; each filter whenever a step of its conv
makes anything, or once for all threads if it is resident; and the packed output once. Biases are left out.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.needed import Work
from hexconv.analyze.rows_steps import RowSteps
from hexconv.kernel.depthwise import is_depthwise, row_products, variants, without_groups
from hexconv.kernel.forms import has_bytes_apart
from hexconv.kernel.hvx.pixels import PixelLanes, pixel_lanes
from hexconv.kernel.hvx.tiles import (
    FIRST_WORDS,
    MADE_UNSIGNED,
    WORD_CHANNELS,
    has_vector_rows,
    multiplied_words,
    overlaps_tiles,
    splats_serve,
    tile_blocks,
    tile_pixels,
)
from hexconv.kernel.scalar import ScalarWork, scalar_work
from hexconv.spec import Chain, Plan, choose_kernels
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.names import conv_name, filter_name

MACS_OF_INSTRUCTION = 128
VECTOR_WORDS = 32


@dataclass(frozen=True)
class PlannedRows(RowSteps):
    """A chain under a plan whose nest is kept in rows; everything else is derived from it."""

    def filter_zero(self, index: int) -> int:
        """The zero point of the filter of conv `index`, as the filter is multiplied: of uint8."""
        return self.chain.conv[index].filter_zero_point + self.forms.filter_shift

    @property
    def source_bytes(self) -> int:
        """The bytes of an element of what convs read."""
        return DTYPE_BYTES[self.chain.dtype]

    @property
    def filter_bytes(self) -> int:
        """The bytes of an element of a filter."""
        return DTYPE_BYTES[self.chain.dtype_of_filters]

    def source_columns(self, index: int) -> int:
        """How many pixels a stored row of what conv `index` reads has."""
        return self.forms.activations[index].stored_extent("W")

    def row_bytes(self, index: int) -> int:
        """How many bytes a stored row of what conv `index` reads has, for all channels."""
        layout = self.forms.activations[index]
        return prod(layout.physical_shape[2:]) * (1 if has_bytes_apart(layout) else self.source_bytes)

    def pixels(self, index: int) -> PixelLanes | None:
        """How pixels of conv `index` are dealt to lanes; None if its lanes are channels."""
        if self.kernels[index] != "hvx":
            return None
        return pixel_lanes(self.chain, index, self.forms, self.plan.k_split)

    def makes_fours(self, index: int) -> bool:
        """Whether conv `index` makes a tensor in blocks of 4 channels."""
        return self.forms.channel_units[index + 1] == WORD_CHANNELS

    def blocks_together(self, index: int) -> int:
        """How many blocks of 32 channels lie together in what conv `index` makes, which has no blocks of 4."""
        return self.forms.channel_units[index + 1] // CHANNEL_BLOCK

    def has_offsets(self, index: int) -> bool:
        """Whether what is added to the sums of conv `index` differs by channel."""
        return self.chain.conv[index].bias or self.source_zero(index) != 0

    def source_zero(self, index: int) -> int:
        """The zero point of what conv `index` reads, as it is multiplied: where lanes are pixels, as uint8."""
        flip = MADE_UNSIGNED if self.pixels(index) and self.chain.dtype == "int8" else 0
        return self.chain.output_zero_point(index) + flip

    def multiplies_tiles(self, index: int) -> bool:
        """Whether lanes of conv `index` are output channels, so that tiles multiply words of its source."""
        return not is_depthwise(self.chain, index) and self.pixels(index) is None

    def sums_windows_ahead(self, index: int) -> bool:
        """Whether the windows of conv `index` are summed before its tiles."""
        if not self.multiplies_tiles(index):
            return False
        pixel_bytes = self.forms.activations[index].physical_shape[-1]
        return self.filter_zero(index) != 0 and has_vector_rows(pixel_bytes, self.source_columns(index))

    def splats(self, index: int) -> bool:
        """Whether conv `index` multiplies splats of its source's words."""
        wants = self.plan.activations == "splats" and self.multiplies_tiles(index)
        return wants and splats_serve(self.row_bytes(index), self.filter_zero(index), self.sums_windows_ahead(index))

    def tiles(self, index: int) -> Counter[int]:
        """How many tiles of channels conv `index` has, by the channel blocks of a tile."""
        blocks = self.extents[index + 1].channel_blocks
        if is_depthwise(self.chain, index):
            return Counter({1: blocks})
        split = min(self.plan.k_split, blocks)
        most, (whole, rest) = tile_blocks(split), divmod(blocks, split)
        found: Counter[int] = Counter()
        for size, times in ((split, whole), (rest, 1)):
            found[most] += size // most * times
            found[size % most] += times
        return Counter({size: times for size, times in found.items() if size and times})

    def filter_vectors(self, index: int) -> int:
        """How many vectors the filter of conv `index` fills, or one byte of each of its elements."""
        return prod(self.forms.filters[index].physical_shape) // MACS_OF_INSTRUCTION // self.filter_bytes

    def is_one_run(self, index: int) -> bool:
        """Whether the words that tiles of conv `index` multiply for a row of taps lie side by side."""
        conv = self.chain.conv[index]
        is_whole = self.multiplied_vectors(index) == self.filter_vectors(index)
        return conv.kernel[1] == 1 or (conv.dilation[1] == 1 and is_whole)

    def multiplied_vectors(self, index: int) -> int:
        """How many vectors of the filter tiles multiply: those of channels that the source has."""
        if lanes := self.pixels(index):
            return lanes.planes.steps * self.extents[index + 1].channel_blocks
        if index == 0 or self.splats(index):
            return self.filter_vectors(index)
        layout = self.forms.activations[index].physical_shape
        words = layout[-1] // WORD_CHANNELS
        multiplied = multiplied_words(self.extents[index].channels, words, layout[2])
        return self.filter_vectors(index) // words * multiplied

    def overlapped(self, index: int) -> Counter[int]:
        """How many tiles of channels, by their blocks, have first words that are multiplied during the tile before."""
        conv, tensor = self.chain.conv[index], self.extents[index + 1]
        first, end = tensor.valid_columns
        planes = 1 if index == 0 else self.forms.activations[index].physical_shape[2]  # C
        words = self.multiplied_vectors(index) // tensor.channel_blocks
        in_tiles = self.filter_zero(index) != 0 and not self.sums_windows_ahead(index)
        if in_tiles or self.splats(index) or self.pixels(index) or not self.is_one_run(index):
            return Counter()
        return Counter(
            {
                blocks: times
                for blocks, times in self.tiles(index).items()
                if overlaps_tiles(conv.kernel[0], planes, words, blocks, (end - first) // tile_pixels(blocks))
            }
        )

    def begun_again(self, index: int) -> int:
        """The instructions of each row that start its last tile once more, where tiles start during the one before."""
        tiles = self.overlapped(index).items()
        return sum(times * blocks * tile_pixels(blocks) * FIRST_WORDS for blocks, times in tiles)

    def macs(self, index: int) -> int:
        """The multiply-accumulates of conv `index` in a run, recomputed ones included."""
        if self.kernels[index] == "hvx":
            return self.instructions(index) * MACS_OF_INSTRUCTION
        first, end = self.extents[index + 1].valid_columns
        return self.logical_rows(index + 1) * (end - first) * self.scalar(index).macs + self.macs_once(index)

    @property
    def input_row_bytes(self) -> int:
        """The bytes that are copied of a row of the input."""
        first, end = self.extents[0].valid_columns
        return (end - first) * self.chain.input[3] * DTYPE_BYTES[self.chain.dtype]

    def macs_once(self, index: int) -> int:
        """The multiply-accumulates that sum the filter of conv `index` for its source's zero point, in all threads."""
        return self.staging_macs(index) if self.makes_any(index) else 0

    def staging_macs(self, index: int) -> int:
        """The same, whether or not the loops of conv `index` make anything."""
        if self.kernels[index] == "hvx":
            return self._staging_sums(index) * MACS_OF_INSTRUCTION * self.bands.count
        return self.scalar(index).filter_macs * self.bands.count

    def scalar(self, index: int) -> ScalarWork:
        """What scalar code does for one pixel of conv `index`, and for its filter once."""
        words = self.filter_vectors(index) // self.extents[index + 1].channel_blocks
        planes = 1 if index == 0 else self.forms.activations[index].physical_shape[2]
        window_sums = self.channel_tiles(index) if self.filter_zero(index) else 0
        return scalar_work(self.chain, index, planes, words, window_sums)

    def instructions(self, index: int) -> int:
        """How many HVX instructions multiply for conv `index` in a run."""
        tensor, conv = self.extents[index + 1], self.chain.conv[index]
        first, end = tensor.valid_columns
        if not self.makes_any(index):
            return 0
        if is_depthwise(self.chain, index):
            return self._depthwise_instructions(index)
        if lanes := self.pixels(index):
            return self.logical_rows(index + 1) * lanes.products + self.filter_sums(index) * self.bands.count
        vectors, passes = self.multiplied_vectors(index), self.source_bytes * self.filter_bytes
        rows, tiles = self.logical_rows(index + 1), self.tiles(index).total()
        words = vectors // tensor.channel_blocks
        products = rows * ((end - first) * vectors * passes + self.begun_again(index))
        if self.sums_windows_ahead(index):
            products += rows * tiles * conv.kernel[0] * self.row_bytes(index) // MACS_OF_INSTRUCTION
        elif self.filter_zero(index):
            products += rows * (end - first) * words * tiles * self.source_bytes
        return products + self.filter_sums(index) * self.bands.count

    def makes_any(self, index: int) -> bool:
        """Whether the loops of conv `index` make any logical element: its reader may read nothing but its padding.

        A thread may make no row of it and still stage the filter: its loops are those of the chain without bands.
        """
        first, end = self.extents[index + 1].valid_columns
        return first < end and self.without_bands.reaches_any(index + 1)

    @property
    def without_bands(self) -> "PlannedRows":
        """Return the same plan on one thread."""
        return self if self.bands.count == 1 else planned_rows(self.chain, replace(self.plan, threads=1))

    def _depthwise_instructions(self, index: int) -> int:
        """The instructions of a depthwise conv; a zero point of its filter other than 0 and 128 doubles them."""
        tensor, conv = self.extents[index + 1], self.chain.conv[index]
        first, end = tensor.valid_columns
        passes = 1 if self.filter_zero(index) in (0, MADE_UNSIGNED) else 2
        of_row = row_products(conv, end - first) * conv.kernel[0]
        return self.logical_rows(index + 1) * of_row * passes + self.filter_sums(index) * self.bands.count

    def filter_sums(self, index: int) -> int:
        """How many instructions sum the filter of conv `index` in a thread, for the zero point of its source."""
        return self._staging_sums(index) if self.makes_any(index) else 0

    def _staging_sums(self, index: int) -> int:
        conv = self.chain.conv[index]
        if not self.source_zero(index):
            return 0
        if is_depthwise(self.chain, index):
            whole = sum(shift == 0 for shift, _ in variants(conv))
            return whole * conv.kernel[0] * self.extents[index + 1].channel_blocks
        return self.multiplied_vectors(index)


@lru_cache(REMEMBERED)
def planned_rows(chain: Chain, plan: Plan) -> PlannedRows:
    """The closed forms of a chain under a plan; each figure is computed once and remembered."""
    return PlannedRows(without_groups(chain), plan, tuple(choice.used for choice in choose_kernels(chain, plan)))


def rows_work(chain: Chain, plan: Plan) -> Work:
    """The bytes that a nest of rows moves and the multiply-accumulates that it does."""
    planned, last = planned_rows(chain, plan), len(chain.conv) - 1
    traffic = {"input": planned.logical_rows(0) * planned.input_row_bytes}
    for index, filter in enumerate(planned.forms.filters):
        traffic[filter_name(index + 1)] = planned.filter_stagings(index) * prod(filter.physical_shape)
    traffic["output"] = prod(planned.forms.output.physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    macs = {conv_name(index + 1): planned.macs(index) for index in range(last + 1)}
    return Work(traffic, macs)
