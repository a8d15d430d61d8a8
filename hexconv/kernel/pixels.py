"""Convs with pixels as lanes: no output channel is filled up to 32, and no input of few channels to 4 or 8.

A vector holds 4 bytes of each of 32 neighbouring outputs' windows (`hexconv.kernel.planes`), a scalar word the 4
weights of one output channel, and a sum is 32 pixels of that channel.

    tile:    for rows of taps, planes: sums of pixels x channels += dot4(plane, weights)
    result:  4 sums narrow to one vector of words; those of a block (where no channel is: the fringe) are shuffled to
             pixels of 32 channels, to pixels of 8 or 16 in narrow blocks (`hexconv.kernel.channel_blocks`), or
             stored as they are in blocks of 4

The alternative is channels as lanes (`hexconv.kernel.tiles`), which takes 32 of them however few there are. The way
of fewer packets is used (`hexconv.kernel.lanes`).
"""

from dataclasses import dataclass
from math import ceil

from hexconv.kernel.depthwise import BYTES
from hexconv.kernel.planes import PixelPlanes, Plane, deals
from hexconv.kernel.tiles import LANES, VECTOR_BYTES, WORD_CHANNELS, tile_blocks, unsigned_zero
from hexconv.spec import Chain, Conv2d, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import MADE_UNSIGNED

BLOCK_WORDS = CHANNEL_BLOCK // WORD_CHANNELS
"""Vectors of words that pixels of 32 channels are shuffled from."""
MOST_VECTORS = 4
"""The most vectors of pixels in a tile."""
MOST_SUMS = 16
"""The most sums that a tile keeps in registers: vectors of pixels times channels."""
MOST_STRIDE = 2
"""The largest stride along a row."""


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
        chain.dtype,
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
