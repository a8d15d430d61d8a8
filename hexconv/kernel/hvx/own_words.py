"""Convs of small groups whose lanes multiply the words of their own groups: groups of 4 or of 8 channels.

A vector has, for each of 32 output channels, 4 input channels of its group; another one has the weights. So nothing but
needed products is multiplied, one pair of vectors a packet, where a diagonal of blocks (`hexconv.kernel.grouped`) takes
8 words of a plane, two a packet.
"""

from dataclasses import dataclass

from hexconv.kernel.hvx.tiles import LANES, VECTOR_BLOCKS, WORD_CHANNELS
from hexconv.spec import Conv2d

TILE_PIXELS = 8
GROUP_SIZES = (4, 8)
"""The channels of a group: a power of two of words, so that `vdelta` spreads all groups of 32 channels at once."""
PIXEL_WORDS = LANES // VECTOR_BLOCKS


@dataclass(frozen=True)
class OwnWords:
    """A conv in groups of as many outputs as inputs.

    Attributes:
        inputs: the channels of a group.
    """

    inputs: int

    @property
    def words(self) -> int:
        """Words of 4 input channels of a group."""
        return self.inputs // WORD_CHANNELS

    def quads(self, conv: Conv2d, first: int, pixels: int) -> int:
        """Vectors of 4 pixels of a row that the windows of `pixels` outputs meet, of which the first is column `first`.

        >>> OwnWords(4).quads(Conv2d(out_channels=32, kernel=(3, 3)), 0, 8)
        3
        """
        (_, stride), (_, dilation), (_, taps) = conv.stride, conv.dilation, conv.kernel
        columns = {(first + pixel) * stride + tap * dilation for pixel in range(pixels) for tap in range(taps)}
        return len({column // VECTOR_BLOCKS for column in columns})


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
