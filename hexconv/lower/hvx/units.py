"""How many channels lie together in what a conv makes, and in how many vectors a row of them is stored."""

from dataclasses import dataclass
from math import ceil

from hexconv.kernel.hvx.tiles import VECTOR_BYTES, WORD_CHANNELS
from hexconv.spec.extents import CHANNEL_BLOCK


@dataclass(frozen=True)
class Units:
    """The channels of a conv's target.

    Attributes:
        together: the channels that lie together in a pixel.
        channels: the logical channels.
        columns: the pixels of a row of the cache.
        has_pixels: whether lanes are pixels while the target is made.
    """

    together: int
    channels: int
    columns: int
    has_pixels: bool

    @property
    def blocks(self) -> int:
        """How many blocks of 32 channels of a tile make up a vector; 1 where fewer channels lie together."""
        return max(self.together // CHANNEL_BLOCK, 1)

    @property
    def is_narrow(self) -> bool:
        """Whether fewer than 32 channels lie together."""
        return self.together < CHANNEL_BLOCK

    @property
    def is_fours(self) -> bool:
        """Whether 4 channels lie together; int8 is uint8 there."""
        return self.together == WORD_CHANNELS

    @property
    def count(self) -> int:
        """Narrow blocks of channels, the last one perhaps part full."""
        return ceil(self.channels / self.together)

    @property
    def elements(self) -> int:
        """Elements of a row of a narrow block."""
        return self.columns * self.together

    @property
    def vector_pixels(self) -> int:
        """Pixels of a narrow block that are a vector."""
        return VECTOR_BYTES // self.together

    @property
    def last_channels(self) -> int:
        """The channels of the last block of 32."""
        return self.channels - (ceil(self.channels / CHANNEL_BLOCK) - 1) * CHANNEL_BLOCK

    @property
    def folded(self) -> int:
        """How many pixels share a vector of sums while the last block of 32 is narrowed, if a narrow one holds it.

        1 where a vector of sums has channels of a single pixel all the time.
        """
        fits = self.is_narrow and not self.has_pixels and self.last_channels <= self.together
        return CHANNEL_BLOCK // self.together if fits else 1
