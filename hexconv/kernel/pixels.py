"""Convs with pixels as lanes: no output channel is filled up to 32, and no input of few channels to 4 or 8.

A vector holds 4 bytes of each of 32 neighbouring outputs' windows (`hexconv.kernel.planes`), a scalar word the 4
weights of one output channel, and a sum is 32 pixels of that channel.

    tile:    for rows of taps, planes: sums of pixels x channels += dot4(plane, weights)
    result:  4 sums narrow to one vector of words; those of a block (where no channel is: the fringe) are shuffled to
             pixels of 32 channels, to pixels of 8 or 16 in narrow blocks (`hexconv.kernel.channel_blocks`), or
             stored as they are in blocks of 4

The alternative is channels as lanes (`hexconv.kernel.channels`), which takes 32 of them however few there are.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.form import Memory, VectorForm, signed_packing
from hexconv.kernel.layouts import Packing
from hexconv.kernel.planes import PixelPlanes, Plane, deals
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import (
    BYTES,
    LANES,
    PRODUCTS_OF_PACKET,
    VECTOR_BYTES,
    WORD_CHANNELS,
    ending_instructions,
    tile_blocks,
    unsigned_zero,
)
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Conv2d, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.names import numbered, source_cache
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.vectors import Array

BLOCK_WORDS = CHANNEL_BLOCK // WORD_CHANNELS
"""Vectors of words that pixels of 32 channels are shuffled from."""
MOST_VECTORS = 4
"""The most vectors of pixels in a tile."""
MOST_SUMS = 16
"""The most sums that a tile keeps in registers: vectors of pixels times channels."""
SCALED_AT_ONCE = 8
"""Vectors of sums that are scaled side by side: more of them, and what they are scaled by, fill the registers."""
MOST_STRIDE = 2
"""The largest stride along a row."""
PEELED_GROUPS = 2
"""The most planes' groups of a row of taps of which LLVM makes no pipelined loop."""


