"""What the HVX kernel of one conv is made from: sizes, planes of activations, groups of output channels."""

import math
from dataclasses import dataclass

from hexconv.spec import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.narrowing import FixedPoint, Shifts, narrowing, narrowing_to_halfwords

CHANNELS = 32  # of a block: an accumulator vector holds one pixel's 32 output channels
WIDE = 4  # blocks that narrow to one vector of 128 channels of one pixel


@dataclass(frozen=True)
class Stage:
    """One conv, on unsigned bytes or pairs of them: sums over taps and channels of (a - in_zero) * (w - filter_zero).

    Attributes:
        in_channels: logical.
        out_channels: logical.
        in_size: rows and columns of its input.
        out_size: rows and columns of its output.
        kernel: (rows, columns), as are stride and dilation.
        padding: rows and columns of `in_zero` around the input: top, left, bottom, right.
        in_zero: zero point of the input.
        filter_zero: zero point of the filter.
        flips: whether activations are int8: 128 is added to the input when it is staged, and taken off the output.
        splits: whether activations are int16: they are kept as two planes of bytes, the high ones 128 larger, so that
            the pair is unsigned, and 32768 stands for zero.
        splits_filter: whether filters are int16, which are kept alike.
        flips_filter: whether the filter arrives as int8: 128 is added when it is staged.
        has_bias: whether there is a bias per channel.
        narrowing: from sums to bytes; None where the sums leave as they are.
        offset: what narrowing wants added to every sum.
    """

    in_channels: int
    out_channels: int
    in_size: tuple[int, int]
    out_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    in_zero: int
    filter_zero: int
    flips: bool
    flips_filter: bool
    splits: bool
    splits_filter: bool
    has_bias: bool
    narrowing: Shifts | FixedPoint | None
    offset: int

    @property
    def taps(self) -> int:
        """Of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def padded_columns(self) -> int:
        """Columns of the input with its padding."""
        return self.padding[1] + self.in_size[1] + self.padding[3]

    @property
    def in_blocks(self) -> int:
        """32-channel blocks of the input, the last one perhaps part full."""
        return math.ceil(self.in_channels / CHANNELS)

    @property
    def in_zero_bytes(self) -> tuple[int, ...]:
        """What the bytes of a zero are, in every plane of a pixel: the high one, then the low one."""
        return divmod(self.in_zero, 256) if self.splits else (self.in_zero,)

    @property
    def filter_zero_bytes(self) -> tuple[int, ...]:
        """What the bytes of a zero of the filter are: the high one, then the low one."""
        return divmod(self.filter_zero, 256) if self.splits_filter else (self.filter_zero,)

    @property
    def result_bytes(self) -> int:
        """Of an element that leaves the chain narrowed."""
        return 2 if self.splits else 1

    @property
    def has_offsets(self) -> bool:
        """Whether what is added to the sums differs by channel."""
        return self.has_bias or self.in_zero != 0

    @property
    def out_blocks(self) -> int:
        """32-channel blocks of the output, the last one perhaps part full."""
        return math.ceil(self.out_channels / CHANNELS)

    def is_ragged(self, group: "Group") -> bool:
        """Whether the last block of a group is filled only in part: then its repetitions differ."""
        last = group.first_block + group.blocks * group.count == self.out_blocks
        return last and self.out_channels % CHANNELS != 0

    def channels_of(self, group: "Group", number: object, part: int) -> int:
        """Logical channels in a block: 32, but for the last block of a ragged group."""
        repetition = number if isinstance(number, int) else getattr(number, "value", 0)
        block = int(repetition) * group.blocks + group.first_block + part
        if self.is_ragged(group) and block == self.out_blocks - 1:
            return self.out_channels % CHANNELS
        return CHANNELS


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


def stages_of(chain: Chain) -> tuple[Stage, ...]:
    """The convs of an integer chain as the kernel has them."""
    return tuple(_stage(chain, index, conv) for index, conv in enumerate(chain.conv))


def _stage(chain: Chain, index: int, conv: Conv2d) -> Stage:
    flip, flip_filter = (128 if dtype == "int8" else 0 for dtype in (chain.dtype, chain.dtype_of_filters))
    splits, splits_filter = (dtype == "int16" for dtype in (chain.dtype, chain.dtype_of_filters))
    how, (sequence, offset) = conv.requantize, (None, 0)
    if how:
        sequence, offset = narrowing_to_halfwords(how) if splits else narrowing(how, how.zero_point + flip)
    pad = conv.padding
    return Stage(
        in_channels=chain.shapes[index][3],
        out_channels=conv.out_channels,
        in_size=chain.shapes[index][1:3],
        out_size=chain.shapes[index + 1][1:3],
        kernel=conv.kernel,
        stride=conv.stride,
        dilation=conv.dilation,
        padding=(pad.top, pad.left, pad.bottom, pad.right),
        in_zero=2**15 if splits else chain.output_zero_point(index) + flip,
        filter_zero=2**15 if splits_filter else conv.filter_zero_point + flip_filter,
        flips=bool(flip),
        flips_filter=bool(flip_filter),
        splits=splits,
        splits_filter=splits_filter,
        has_bias=conv.bias,
        narrowing=sequence,
        offset=offset,
    )
