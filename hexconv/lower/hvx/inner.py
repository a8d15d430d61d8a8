"""What is known of a conv before its steps: geometry, zero points, where its operands lie in their caches."""

from dataclasses import dataclass
from math import ceil, prod

from hexconv.kernel.forms import MADE_UNSIGNED, Forms, has_vector_rows, tile_blocks
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.narrowing import FixedPoint, Shifts, narrowing

WORD_CHANNELS = 4
VECTOR_BYTES = 128
VECTOR_WORDS = 32
VECTOR_BLOCKS = 4


@dataclass(frozen=True)
class Plane:
    """The channels of a source that lie side by side in a pixel, `count` times.

    Attributes:
        count: of planes.
        bytes: from one plane of a row to the next.
        pixel_bytes: from one pixel to the next.
        columns: pixels of a row.
    """

    count: int
    bytes: int
    pixel_bytes: int
    columns: int

    @property
    def row_bytes(self) -> int:
        """From one row to the next."""
        return self.count * self.bytes

    @property
    def words(self) -> int:
        """Words of 4 channels in a pixel."""
        return self.pixel_bytes // WORD_CHANNELS


@dataclass(frozen=True)
class InnerConv:
    """One conv of a chain as its kernel has it.

    Attributes:
        number: from 1.
        is_last: whether it makes the output.
        source: stored extents of what it reads.
        target: stored extents of what it makes.
        plane: how its source lies.
        target_columns: of the cache that it fills, in pixels.
        kernel: (rows, columns), as are stride and dilation.
        is_signed: whether activations are int8.
        in_zero: zero point of the source.
        filter_zero: zero point of the filter, of uint8.
        fringe: what the target holds where it has no logical element.
        has_bias: whether there is one.
        narrowing: from sums to bytes; None where sums leave as they are.
        offset: what narrowing wants added to every sum.
        out_channels: logical.
        side_by_side: blocks of output channels that lie side by side in the filter.
        tile_blocks: blocks of output channels of a tile.
        narrowed_blocks: of these, those that make up a vector of the target.
    """

    number: int
    is_last: bool
    source: Extents
    target: Extents
    plane: Plane
    target_columns: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    is_signed: bool
    in_zero: int
    filter_zero: int
    fringe: int
    has_bias: bool
    narrowing: Shifts | FixedPoint | None
    offset: int
    out_channels: int
    side_by_side: int
    tile_blocks: int
    narrowed_blocks: int

    @property
    def out_blocks(self) -> int:
        """Blocks of 32 output channels, the last one perhaps part full."""
        return ceil(self.out_channels / CHANNEL_BLOCK)

    @property
    def last_channels(self) -> int:
        """Channels of the last block."""
        return self.out_channels - (self.out_blocks - 1) * CHANNEL_BLOCK

    @property
    def columns(self) -> int:
        """Logical columns of what it makes."""
        first, end = self.target.valid_columns
        return end - first

    @property
    def filter_steps(self) -> int:
        """Filter vectors of one block of output channels."""
        return self.kernel[0] * self.kernel[1] * self.plane.count * self.plane.words

    @property
    def group_bytes(self) -> int:
        """Bytes of the blocks that lie side by side in the filter."""
        return self.filter_steps * self.side_by_side * VECTOR_BYTES

    @property
    def has_offsets(self) -> bool:
        """Whether what is added to the sums differs by channel."""
        return self.has_bias or self.in_zero != 0

    @property
    def sums_windows_ahead(self) -> bool:
        """Whether what the filter's zero point takes is summed before the tiles: where rows are whole vectors."""
        return self.filter_zero != 0 and has_vector_rows(self.plane.pixel_bytes, self.plane.columns)

    @property
    def window_columns(self) -> int:
        """Words for the sums of columns: those of the source, and what the last windows read past them."""
        first, _ = self.target.valid_columns
        reach = (self.kernel[1] - 1) * self.dilation[1]
        return _vectors(max(self.plane.columns, first * self.stride[1] + self.window_pixels + reach))

    @property
    def window_pixels(self) -> int:
        """Words for the sums of windows."""
        return _vectors(self.columns)

    @property
    def result_bytes(self) -> int:
        """Of an element of the target."""
        return 1 if self.narrowing else 4


def _vectors(words: int) -> int:
    """Words rounded up to whole vectors."""
    return ceil(words / VECTOR_WORDS) * VECTOR_WORDS


def inner_convs(chain: Chain, forms: Forms, k_split: int) -> tuple[InnerConv, ...]:
    """The convs of a chain in a nest of rows."""
    return tuple(_inner(chain, forms, index, k_split) for index in range(len(chain.conv)))


def _inner(chain: Chain, forms: Forms, index: int, k_split: int) -> InnerConv:
    conv, extents, is_last = chain.conv[index], tensor_extents(chain), index == len(chain.conv) - 1
    flip = MADE_UNSIGNED if chain.dtype == "int8" else 0
    how, (sequence, offset) = conv.requantize, (None, 0)
    if how:
        sequence, offset = narrowing(how, how.zero_point + flip)
    out_blocks = ceil(conv.out_channels / CHANNEL_BLOCK)
    *_, side_by_side, _lanes, _bytes = forms.filters[index].physical_shape
    return InnerConv(
        number=index + 1,
        is_last=is_last,
        source=extents[index],
        target=extents[index + 1],
        plane=_plane(forms, index),
        target_columns=_columns(forms, index + 1),
        kernel=conv.kernel,
        stride=conv.stride,
        dilation=conv.dilation,
        is_signed=chain.dtype == "int8",
        in_zero=chain.output_zero_point(index),
        filter_zero=conv.filter_zero_point + forms.filter_shift,
        fringe=0 if is_last else chain.output_zero_point(index + 1),
        has_bias=conv.bias,
        narrowing=sequence,
        offset=offset,
        out_channels=conv.out_channels,
        side_by_side=side_by_side,
        tile_blocks=tile_blocks(min(k_split, out_blocks)),
        narrowed_blocks=forms.channel_units[index + 1],
    )


def _columns(forms: Forms, tensor: int) -> int:
    """Pixels of a row of a cache."""
    return prod(output.extent for output in forms.activations[tensor].outputs if output.name.lower().endswith("w"))


def _plane(forms: Forms, tensor: int) -> Plane:
    """How a cache lies: all channels of a pixel together, or some blocks of them."""
    columns, unit = _columns(forms, tensor), forms.channel_units[tensor]
    channels = next(output.extent for output in forms.activations[tensor].outputs if output.name == "C")
    if tensor == 0:
        return Plane(1, columns * channels, channels, columns)
    pixel = unit * CHANNEL_BLOCK
    return Plane(channels, columns * pixel, pixel, columns)
