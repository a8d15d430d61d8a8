"""Convs with pixels as lanes: no output channel is filled up to 32, and no input of few channels to 4 or 8.

A vector holds 4 bytes of each of 32 neighbouring outputs' windows (`hexconv.kernel.hvx.planes`), a scalar word the 4
weights of one output channel, and a sum is 32 pixels of that channel.

    tile:    for rows of taps, planes: sums of pixels x channels += dot4(plane, weights)
    result:  4 sums narrow to one vector of words; those of a block (where no channel is: the fringe) are shuffled to
             pixels of 32 channels, to pixels of 8 or 16 in narrow blocks (`hexconv.kernel.hvx.blocks`), or
             stored as they are in blocks of 4

The alternative is channels as lanes (`hexconv.kernel.hvx.tiles`), which takes 32 of them however few there are. The way
of fewer packets is used. Packets are estimated from counts of instructions: two products fit a packet, or one of
anything else.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

from hexconv.kernel.depthwise import BYTES
from hexconv.kernel.forms import Forms
from hexconv.kernel.hvx.dense import DenseRows, serves_dense
from hexconv.kernel.hvx.plane import Plane, plane_of
from hexconv.kernel.hvx.planes import LANES, PixelPlanes, deals
from hexconv.kernel.hvx.tiles import (
    MADE_UNSIGNED,
    PAIR_BYTES,
    VECTOR_BLOCKS,
    VECTOR_BYTES,
    WORD_CHANNELS,
    joins_planes,
    makes_blocks,
    multiplied_words,
    tile_blocks,
    tile_pixels,
    unsigned_zero,
)
from hexconv.spec import Chain, Conv2d, Requantize, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.narrowing import FixedPoint, narrowing

BLOCK_WORDS = CHANNEL_BLOCK // WORD_CHANNELS
"""Vectors of words that pixels of 32 channels are shuffled from."""
MOST_VECTORS = 4
"""The most vectors of pixels in a tile."""
MOST_SUMS = 16
"""The most sums that a tile keeps in registers: vectors of pixels times channels."""
MOST_STRIDE = 2
"""The largest stride along a row."""
PRODUCTS_OF_PACKET = 2
TURN = 3
"""What it takes to enter the inner loop once more, where the words of a row of taps are several runs."""
ENDINGS_OF_PACKET = 2
"""Instructions of the end of a tile that fit a packet: what is left out of them counts as it runs."""
MOVED = 3
"""Instructions that deal and store a vector of results."""
EXCHANGED_PIXELS = 8
"""Pixels whose channels an instruction exchanges where narrow blocks are made of whole ones."""
TIES = 3
"""Instructions that subtract one from sums half way above an even result."""


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


@dataclass(frozen=True)
class PixelLanes:
    """One conv whose lanes are pixels.

    Attributes:
        conv: the conv.
        columns: the columns of a row of outputs.
        unit: output channels that lie together in a pixel of the target.
        tile_blocks: blocks of 32 output channels that are computed together; each tile of them lays out its own planes.
        planes: the planes that the conv multiplies.
    """

    conv: Conv2d
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
        whole, rest = divmod(self.conv.out_channels, CHANNEL_BLOCK)
        return whole * ceil(CHANNEL_BLOCK / tile.channels) + ceil(rest / tile.channels)

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
def pixel_lanes(chain: Chain, index: int, forms: Forms, k_split: int) -> PixelLanes | None:
    """How conv `index` runs with pixels as lanes; None where it can't, or where that doesn't take fewer packets.

    A conv beside a tensor in blocks of 4 channels runs so in any case. One that reads dense pixels runs so, or with
    channels as lanes on windows of dense rows (`dense_rows`).

    Args:
        chain: the chain, in which convs have the groups that HVX computes (`hexconv.kernel.grouped`).
        index: the index of the conv, from 0.
        forms: the layouts of the chain's nest of rows.
        k_split: blocks of output channels of a step.
    """
    source, unit = plane_of(forms, index, halves=False), forms.channel_units[index + 1]
    if not serves_pixels(chain, index) or not fits_pixels(source):
        return None
    found = lanes_between(chain, index, source, unit, k_split)
    if source.is_dense:
        return found if packets_of_pixels(found) <= packets_of_dense(found) else None
    return found if packets_of_pixels(found) < packets_of_channels(found) else None


def dense_rows(chain: Chain, index: int, forms: Forms, k_split: int) -> DenseRows | None:
    """How conv `index` multiplies windows of dense rows; None where it doesn't read them, or has pixels as lanes."""
    source, unit = plane_of(forms, index, halves=False), forms.channel_units[index + 1]
    if not source.is_dense or pixel_lanes(chain, index, forms, k_split):
        return None
    return dense_between(lanes_between(chain, index, source, unit, k_split))


def dense_between(lanes: PixelLanes) -> DenseRows:
    """How a conv would multiply windows of dense rows, instead of having pixels as lanes."""
    return DenseRows(lanes.conv, lanes.planes.left, lanes.columns, lanes.planes)


def lanes_between(chain: Chain, index: int, source: Plane, unit: int, k_split: int) -> PixelLanes:
    """How conv `index` runs with pixels as lanes, which `serves_pixels`, between two caches.

    Args:
        chain: the chain.
        index: the index of the conv, from 0.
        source: how the cache lies that it reads.
        unit: the channels that lie together in the cache that it fills.
        k_split: blocks of output channels of a step.
    """
    conv, (first, end) = chain.conv[index], tensor_extents(chain)[index + 1].valid_columns
    blocks = ceil(conv.out_channels / CHANNEL_BLOCK)
    return PixelLanes(
        conv,
        columns=end - first,
        unit=unit,
        tile_blocks=tile_blocks(min(k_split, blocks)),
        planes=PixelPlanes(
            conv,
            left=first,
            vectors=ceil((end - first) / LANES),
            channels=tensor_extents(chain)[index].channels,
            source=source,
        ),
    )


