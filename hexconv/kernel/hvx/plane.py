"""Describe how the source of a conv lies in its cache: planes of channels, pixels, rows."""

from dataclasses import dataclass

from hexconv.kernel.forms import Forms
from hexconv.spec.extents import CHANNEL_BLOCK

WORD_CHANNELS = 4


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
        """Words of 4 channels in a pixel."""
        return self.pixel_bytes // WORD_CHANNELS


def columns_of(forms: Forms, tensor: int) -> int:
    """The pixels of a row in the cache of a tensor."""
    return forms.activations[tensor].stored_extent("W")


def plane_of(forms: Forms, tensor: int, halves: bool) -> Plane:
    """How the cache of a tensor lies: all channels of a pixel together, or planes of some blocks of channels."""
    columns, unit = columns_of(forms, tensor), forms.channel_units[tensor]
    channels = next(output.extent for output in forms.activations[tensor].outputs if output.name == "C")
    by_pixel = len(forms.activations[tensor].outputs) == len("NHWC")
    count, pixel = (1, channels) if by_pixel else (channels, unit * CHANNEL_BLOCK)
    row = columns * pixel
    return Plane(count, 2 * row, pixel, columns, row) if halves else Plane(count, row, pixel, columns)
