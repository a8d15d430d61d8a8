"""Closed form of a nest of rows: how each conv multiplies, its tiles and filter vectors, its products and bytes.

Products. One instruction computes 128 products: 4 in each of 32 lanes. Every logical pixel of a step takes one
instruction for each block of 32 output channels and each word of 4 channels under its window. If the filter has a zero
point (int8 filters have 128, as uint8), every tile of channels sums its windows: all vectors of the rows under a row of
outputs, or, if rows are no whole vectors, one instruction more for each word. If the first words of a tile are
multiplied during the tile before it, the last tile of a row starts once more. int16 has a pass for each pair of bytes,
and sums the windows of both bytes. Where lanes are pixels (`hexconv.kernel.pixels`), an instruction takes 4 input
channels of 32 pixels, for one output channel; no windows are summed. On dense rows (`hexconv.kernel.dense`) a word
has 4 bytes of a row of a window, whatever their taps, and additions sum windows. No filter is summed for the zero point
of a source, except by scalar code: HVX kernels load offsets that are laid out before a run.

Traffic. Counted are the input's logical elements of all rows that are read; each filter whenever a step of its conv
makes anything, or once for all threads if it is resident; and the packed output once. Biases, vectors and tables go
through no cache; `hexconv.analyze.planned` counts them once a call.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from math import ceil, prod
from typing import Any, TypeVar

from hexconv.analyze.caches import DTYPE_BYTES
from hexconv.analyze.needed import Work
from hexconv.analyze.row_stripes import RowStripes
from hexconv.kernel import output_layout
from hexconv.kernel.dense import DenseRows
from hexconv.kernel.depthwise import is_depthwise, row_products
from hexconv.kernel.forms import has_bytes_apart
from hexconv.kernel.grouped import TILE_PIXELS, blocks_of_tile, diagonal_of, own_words_of, without_groups
from hexconv.kernel.lanes import dense_rows, pixel_lanes
from hexconv.kernel.pixels import PixelLanes
from hexconv.kernel.planes import plane_of
from hexconv.kernel.scalar import ScalarWork, scalar_groups, scalar_work
from hexconv.kernel.tiles import (
    FIRST_WORDS,
    VECTOR_BYTES,
    has_vector_rows,
    joins_planes,
    multiplied_words,
    overlaps_tiles,
    splats_serve,
    tile_pixels,
)
from hexconv.spec import Chain, Plan, choose_kernels
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.names import conv_name, filter_name
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.strips import in_strips, strips_of

Figure = TypeVar("Figure")


def of_conv(figure: Callable[[Any, int], Figure]) -> Callable[[Any, int], Figure]:
    """Decorate a method that returns a figure of conv `index`: each instance computes it once for each conv."""
    name = f"_known_{figure.__name__}"

    @wraps(figure)
    def remembered(self: Any, index: int) -> Figure:
        known = self.__dict__.get(name)
        if known is None:
            known = self.__dict__[name] = {}
        if index not in known:
            known[index] = figure(self, index)
        return known[index]

    return remembered


MACS_OF_INSTRUCTION = 128


@dataclass(frozen=True)
class RowTiles(RowStripes):
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


VECTOR_WORDS = 32


@dataclass(frozen=True)
class PlannedRows(RowTiles):
    """A chain under a plan whose nest is kept in rows; everything else is derived from it."""

    def macs(self, index: int) -> int:
        """The multiply-accumulates of conv `index` in a run, recomputed ones included."""
        if self.kernels[index] == "hvx":
            return self.instructions(index) * MACS_OF_INSTRUCTION
        return self.logical_rows(index + 1) * self.macs_of_row(index) + self.macs_once(index)

    def macs_of_row(self, index: int) -> int:
        """The multiply-accumulates of a row of conv `index`, whether or not it makes any."""
        if self.kernels[index] == "hvx":
            return self.instructions_of_row(index) * MACS_OF_INSTRUCTION
        first, end = self.extents[index + 1].valid_columns
        return (end - first) * self.scalar(index).macs

    def input_bytes(self, rows: Any) -> Any:
        """Return the bytes that are copied of so many rows of the input, strip by strip equally many."""
        first, end = self.extents[0].valid_columns
        of_pixel = self.chain.input[3] * DTYPE_BYTES[self.chain.dtype]
        if not self.strips:
            return rows * (end - first) * of_pixel
        valid = (self.strips.valid_columns(0, number) for number in range(self.strips.count))
        return rows // self.strips.count * sum(end - first for first, end in valid) * of_pixel

    def filled_bytes(self, tensor: int, rows: Any) -> Any:
        """Return the bytes outside of the image that are filled in so many rows of an intermediate, in all strips."""
        if not self.strips or not self.strips.fills(tensor):
            return 0 * rows
        layout, columns = self.forms.activations[tensor], self.strips.tensors[tensor].made
        valid = (self.strips.valid_columns(tensor, number) for number in range(self.strips.count))
        filled = sum(first + columns - end for first, end in valid)
        return rows // self.strips.count * filled * layout.stored_extent("C") * self.source_bytes

    def kept_bytes(self, tensor: int, rows: Any) -> Any:
        """Return the bytes that are kept of so many rows of a tensor: each strip but the last keeps its own."""
        if not self.strips or not self.strips.keeps:
            return 0 * rows
        shape, kept = self.forms.activations[tensor].physical_shape, self.strips.tensors[tensor].kept
        of_column = prod(shape[2:]) // self.source_columns(tensor)
        of_column *= DTYPE_BYTES[self.chain.dtype] if tensor == 0 else 1  # bytes of an intermediate lie apart
        return rows // self.strips.count * (self.strips.count - 1) * kept * of_column

    @property
    def first_reads(self) -> int:
        """How many rows of the input steps of the first conv are the first to read in their strip, in all strips."""
        return int(self.counts.first_reads[0]) * self.runs_of(1) if self.makes_any(0) else 0

    def macs_once(self, index: int) -> int:
        """The multiply-accumulates that sum the filter of conv `index` for its source's zero point, in all threads.

        Scalar code does that; HVX kernels load offsets that were laid out before.
        """
        return self.staging_macs(index) if self.makes_any(index) else 0

    def staging_macs(self, index: int) -> int:
        """The multiply-accumulates of that sum, whether or not the loops of conv `index` make anything."""
        if self.kernels[index] == "hvx":
            return 0
        return self.scalar(index).filter_macs * self.bands.count

    def scalar(self, index: int) -> ScalarWork:
        """What scalar code does for one pixel of conv `index`, and for its filter once."""
        words = self.filter_vectors(index) // self.extents[index + 1].channel_blocks
        diagonal = diagonal_of(self.chain, index)
        inputs = diagonal.channels if diagonal else self.chain.filter_shapes[index][1]
        tiles = scalar_groups(self.extents[index + 1].channels) if diagonal else self.channel_tiles(index)
        window_sums = tiles if self.filter_zero(index) else 0
        return scalar_work(self.chain, index, inputs, self.planes(index), words, window_sums)

    def instructions(self, index: int) -> int:
        """How many HVX instructions multiply for conv `index` in a run."""
        return self.logical_rows(index + 1) * self.instructions_of_row(index) if self.makes_any(index) else 0

    def instructions_of_row(self, index: int) -> int:
        """How many HVX instructions multiply for a row of conv `index`."""
        tensor, conv = self.extents[index + 1], self.chain.conv[index]
        first, end = tensor.valid_columns
        if is_depthwise(self.chain, index):
            return self._depthwise_instructions(index)
        if own_words_of(self.chain, index):
            return (end - first) * self.filter_vectors(index)
        if lanes := self.pixels(index):
            return lanes.products
        vectors, passes = self.multiplied_vectors(index), self.source_bytes * self.filter_bytes
        words, tiles = vectors // tensor.channel_blocks, self.tiles(index).total()
        products = (end - first) * vectors * passes + self.begun_again(index)
        if self.sums_windows_ahead(index):
            products += tiles * conv.kernel[0] * self.tile_row_bytes(index) // MACS_OF_INSTRUCTION
        elif self.filter_zero(index) and not self.dense(index):
            products += (end - first) * words * tiles * self.source_bytes
        return products

    def makes_any(self, index: int) -> bool:
        """Whether any thread makes a logical element of conv `index`: its reader may read nothing but its padding."""
        first, end = self.extents[index + 1].valid_columns
        return first < end and self.logical_rows(index + 1) > 0

    def _depthwise_instructions(self, index: int) -> int:
        """Those of a row of a depthwise conv; a zero point of its filter as it is packed doubles them."""
        first, end = self.extents[index + 1].valid_columns
        conv = self.chain.conv[index]
        passes = 2 if self.filter_zero(index) else 1
        return row_products(conv, end - first) * conv.kernel[0] * passes


@lru_cache(REMEMBERED)
def planned_rows(chain: Chain, plan: Plan) -> PlannedRows:
    """The closed forms of a chain under a plan; each figure is computed once and remembered."""
    nest, of_nest = in_strips(chain, plan)
    choices = choose_kernels(chain, plan)
    return PlannedRows(without_groups(nest), of_nest, tuple(choice.used for choice in choices), strips_of(chain, plan))


def rows_work(planned: PlannedRows) -> Work:
    """The bytes that a planned chain moves and the multiply-accumulates that it does."""
    chain, last = planned.chain, len(planned.chain.conv) - 1
    traffic = {"input": planned.input_bytes(planned.logical_rows(0))}
    for index, filter in enumerate(planned.forms.filters):
        traffic[filter_name(index + 1)] = planned.filter_stagings(index) * prod(filter.physical_shape)
    written = output_layout(chain, planned.strips.outputs if planned.strips else None)
    traffic["output"] = prod(written.physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    macs = {conv_name(index + 1): planned.macs(index) for index in range(last + 1)}
    return Work(traffic, macs)