@dataclass(frozen=True)
class PixelTile:
    """Neighbouring pixels of a row whose sums are computed together.

    Attributes:
        pixels: the number of pixels.
        channels: output channels that are computed together, a multiple of 4; the last ones of a conv may be fewer.
    """

    pixels: int
    channels: int

    @property
    def vectors(self) -> int:
        """Vectors of 32 pixels in the tile."""
        return ceil(self.pixels / LANES)

    @property
    def scaled_channels(self) -> int:
        """Channels whose sums are scaled side by side: the instructions for one vector wait for each other."""
        return max(SCALED_AT_ONCE // self.vectors, 1)


@dataclass(frozen=True)
class PixelLanes:
    """One conv whose lanes are pixels.

    Attributes:
        conv: the conv.
        dtype: the dtype of what it makes.
        columns: the columns of a row of outputs.
        unit: output channels that lie together in a pixel of the target.
        tile_blocks: blocks of 32 output channels that are computed together; each tile of them lays out its own planes.
        planes: the planes that the conv multiplies.
    """

    conv: Conv2d
    dtype: str
    columns: int
    unit: int
    tile_blocks: int
    planes: PixelPlanes

    @property
    def tiles_of_channels(self) -> int:
        """The tiles of channels in which a row is computed."""
        return ceil(ceil(self.conv.out_channels / CHANNEL_BLOCK) / self.tile_blocks)

    @property
    def tile(self) -> PixelTile:
        """The tile of a row: of at most `MOST_VECTORS` vectors, so that all tiles are nearly equal."""
        vectors = ceil(self.vectors / ceil(self.vectors / MOST_VECTORS))
        return _tile(vectors * LANES)

    @property
    def tiles(self) -> tuple[tuple[PixelTile, int], ...]:
        """(tile, how often it comes) for a row: full tiles, then one of the pixels that are left."""
        whole, rest = divmod(self.columns, self.tile.pixels)
        found = ((self.tile, whole), (_tile(rest), 1)) if rest else ((self.tile, whole),)
        return tuple((tile, times) for tile, times in found if times)

    def runs(self, tile: PixelTile) -> int:
        """How often a tile goes over its window: once for each set of channels that are computed together."""
        return sum(self._sets(tile).values())

    def scalings(self, tile: PixelTile) -> int:
        """How often a tile scales the sums of channels side by side."""
        return sum(times * ceil(size / tile.scaled_channels) for size, times in self._sets(tile).items())

    def _sets(self, tile: PixelTile) -> Counter[int]:
        """Count the sets of channels that are computed together, by their channels."""
        whole, rest = divmod(self.conv.out_channels, CHANNEL_BLOCK)
        found = Counter[int]()
        for channels, times in ((CHANNEL_BLOCK, whole), (rest, 1)):
            found[tile.channels] += times * (channels // tile.channels)
            found[channels % tile.channels] += times
        del found[0]
        return found

    @property
    def products(self) -> int:
        """Instructions that multiply for a row of outputs."""
        return self.vectors * self.conv.out_channels * self.planes.steps

    @property
    def results(self) -> int:
        """Words of 4 output channels in a pixel of the result."""
        return ceil(self.conv.out_channels / WORD_CHANNELS)

    @property
    def shuffled(self) -> int:
        """Instructions that shuffle and store the results of 32 pixels."""
        words = self.unit // WORD_CHANNELS
        whole, rest = divmod(self.results, words)
        of_words = whole * deals(words, words) + deals(words, rest)
        return of_words + ceil(self.results / words) * words

    @property
    def vectors(self) -> int:
        """Vectors of 32 pixels in a row of outputs."""
        return ceil(self.columns / LANES)


def _tile(pixels: int) -> PixelTile:
    vectors = ceil(pixels / LANES)
    return PixelTile(pixels, MOST_SUMS // vectors // WORD_CHANNELS * WORD_CHANNELS)


@lru_cache(REMEMBERED)
def packets_of_pixels(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with pixels as lanes."""
    ended = lanes.vectors * lanes.conv.out_channels * ending_instructions(lanes.conv, lanes.dtype)
    moved = lanes.tiles_of_channels * lanes.planes.new_rows * lanes.planes.laid + lanes.vectors * lanes.shuffled
    return lanes.products / PRODUCTS_OF_PACKET + ended + moved


def lanes_between(chain: Chain, index: int, source: Plane, unit: int, k_split: int) -> PixelLanes:
    """How conv `index` runs with pixels as lanes between two caches.

    Args:
        chain: the chain.
        index: the index of the conv, from 0.
        source: how the cache lies that it reads.
        unit: the channels that lie together in the cache that it fills.
        k_split: blocks of output channels of a step.
    """
    conv, (first, end) = chain.conv[index], tensor_extents(chain)[index + 1].valid_columns
    blocks, channels = ceil(conv.out_channels / CHANNEL_BLOCK), tensor_extents(chain)[index].channels
    planes = PixelPlanes(conv, left=first, vectors=ceil((end - first) / LANES), channels=channels, source=source)
    return PixelLanes(conv, chain.dtype, end - first, unit, tile_blocks(min(k_split, blocks)), planes)


def why_no_pixels(chain: Chain, index: int) -> str:
    """Return why conv `index` can't have pixels as lanes even where it has a single group; nothing if it can."""
    conv = chain.conv[index]
    if chain.dtype not in BYTES or conv.requantize is None:
        return "it doesn't read and make bytes"
    if unsigned_zero(chain, index) not in (0, MADE_UNSIGNED):
        return "its filter has a zero point that no sign takes away"
    return "" if conv.stride[1] <= MOST_STRIDE else f"its stride along a row is more than {MOST_STRIDE}"


def why_no_pixels_of_one_group(chain: Chain, index: int) -> str:
    """Return why conv `index` can't have pixels as lanes; nothing if it can."""
    conv, (first, end) = chain.conv[index], tensor_extents(chain)[index + 1].valid_columns
    if conv.groups > 1:
        return "it has groups"
    return why_no_pixels(chain, index) if first < end else "it makes no element"


def fits_pixels(source: Plane) -> bool:
    """Whether a conv with pixels as lanes can read a source, of which a row holds a vector.

    Vectors hold whole pixels, or pixels are dense and spread to words.
    """
    fits = source.is_dense or VECTOR_BYTES % source.pixel_bytes == 0
    return fits and source.columns * source.pixel_bytes >= VECTOR_BYTES


def in_runs(conv: RowConv, side_by_side: int) -> Layout:
    """Return the layout of a filter whose columns and channels are one axis."""
    outputs, inputs, rows, columns = conv.chain.filter_shapes[conv.index]
    return packed(f"OHR{side_by_side}o32o4r", (outputs, rows, columns * inputs))


@dataclass(frozen=True)
class PixelForm(VectorForm):
    """Pixels as lanes: 32 of them in a vector of sums, for one output channel."""

    name = "pixels"
    code = "pixel_lanes"
    has_pixels = True
    lays_source_out = True

    @classmethod
    def serves(cls, conv: RowConv) -> str:
        """Serve convs of bytes of one group, whose source fits vectors."""
        refusal = why_no_pixels_of_one_group(conv.chain, conv.index)
        return refusal if refusal or fits_pixels(conv.plane) else "rows of its source fill no vectors of whole pixels"

    @classmethod
    def columns_read(cls, chain: Chain, index: int, unit: int) -> int:
        """Those of a tensor in blocks of 4 channels that it multiplies as it lies; 0 where it doesn't."""
        if unit != WORD_CHANNELS or why_no_pixels_of_one_group(chain, index):
            return 0
        plane = Plane(ceil(chain.shapes[index][3] / unit), 0, unit, 0)
        planes = lanes_between(chain, index, plane, CHANNEL_BLOCK, 1).planes
        return planes.read_lanes if planes.is_direct else 0

    @cached_property
    def row(self) -> PixelLanes:
        """How a row is cut into tiles, and which planes they multiply."""
        conv = self.conv
        return lanes_between(conv.chain, conv.index, conv.plane, conv.makes.unit, conv.plan.k_split)

    @property
    def planes(self) -> PixelPlanes:
        """The planes that tiles multiply."""
        return self.row.planes

    @property
    def row_packets(self) -> float:
        """Products, endings, and what lays planes out and shuffles results."""
        return packets_of_pixels(self.row)

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """OHI(w)iW1o32o4i: for a row of taps, for 4 channels: a word of each tap; OHR1o32o4r where words go on."""
        conv, planes = self.conv, self.planes
        shape = conv.chain.filter_shapes[conv.index]
        layout = in_runs(conv, 1) if planes.goes_on else packed(f"OHI{planes.words}iW1o32o4i", shape, logical="OIHW")
        return layout, signed_packing(conv.chain, conv.index, is_words=True)

    @property
    def tile_blocks(self) -> int:
        """Those for which planes are laid out once."""
        return self.row.tile_blocks

    def scratch(self) -> Iterator[Memory]:
        """The planes of a window's rows, if any are laid out."""
        if self.planes.bytes:
            yield Memory("planes", "planes", "uint8", self.planes.bytes)

    def summed_weights(self, filter: Array) -> Array:
        """Sum all words: what is no weight is 0."""
        return summed_words(self.conv, filter)

    @property
    def products(self) -> int:
        """For each vector of pixels, output channel and word under a window."""
        return self.row.products

    def row_parts(self) -> Parts:
        """Count the parts of tiles, and of the planes that they read."""
        parts = Parts(lane_row=1)
        parts.add(self._laid(), self.conv.tiles.total() * self.planes.new_rows)
        for tile, times in self.row.tiles:
            parts.add(self._tile(tile), times)
        return parts

    def step_parts(self) -> Parts:
        """Count the rows that the first row of a step lays out beside its own new ones."""
        parts = Parts()
        parts.add(self._laid(), self.conv.tiles.total() * (self.planes.rows - self.planes.new_rows))
        return parts

    def _laid(self) -> Parts:
        """Count the instructions that lay out a row of the source: those that deal vectors, that move words, others."""
        planes = self.planes
        if planes.is_direct:
            return Parts()
        dealt = planes.chunks * planes.stride * planes.source.count * deals(planes.source.words, planes.words)
        plane = planes.laid - dealt - planes.moved
        return Parts(dealt=dealt, plane=plane, merged=planes.moved, phased=planes.stride > 1)

    def _tile(self, tile: PixelTile) -> Parts:
        """Count the parts of a tile: every vector of sums belongs to one channel."""
        conv, channels = self.conv, self.conv.spec.out_channels
        sums, runs = tile.vectors * channels, self.row.runs(tile) * conv.spec.kernel[0]
        parts = Parts(tile=1, lane_run=runs, lane_loop=runs * (self.planes.groups > PEELED_GROUPS), sum=sums)
        of_pixels, words = sums * self.planes.steps / 2, channels * self.planes.steps
        loaded = tile.vectors * self.row.runs(tile) * self.planes.steps + words / 2
        parts.add({"of_pixels": of_pixels, "lane_load": max(loaded - of_pixels, 0)})
        parts["across"] = tile.vectors * self.row.shuffled
        ended = self.ending(sums, tile.vectors * self.row.results, channels)
        parts.add({name: ended[name] for name in ("narrow", "table")})
        ways = {f"lane_{name}": ended[name] for name in ("scale", "away", "even") if ended[name]}
        parts.add({**ways, "lane_channel": self.row.scalings(tile)} if ways else {})
        parts["lane_offset"] = channels * conv.has_offsets
        return parts

    def traffic(self) -> Cost:
        """Add the reads of the source and of its planes; scalar loads read its filter."""
        conv, planes, cost = self.conv, self.planes, super().traffic()
        multiplied = source_cache(conv.number) if planes.is_direct else numbered("planes", conv.number)
        if not planes.is_direct:
            self._laying(cost)
        for tile, times in self.row.tiles:
            cost.row[multiplied] += times * tile.vectors * self.row.runs(tile) * planes.steps * VECTOR_BYTES
        return cost

    def _laying(self, cost: Cost) -> None:
        """Add what laying out rows as planes reads of the source, and what it reads and writes of the planes."""
        conv, planes, tiles = self.conv, self.planes, self.conv.tiles.total()
        row_bytes = planes.source.count * ceil(planes.source.bytes / planes.loaded_bytes) * VECTOR_BYTES
        merged = planes.read_vectors * sum(len(planes.parts(plane)) + 1 for plane in planes.merged)
        laid_bytes = (planes.chunks * planes.groups * planes.stride + merged) * VECTOR_BYTES
        for name, size in ((source_cache(conv.number), row_bytes), (numbered("planes", conv.number), laid_bytes)):
            cost.row[name] += tiles * planes.new_rows * size
            cost.step[name] += tiles * (planes.rows - planes.new_rows) * size

    def row_tiles(self, blocks: int) -> Sequence[tuple[int, int]]:
        """Tiles of pixels, of whatever channels."""
        return [(tile.pixels, times) for tile, times in self.row.tiles]


def summed_words(conv: RowConv, filter: Array) -> Array:
    """Sum all words of a packed filter by channel: groups, words, blocks side by side, channels, bytes of a word."""
    words = filter.reshape(-1, conv.filter_steps, conv.side_by_side, CHANNEL_BLOCK, WORD_CHANNELS)
    return words.sum(axis=(1, 4)).reshape(-1)[: conv.out_blocks * CHANNEL_BLOCK]
