"""A stage: the sizes of one conv for the host kernel, and where the pixels of its source lie."""

import math
from dataclasses import dataclass

from hexconv.host.loops.rows import reach_of
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import CHANNEL_BLOCK


@dataclass(frozen=True)
class Stage:
    """The sizes of one float32 conv.

    Attributes:
        in_channels: the logical input channels.
        out_channels: the logical output channels.
        in_size: the rows and columns of its input.
        out_size: the rows and columns of its output.
        kernel: (rows, columns), as are stride and dilation.
        padding: rows and columns of zeros around the input: top, left, bottom, right.
        has_bias: whether there is a bias per channel.
        conv: the conv, whose activation follows the sums.
    """

    in_channels: int
    out_channels: int
    in_size: tuple[int, int]
    out_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    has_bias: bool
    conv: Conv2d

    @property
    def taps(self) -> int:
        """The number of taps of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def padded_columns(self) -> int:
        """Columns of the input with its padding."""
        return self.padding[1] + self.in_size[1] + self.padding[3]

    @property
    def may_start_in_padding(self) -> bool:
        """Whether the rows that a stripe reads may end above the first row of the input, in the top padding."""
        return self.padding[0] > reach_of(self) - self.stride[0]

    @property
    def in_blocks(self) -> int:
        """32-channel blocks of the input, the last one perhaps part full."""
        return math.ceil(self.in_channels / CHANNEL_BLOCK)

    @property
    def out_blocks(self) -> int:
        """32-channel blocks of the output, the last one perhaps part full."""
        return math.ceil(self.out_channels / CHANNEL_BLOCK)

    @property
    def reads_in_place(self) -> bool:
        """Whether a first conv reads the argument itself, which it can where its rows have no padding."""
        return not any(self.padding)


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
    return tuple(
        Stage(
            in_channels=source[3],
            out_channels=conv.out_channels,
            in_size=source[1:3],
            out_size=target[1:3],
            kernel=conv.kernel,
            stride=conv.stride,
            dilation=conv.dilation,
            padding=(conv.padding.top, conv.padding.left, conv.padding.bottom, conv.padding.right),
            has_bias=conv.bias,
            conv=conv,
        )
        for conv, source, target in zip(chain.conv, chain.shapes[:-1], chain.shapes[1:], strict=True)
    )
