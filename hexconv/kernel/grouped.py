"""Grouped convs: words of their own groups, a diagonal of blocks, or zeros between groups.

Groups of 4 and of 8 channels of bytes: a vector has, for each of 32 output channels, 4 input channels of its group;
another one has the weights. So nothing but needed products is multiplied, one pair of vectors a packet.

Groups of one channel are depthwise convs (`hexconv.kernel.depthwise`). In any other conv of several groups, tiles have
32 output channels as lanes (`hexconv.kernel.channels`). The filter of all groups, written as that of one, is zero
outside of a diagonal of blocks:

    4 groups of 64, 32 channels a square      24 groups of 8

        ##......  output channels 0 to 31         #.....
        ##......  32 to 63                        .#....
        ..##....                                  ..#...
        ..##....  ->  width 2                     ...#..  ->  width 1: a square has zeros, too

A block of 32 output channels multiplies `width` planes of 32 input channels, from the first plane of its first group
on: 8 words of a plane, two a packet. These squares alone are stored, copied and multiplied. Where they are all that
there is, or where pixels as lanes take fewer packets with zeros included, the conv is computed as one of a single
group, filled up with zeros.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.depthwise import is_depthwise
from hexconv.kernel.form import VectorForm, signed_packing
from hexconv.kernel.layouts import Diagonal, Packing
from hexconv.kernel.pixels import PixelLanes, fits_pixels, packets_of_pixels, summed_words, why_no_pixels
from hexconv.kernel.planes import PixelPlanes, Plane
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.tiles import (
    BYTES,
    LANES,
    MOST_BLOCKS,
    PAIR_BYTES,
    PRODUCTS_OF_PACKET,
    VECTOR_BLOCKS,
    VECTOR_BYTES,
    WORD_CHANNELS,
    narrowed_blocks,
    packets_of_words,
    unsigned_zero,
)
from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.names import filter_cache, source_cache
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.spec.vectors import Array

TILE_PIXELS = 8
GROUP_SIZES = (4, 8)
"""The channels of a group: a power of two of words, so that `vdelta` spreads all groups of 32 channels at once."""
GROUPED_WORDS_TAG = "OHIW1i1o32o4i"
PIXEL_WORDS = LANES // VECTOR_BLOCKS


def quads_met(conv: Conv2d, first: int, pixels: int) -> int:
    """Vectors of 4 pixels of a row that the windows of `pixels` outputs meet, of which the first is column `first`.

    >>> quads_met(Conv2d(out_channels=32, kernel=(3, 3)), 0, 8)
    3
    """
    return len({column // VECTOR_BLOCKS for column in _columns_met(conv, first, pixels)})


def pixels_met(conv: Conv2d, pixels: int) -> int:
    """Pixels of a row that the windows of `pixels` neighbouring outputs meet: the words of each are spread once.

    >>> pixels_met(Conv2d(out_channels=32, kernel=(3, 3)), 8), pixels_met(Conv2d(out_channels=32, kernel=(3, 3)), 1)
    (10, 3)
    """
    return len(_columns_met(conv, 0, pixels))


def _columns_met(conv: Conv2d, first: int, pixels: int) -> set[int]:
    (_, stride), (_, dilation), (_, taps) = conv.stride, conv.dilation, conv.kernel
    return {(first + pixel) * stride + tap * dilation for pixel in range(pixels) for tap in range(taps)}


def spread_way(words: int, pixel: int, word: int) -> tuple[int, ...]:
    """Return, for every lane, the byte of `vdelta`'s operand that fills it with a word of its group.

    vdelta exchanges words over 16, 8, .. 1 lanes. From the last exchange back to the first one, a lane takes over the
    bits of the place of the word that it shall have. Lanes that meet on that way want the same word.

    Args:
        words: words of a group: a fourth of the lanes of a group.
        pixel: the pixel of a vector, 0 to 3.
        word: the word of the group.

    >>> spread_way(1, 0, 0)[:8]
    (0, 4, 8, 4, 4, 16, 4, 8)
    """
    way = [0] * LANES
    for lane in range(LANES):
        place = pixel * PIXEL_WORDS + lane // (words * WORD_CHANNELS) * words + word
        at, over = lane, 1
        while over < LANES:
            if (at ^ place) & over:
                way[at] |= over * WORD_CHANNELS
                at ^= over
            over *= 2
    return tuple(way)


PLANE_WORDS = CHANNEL_BLOCK // WORD_CHANNELS


@lru_cache(REMEMBERED)
def grouped_words_of(chain: Chain, index: int) -> int:
    """The words of 4 input channels of a group of conv `index`; 0 where groups are no small ones of bytes."""
    conv, channels = chain.conv[index], chain.shapes[index][3]
    inputs = channels // conv.groups
    serves = chain.dtype in BYTES and unsigned_zero(chain, index) in (0, MADE_UNSIGNED)
    if conv.groups == 1 or inputs not in GROUP_SIZES or conv.out_channels != channels or not serves:
        return 0
    words = inputs // WORD_CHANNELS
    products = PRODUCTS_OF_PACKET * conv.kernel[0] * conv.kernel[1] * words
    return 0 if _pays_with_pixels(chain, index, products, 0) else words


@lru_cache(REMEMBERED)
def diagonal_of(chain: Chain, index: int) -> Diagonal | None:
    """The blocks that conv `index` of a chain of integers multiplies; None where it has no groups, or leaves none out.

    None for depthwise convs, too, and where pixels as lanes take fewer packets, zeros included.
    """
    conv, channels = chain.conv[index], chain.shapes[index][3]
    if conv.groups == 1 or not chain.is_integer or is_depthwise(chain, index) or grouped_words_of(chain, index):
        return None
    found = Diagonal(conv.groups, channels // conv.groups, conv.out_channels // conv.groups)
    steps = conv.kernel[0] * conv.kernel[1] * found.width * PLANE_WORDS
    tiles = found.blocks // found.tile_blocks(MOST_BLOCKS)
    summed = tiles * conv.kernel[0] * found.width * _columns(conv) * CHANNEL_BLOCK / VECTOR_BYTES
    if found.width == found.planes or _pays_with_pixels(chain, index, steps, summed):
        return None
    return found


def _pays_with_pixels(chain: Chain, index: int, steps: int, beside: float) -> bool:
    """Whether 32 outputs take fewer packets with pixels as lanes and zeros between groups, by the kernels' estimates.

    The width of an image doesn't count, so that strips of an image are computed as the whole one is.

    Args:
        chain: the chain.
        index: the index of the conv, from 0.
        steps: products of a vector of output channels, of which two fit a packet, where these are lanes.
        beside: packets that are taken beside these products and the endings of sums.
    """
    conv, channels = chain.conv[index], chain.shapes[index][3]
    plane = _dense_plane(conv, channels, ceil(channels / CHANNEL_BLOCK) if index else 0)
    if not fits_pixels(plane) or why_no_pixels(chain, index):
        return False
    planes = PixelPlanes(conv, left=0, vectors=1, channels=channels, source=plane)
    lanes = PixelLanes(conv, chain.dtype, LANES, CHANNEL_BLOCK, MOST_BLOCKS, planes)
    of_words = packets_of_words(conv, chain.dtype, LANES, CHANNEL_BLOCK, steps)
    return packets_of_pixels(lanes) < of_words + beside


def _columns(conv: Conv2d) -> int:
    """The columns of the source under 32 neighbouring windows."""
    return (LANES - 1) * conv.stride[1] + conv.reach[1]


def _dense_plane(conv: Conv2d, channels: int, blocks: int) -> Plane:
    """How 32 windows of a conv would lie without groups: in `blocks` blocks of channels that are made in one step.

    An input (no blocks) has pixels of whole doublewords.
    """
    columns = _columns(conv)
    pixel_bytes = ceil(channels / PAIR_BYTES) * PAIR_BYTES
    if not blocks:
        return Plane(1, columns * pixel_bytes, pixel_bytes, columns)
    together = narrowed_blocks(blocks, blocks)
    pixel_bytes = together * CHANNEL_BLOCK
    return Plane(blocks // together, columns * pixel_bytes, pixel_bytes, columns)


def in_grouped_words(chain: Chain, index: int) -> Layout:
    """Return the layout of a filter whose groups of 4 or 8 keep their words: for a row of taps, each tap's words."""
    return packed(GROUPED_WORDS_TAG, chain.filter_shapes[index], logical="OIHW")


