"""Describe how the source of a conv lies in its cache: planes of channels, pixels, rows."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from hexconv.kernel.forms import Forms
from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.layout import Layout
from hexconv.spec.extents import REMEMBERED


@dataclass(frozen=True)
class Plane:
    """A source as `count` planes: in each plane, a pixel's channels lie side by side.

    Attributes:
        count: the number of planes.
        bytes: bytes from one plane of a row to the next.
        pixel_bytes: bytes from one pixel to the next.
        columns: pixels of a row.
        low_bytes: bytes from the high bytes of int16 elements to their low bytes; 0 where elements are bytes.
    """

    count: int
    bytes: int
    pixel_bytes: int
    columns: int
    low_bytes: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes from one row to the next."""
        return self.count * self.bytes

    @property
    def words(self) -> int:
        """Words of 4 channels in a pixel; the word of a dense pixel is not full."""
        return ceil(self.pixel_bytes / WORD_CHANNELS)

    @property
    def is_dense(self) -> bool:
        """Whether pixels of 1 to 3 bytes lie side by side, as in an input of few channels: they fill no words."""
        return self.pixel_bytes < WORD_CHANNELS

    @property
    def is_of_words(self) -> bool:
        """Whether a plane has a word of every pixel and nothing else, as planes of convs with pixels as lanes have."""
        return self.pixel_bytes == WORD_CHANNELS


def plane_of(forms: Forms, tensor: int, halves: bool) -> Plane:
    """How the cache of a tensor lies: all channels of a pixel together, or planes of some blocks of channels."""
    return plane_in(forms.activations[tensor], forms.channel_units[tensor], halves)


@lru_cache(REMEMBERED)
def plane_in(layout: Layout, unit: int, halves: bool = False) -> Plane:
    """How a cache with a layout lies whose axis C counts `unit` channels a step."""
    columns = layout.stored_extent("W")
    channels = next(output.extent for output in layout.outputs if output.name == "C")
    count, pixel = (1, channels) if len(layout.outputs) == len("NHWC") else (channels, unit)
    row = columns * pixel
    return Plane(count, 2 * row, pixel, columns, row) if halves else Plane(count, row, pixel, columns)
