"""A stage: one conv of the host kernel with its sizes, and where the pixels of its source lie."""

import math
from dataclasses import dataclass

from hexconv.schedule.block import Number
from hexconv.spec import Chain, Conv2d, Padding
from hexconv.spec.extents import CHANNEL_BLOCK


@dataclass(frozen=True)
class Stage:
    """One float32 conv and its sizes.

    Attributes:
        conv: the conv, whose activation follows the sums.
        in_channels: the logical input channels.
        in_size: the rows and columns of its input.
        out_size: the rows and columns of its output.
    """

    conv: Conv2d
    in_channels: int
    in_size: tuple[int, int]
    out_size: tuple[int, int]

    @property
    def taps(self) -> int:
        """The number of taps of the kernel."""
        return math.prod(self.conv.kernel)

    @property
    def has_padding(self) -> bool:
        """Whether there is padding on any side of the input."""
        return self.conv.padding != Padding()

    @property
    def padded_columns(self) -> int:
        """Columns of the input with its padding."""
        return self.conv.padding.left + self.in_size[1] + self.conv.padding.right

    def first_read(self, row: Number) -> Number:
        """Return the first row that is read for outputs from `row` on, negative in the top padding."""
        return row * self.conv.stride[0] - self.conv.padding.top

    def end_read(self, end: Number) -> Number:
        """Return one past the last row that is read for outputs below row `end`, bottom padding included."""
        return (end - 1) * self.conv.stride[0] + (self.conv.reach[0] - self.conv.padding.top)

    @property
    def may_start_in_padding(self) -> bool:
        """Whether the rows that a stripe reads may end above the first row of the input, in the top padding."""
        return self.conv.padding.top > self.conv.reach[0] - self.conv.stride[0]

    @property
    def in_blocks(self) -> int:
        """32-channel blocks of the input, the last one perhaps part full."""
        return math.ceil(self.in_channels / CHANNEL_BLOCK)

    @property
    def out_blocks(self) -> int:
        """32-channel blocks of the output, the last one perhaps part full."""
        return math.ceil(self.conv.out_channels / CHANNEL_BLOCK)


@dataclass(frozen=True)
class Lines:
    """Where the pixels of a source lie, in elements: channels of a pixel together, pixels of a row, rows."""

    pixel: int
    row: int

    @classmethod
    def of_input(cls, stage: Stage) -> "Lines":
        """Return the lines of the argument, or of its cache with padding."""
        return cls(stage.in_channels, stage.in_channels * stage.padded_columns)

    @classmethod
    def of_intermediate(cls, reader: Stage) -> "Lines":
        """Return the lines of an intermediate, which has whole blocks of channels."""
        pixel = reader.in_blocks * CHANNEL_BLOCK
        return cls(pixel, pixel * reader.padded_columns)


def stages_of(chain: Chain) -> tuple[Stage, ...]:
    """Return the stages of the convs of a float32 chain."""
    shapes = zip(chain.conv, chain.shapes[:-1], chain.shapes[1:], strict=True)
    return tuple(Stage(conv, source[3], source[1:3], target[1:3]) for conv, source, target in shapes)