def serves_pixels(chain: Chain, index: int) -> bool:
    """Whether conv `index` can have pixels as lanes: it reads and makes bytes, some, and its stride is 1 or 2."""
    conv, (first, end) = chain.conv[index], tensor_extents(chain)[index + 1].valid_columns
    return conv.groups == 1 and first < end and can_have_pixels(chain, index)


def serves_narrow(chain: Chain, index: int) -> bool:
    """Whether conv `index`, which HVX computes, can read and make narrow blocks: of bytes, some, without groups."""
    first, end = tensor_extents(chain)[index + 1].valid_columns
    return chain.dtype in BYTES and chain.conv[index].groups == 1 and first < end


def can_have_pixels(chain: Chain, index: int) -> bool:
    """Whether conv `index`, which makes some elements, can have pixels as lanes where it has a single group."""
    conv = chain.conv[index]
    if chain.dtype not in BYTES or conv.requantize is None:
        return False
    return unsigned_zero(chain, index) in (0, MADE_UNSIGNED) and conv.stride[1] <= MOST_STRIDE


def fits_pixels(source: Plane) -> bool:
    """Whether a conv with pixels as lanes can read a source, of which a row holds a vector.

    Vectors hold whole pixels, or pixels are dense and spread to words.
    """
    fits = source.is_dense or VECTOR_BYTES % source.pixel_bytes == 0
    return fits and source.columns * source.pixel_bytes >= VECTOR_BYTES


@lru_cache(REMEMBERED)
def packets_of_pixels(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with pixels as lanes."""
    ended = lanes.vectors * lanes.conv.out_channels * _ending(lanes.conv.requantize)
    moved = lanes.tiles_of_channels * lanes.planes.new_rows * lanes.planes.laid + lanes.vectors * lanes.shuffled
    return lanes.products / PRODUCTS_OF_PACKET + ended + moved


@lru_cache(REMEMBERED)
def packets_of_dense(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with 32 channels as lanes on windows of dense rows; infinite where that can't be.

    Weights are taken to have a zero point, as int8 weights have.
    """
    if not (serves_dense(lanes.planes) and makes_blocks(lanes.unit, lanes.conv.out_channels, lanes.tile_blocks)):
        return inf
    dense = dense_between(lanes)
    sums = dense.columns * dense.blocks
    moved = lanes.tiles_of_channels * (dense.new_rows * dense.laid + dense.summed)
    return sums * (dense.steps / PRODUCTS_OF_PACKET + _ending(lanes.conv.requantize)) + moved


@lru_cache(REMEMBERED)
def packets_of_channels(lanes: PixelLanes) -> float:
    """The packets of a row of outputs with 32 channels as lanes; infinite where that can't be."""
    conv, plane = lanes.conv, lanes.planes.source
    if plane.is_of_words or not makes_blocks(lanes.unit, conv.out_channels, lanes.tile_blocks):
        return inf
    (rows, columns), words = conv.kernel, multiplied_words(lanes.planes.channels, plane.words, plane.count)
    is_one_run = columns == 1 or (conv.dilation[1] == 1 and words == plane.words)
    runs = 1 if joins_planes(columns, plane.words, plane.count) else plane.count * (1 if is_one_run else columns)
    trips = words * columns * plane.count // runs * WORD_CHANNELS // PAIR_BYTES
    tiles = lanes.tiles_of_channels * ceil(lanes.columns / tile_pixels(lanes.tile_blocks))
    broken = tiles * rows * (runs - 1) * TURN if trips > 1 else 0
    return packets_of_words(lanes, rows * columns * plane.count * words) + broken


def packets_of_words(lanes: PixelLanes, steps: int) -> float:
    """The packets of a row of outputs with 32 channels as lanes that multiply `steps` words under a window."""
    blocks, ending = ceil(lanes.conv.out_channels / CHANNEL_BLOCK), _ending(lanes.conv.requantize)
    return lanes.columns * (blocks * (steps / PRODUCTS_OF_PACKET + ending) - _saved(lanes, blocks, ending))


def _saved(lanes: PixelLanes, blocks: int, ending: float) -> float:
    """The packets that narrow blocks of the target save for each pixel.

    Pixels share vectors of the last block's sums, where it fits a narrow one, and then vectors of results, which are
    dealt and stored; an instruction puts two vectors into one. Of other blocks, one more exchanges the channels of 8
    pixels.
    """
    if lanes.unit >= CHANNEL_BLOCK:
        return 0.0
    folds = lanes.conv.out_channels - (blocks - 1) * CHANNEL_BLOCK <= lanes.unit
    left_out = (1 - lanes.unit / CHANNEL_BLOCK) * (ending + MOVED / VECTOR_BLOCKS - 1) if folds else 0.0
    return left_out / ENDINGS_OF_PACKET - (blocks - folds) / EXCHANGED_PIXELS


def _ending(how: Requantize | None) -> float:
    """Instructions that narrow a vector of sums, with a fourth of those that narrow four to bytes, or that store it."""
    if how is None:
        return 1
    sequence, _offset = narrowing(how, how.zero_point)
    if not isinstance(sequence, FixedPoint):
        return 1 + TIES * (sequence.halves is not None)
    is_even = sequence.has_halves
    return 3 + TIES * is_even + sequence.ties_away + (sequence.shift is None) + (sequence.lift > 0)
