"""What the HVX kernel of one conv is made from: sizes, planes of activations, groups of output channels."""

import math
from dataclasses import dataclass

CHANNELS = 32  # of a block: an accumulator vector holds one pixel's 32 output channels
WIDE = 4  # blocks that narrow to one vector of 128 channels of one pixel


@dataclass(frozen=True)
class Shift:
    """Saturating rounding shifts: int32 to int16 by `first`, then to uint8 by `second`.

    t = saturate_int16((acc + 2**(first-1)) >> first); y = saturate_uint8((t + 2**second/2) >> second).
    """

    first: int
    second: int


@dataclass(frozen=True)
class Multiplier:
    """Fixed point: t = saturate_int16(round((acc * factor + 2**30) >> 31, shift)); y = saturate_uint8(t)."""

    factor: int
    shift: int


@dataclass(frozen=True)
class Stage:
    """One conv: uint8 in, 8-bit filters, int32 sums, uint8 out; heights, widths and paddings in pixels."""

    in_channels: int
    out_channels: int
    in_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]  # top, left, bottom, right
    signed_filter: bool
    requantize: Shift | Multiplier

    @property
    def out_size(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        top, left, bottom, right = self.padding
        padded = (self.in_size[0] + top + bottom, self.in_size[1] + left + right)
        sizes = zip(padded, self.kernel, self.stride, self.dilation, strict=True)
        rows, columns = ((size - (taps - 1) * apart - 1) // step + 1 for size, taps, step, apart in sizes)
        return rows, columns

    @property
    def out_blocks(self) -> int:
        """32-channel blocks of the output, the last one perhaps part full."""
        return math.ceil(self.out_channels / CHANNELS)


@dataclass(frozen=True)
class Plane:
    """Some channels of every pixel of a buffer: pixel (row, column) starts at `first_byte` + row and column strides."""

    first_byte: int
    channels: int
    pixel_bytes: int
    row_bytes: int

    @property
    def steps(self) -> int:
        """Words of 4 channels in a pixel."""
        return math.ceil(self.channels / 4)


@dataclass(frozen=True)
class Group:
    """Output channels that one tile computes together: `count` times `blocks` blocks, from block `first_block` on.

    Attributes:
        wide: narrowed per pixel to 128 channels (the filter's channels re-laid for it), else per block to 4 pixels.
    """

    first_block: int
    blocks: int
    count: int
    wide: bool


def intermediate_groups(blocks: int) -> tuple[Group, ...]:
    """As many groups of 128 channels as there are, then what is left.

    >>> [(group.blocks, group.count, group.wide) for group in intermediate_groups(9)]
    [(4, 2, True), (1, 1, False)]
    """
    full, rest = divmod(blocks, WIDE)
    groups = (Group(0, WIDE, full, wide=True), Group(full * WIDE, rest, 1, wide=False))
    return tuple(group for group in groups if group.blocks and group.count)


def output_groups(blocks: int) -> tuple[Group, ...]:
    """At most 4 blocks at a time, as even as they come.

    >>> [(group.first_block, group.blocks, group.count) for group in output_groups(7)]
    [(0, 4, 1), (4, 3, 1)]
    """
    number = math.ceil(blocks / WIDE)
    size, larger = divmod(blocks, number)
    groups = (Group(0, size + 1, larger, wide=False), Group(larger * (size + 1), size, number - larger, wide=False))
    return tuple(group for group in groups if group.blocks and group.count)


def intermediate_planes(blocks: int, columns: int, rows: int) -> tuple[tuple[Plane, ...], int]:
    """Planes of an intermediate of `rows` rows of `columns` pixels, in the order of its groups, and its bytes.

    A wide group is one plane per 128 channels; what is left has one plane per 32.
    """
    planes: list[Plane] = []
    byte = 0
    for group in intermediate_groups(blocks):
        channels = CHANNELS * WIDE if group.wide else CHANNELS
        row_bytes = math.ceil(columns * channels / 128) * 128
        for _ in range(group.count if group.wide else group.blocks):
            planes.append(Plane(byte, channels, channels, row_bytes))
            byte += rows * row_bytes
    return tuple(planes), byte
