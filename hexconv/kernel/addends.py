"""How a tensor lies that a conv adds, seen from the vectors of the conv's target: runs that lie together in both.

A vector of the target has so many channels of some pixels, side by side. The tensor that is added may hold other
channels together, and stands some columns further left. A run is what lies together in both: a whole vector, or some
channels of a pixel. It is loaded by the vectors around it and moved to its lanes:

    loads      2 for a run, whose first byte may be anywhere in a vector; 1 where it is always the first
    vectors    of a row: those that hold a logical column
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from hexconv.kernel.tiles import VECTOR_BYTES
from hexconv.spec.extents import CHANNEL_BLOCK, added_at

if TYPE_CHECKING:
    from hexconv.kernel.row_conv import LayoutChoice, RowConv

Run = tuple[int, int, int]
"""Some bytes of a vector: its pixel, the first of its channels, and how many; all pixels if it has as many bytes."""


@dataclass(frozen=True)
class Addend:
    """The tensor that a conv of bytes adds.

    Attributes:
        conv: the conv.
        lies: how the tensor lies.
    """

    conv: RowConv
    lies: LayoutChoice

    @cached_property
    def number(self) -> int:
        """The number of the tensor; 0 is the input."""
        add = self.conv.spec.add
        assert add
        return add.tensor

    @cached_property
    def columns_behind(self) -> int:
        """By how many columns an element stands behind that of the conv's target."""
        return added_at(self.conv.chain, self.conv.index)[1]

    @cached_property
    def together(self) -> int:
        """How many channels of a pixel lie together: all, in an input in pixels."""
        return self.lies.layout.physical_shape[-1]

    @cached_property
    def block_bytes(self) -> int:
        """The bytes from one block of channels of a row to the next; those of a row, where there are no blocks."""
        return self.row_bytes if self.is_in_pixels else self.lies.layout.stored_extent("W") * self.together

    @property
    def is_in_pixels(self) -> bool:
        """Whether pixels with all of their channels lie side by side."""
        return [output.name for output in self.lies.layout.outputs] == list("NHWC")

    @property
    def row_bytes(self) -> int:
        """The bytes of a row."""
        return self.lies.row_bytes

    @cached_property
    def channels(self) -> int:
        """The channels of a pixel in a vector of the target."""
        units = self.conv.units
        return units.together if units.is_narrow else units.blocks * CHANNEL_BLOCK

    @cached_property
    def pixels(self) -> int:
        """The pixels in a vector of the target."""
        return VECTOR_BYTES // self.channels

    @cached_property
    def is_whole(self) -> bool:
        """Whether all of a vector lies together in the other tensor, too."""
        fits = self.is_in_pixels or self.together % self.channels == 0
        return self.together == self.channels or (self.pixels == 1 and fits)

    @cached_property
    def is_aligned(self) -> bool:
        """Whether such a run is a vector."""
        places = (self.columns_behind * self.together, self.pixels * self.together, self.block_bytes)
        return self.is_whole and all(place % VECTOR_BYTES == 0 for place in places)

    def runs(self, channels: int) -> Iterator[Run]:
        """Yield the runs of a vector of which so many channels of each pixel are logical."""
        if self.is_whole:
            yield 0, 0, VECTOR_BYTES
            return
        size = min(self.channels, self.together) if not self.is_in_pixels else self.channels
        for pixel in range(self.pixels):
            for first in range(0, channels, size):
                yield pixel, first, size

    @cached_property
    def groups(self) -> range:
        """The columns at which vectors begin that hold a logical column."""
        first, end = self.conv.target.valid_columns
        return range(first // self.pixels * self.pixels, end, self.pixels)

    @cached_property
    def row_vectors(self) -> int:
        """The vectors of a row, all of its channels."""
        return ceil(self.conv.spec.out_channels / self.channels) * len(self.groups)

    @cached_property
    def row_loads(self) -> int:
        """The vectors that are loaded for a row of the tensor that is added."""
        channels = self.conv.spec.out_channels
        of_pixels = (min(self.channels, channels - first) for first in range(0, channels, self.channels))
        runs = sum(len([*self.runs(logical)]) for logical in of_pixels)
        return runs * (1 if self.is_aligned else 2) * len(self.groups)