@dataclass(frozen=True)
class GroupForm(VectorForm):
    """Output channels as lanes, each of which multiplies the words of its own group of 4 or 8 channels."""

    name = "words of groups"
    code = "group_words"
    products_of_packet = 1

    @classmethod
    def keeps_groups(cls, chain: Chain, index: int) -> bool:
        """Keep groups of 4 and of 8 channels of bytes, unless pixels as lanes take fewer packets."""
        return grouped_words_of(chain, index) > 0

    @classmethod
    def serves(cls, conv: RowConv) -> str:
        """Serve the groups that it keeps."""
        return "" if cls.keeps_groups(conv.chain, conv.index) else "it has no groups of 4 or 8 channels of bytes"

    @property
    def words(self) -> int:
        """The words of a group."""
        return grouped_words_of(self.conv.chain, self.conv.index)

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """OIHW1i1o32o4i: for a row of taps, for 4 channels of a group: each tap."""
        return in_grouped_words(self.conv.chain, self.conv.index), signed_packing(self.conv.chain, self.conv.index)

    def summed_weights(self, filter: Array) -> Array:
        """Sum all words."""
        return summed_words(self.conv, filter)

    @property
    def products(self) -> int:
        """For each pixel and vector of the filter."""
        return self.conv.columns * self.conv.filter_vectors

    def row_tiles(self, blocks: int) -> Sequence[tuple[int, int]]:
        """Tiles of 8 pixels, and one of those that are left."""
        return self.cut(TILE_PIXELS)

    def row_parts(self) -> Parts:
        """Count the parts of the tiles of all blocks of channels, and of the operands that spread words."""
        conv = self.conv
        parts = Parts(own_way=VECTOR_BLOCKS * self.words * conv.out_blocks)
        for pixels, times in self.row_tiles(1):
            parts.add(self._tile(pixels), times * conv.out_blocks)
        return parts

    def _tile(self, pixels: int) -> Parts:
        """Count the parts of one tile of one block of channels."""
        conv, rows = self.conv, self.conv.spec.kernel[0]
        products, spread = pixels * conv.filter_steps, rows * self.words * pixels_met(conv.spec, pixels)
        loads = conv.filter_steps + rows * quads_met(conv.spec, conv.target.valid_columns[0], pixels)
        parts = Parts(tile=1, sum=pixels, own_word=max(products, spread, loads))
        parts["own_load"] = loads
        parts["initial"] = 1 if conv.has_offsets else 0
        parts.add(self.leaving(1, pixels))
        return parts

    def traffic(self) -> Cost:
        """Add the reads of source and filter."""
        conv, cost = self.conv, super().traffic()
        first, _ = conv.target.valid_columns
        for pixels, times in self.row_tiles(1):
            quads = conv.spec.kernel[0] * quads_met(conv.spec, first, pixels)
            cost.row[source_cache(conv.number)] += times * conv.out_blocks * quads * VECTOR_BYTES
            cost.row[filter_cache(conv.number)] += times * conv.filter_vectors * VECTOR_BYTES
        return cost
