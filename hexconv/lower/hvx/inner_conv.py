"""A conv as HVX code sees it before its steps: geometry, zero points, units of channels, where operands lie."""

from dataclasses import dataclass
from math import ceil

from hexconv.kernel.dense import DenseRows
from hexconv.kernel.depthwise import WORD_PIXELS, goes_down, is_depthwise
from hexconv.kernel.forms import Forms
from hexconv.kernel.grouped import Diagonal, OwnWords, blocks_of_tile, diagonal_of, own_words_of, without_groups
from hexconv.kernel.lanes import dense_rows, pixel_lanes
from hexconv.kernel.pixels import PixelLanes
from hexconv.kernel.planes import Plane, plane_of
from hexconv.kernel.tiles import (
    LANES,
    VECTOR_BYTES,
    WORD_CHANNELS,
    has_vector_rows,
    joins_planes,
    multiplied_words,
    splats_serve,
)
from hexconv.lower.conv_step import Made
from hexconv.spec import Chain, Conv2d, Extents, Plan, Requantize, tensor_extents
from hexconv.spec.activations import TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.narrowing import MADE_UNSIGNED, FixedPoint, Shifts
from hexconv.spec.ranges import Raised, bias_limit, narrowing_at, raised_sums


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


@dataclass(frozen=True)
class InnerConv:
    """One conv of a chain as the HVX kernel sees it.

    Attributes:
        number: the number of the conv, from 1.
        spec: the conv of the chain, without groups where it is computed so.
        plan: the plan of its chain, for knobs that say how tiles are made.
        is_last: whether it makes the output.
        source: the stored extents of the tensor that it reads.
        target: the stored extents of the tensor that it makes.
        plane: how its source lies in its cache.
        made_as: how the rows of its target are counted.
        target_columns: the pixels of a row of the cache that it fills.
        is_signed: whether activations are int8.
        is_wide: whether activations are int16, high bytes and low bytes apart.
        filter_is_wide: whether the filter is int16, high bytes and low bytes apart.
        in_zero: the zero point of the source as it is multiplied; with pixels as lanes it is multiplied as uint8.
        filter_is_signed: whether the filter is packed as int8.
        filter_zero: the zero point of the filter as it is packed.
        fringe: what the target holds where it has no logical element.
        narrowing: how sums become results; None where the sums themselves are stored.
        offset: the number that narrowing needs added to every sum.
        raised: what keeps sums of int16 within a word where they saturate; None where they don't.
        codes: the least and the largest code of a result, in uint8 or int16.
        side_by_side: how many blocks of output channels lie side by side in the filter.
        tile_blocks: how many blocks of output channels a tile has.
        units: how channels lie together in its target.
        is_depthwise: whether it is computed as a depthwise one.
        goes_down: whether its tiles follow each other down the image (`hexconv.kernel.depthwise`).
        has_table: whether results are looked up in a table.
        pixels: how the conv runs with pixels as lanes; None where lanes are channels.
        dense: how it multiplies windows of dense rows; None where it doesn't.
        own_words: the words that each lane has of its own group; None where lanes share words.
        diagonal: the planes that each block of output channels multiplies where it has groups of its own; else None.
    """

    number: int
    spec: Conv2d
    plan: Plan
    is_last: bool
    source: Extents
    target: Extents
    plane: Plane
    made_as: Made
    target_columns: int
    is_signed: bool
    is_wide: bool
    filter_is_wide: bool
    in_zero: int
    filter_is_signed: bool
    filter_zero: int
    fringe: int
    narrowing: Shifts | FixedPoint | None
    offset: int
    raised: Raised | None
    codes: tuple[int, int]
    side_by_side: int
    tile_blocks: int
    units: Units
    is_depthwise: bool = False
    goes_down: bool = False
    has_table: bool = False
    pixels: PixelLanes | None = None
    dense: DenseRows | None = None
    diagonal: Diagonal | None = None
    own_words: OwnWords | None = None

    @property
    def makes_blocks(self) -> bool:
        """Whether its target lies in blocks of 8 rows, 8 columns and 32 channels."""
        return self.made_as.unit == ROW_BLOCK

    @property
    def reads_unsigned(self) -> bool:
        """Whether its source is uint8 as it is stored: int8 is, too, in blocks of 4 channels, which no input has."""
        return not self.is_signed or self.plane.is_of_words

    @property
    def makes_unsigned(self) -> bool:
        """Whether its results are uint8 as they are stored."""
        return not self.is_signed or self.units.is_fours

    @property
    def out_blocks(self) -> int:
        """The number of blocks of 32 output channels; the last one may be part full."""
        return ceil(self.spec.out_channels / CHANNEL_BLOCK)

    @property
    def narrowed_blocks(self) -> int:
        """How many blocks of a tile make up a vector of the target; 1 where it is narrow."""
        return self.units.blocks

    @property
    def last_channels(self) -> int:
        """The channels of the last block."""
        return self.units.last_channels

    @property
    def columns(self) -> int:
        """The logical columns of the tensor that it makes."""
        first, end = self.target.valid_columns
        return end - first

    @property
    def planes(self) -> int:
        """The planes of its source that a tile multiplies."""
        return self.diagonal.width if self.diagonal else self.plane.count

    @property
    def plane_elements(self) -> int:
        """The elements from one plane of a row of its source to the next, as the source lies in its cache."""
        return self.plane.low_bytes if self.splits else self.plane.bytes

    @property
    def filter_steps(self) -> int:
        """The filter vectors of one block of output channels."""
        if self.is_depthwise:
            return self.spec.kernel[0] * ceil(self.spec.kernel[1] / WORD_PIXELS)
        if lanes := self.pixels or self.dense:
            return lanes.planes.steps
        if self.own_words:
            return self.spec.kernel[0] * self.spec.kernel[1] * self.own_words.words
        return self.spec.kernel[0] * self.spec.kernel[1] * self.planes * self.plane.words

    @property
    def multiplied_words(self) -> int:
        """The words of a pixel that tiles multiply; splats of a run multiply all words."""
        if self.splats or self.diagonal:
            return self.plane.words
        return multiplied_words(self.source.channels, self.plane.words, self.plane.count)

    @property
    def multiplied_steps(self) -> int:
        """The filter vectors that tiles multiply for one block of output channels."""
        return self.spec.kernel[0] * self.spec.kernel[1] * self.planes * self.multiplied_words

    @property
    def is_one_run(self) -> bool:
        """Whether the words that tiles multiply for a row of taps lie side by side."""
        return self.spec.kernel[1] == 1 or (self.spec.dilation[1] == 1 and self.multiplied_words == self.plane.words)

    @property
    def joins_planes(self) -> bool:
        """Whether the words that tiles multiply for a row of taps are one run, from plane to plane."""
        return not self.splats and joins_planes(self.spec.kernel[1], self.plane.words, self.planes)

    @property
    def filter_low_bytes(self) -> int:
        """The bytes from the high bytes of an int16 filter to its low bytes; 0 where its elements are bytes."""
        return self.filter_steps * self.side_by_side * VECTOR_BYTES if self.filter_is_wide else 0

    @property
    def group_bytes(self) -> int:
        """The bytes of the blocks that lie side by side in the filter."""
        return self.filter_steps * self.side_by_side * VECTOR_BYTES + self.filter_low_bytes

    @property
    def splits(self) -> bool:
        """Whether its source arrives as int16, whose bytes it has to take apart."""
        return self.is_wide and self.number == 1

    @property
    def split_rows(self) -> int:
        """The rows of the source that are held with their bytes taken apart: those of a window."""
        return self.spec.reach[0]

    @property
    def has_offsets(self) -> bool:
        """Whether the sums get an offset per channel."""
        return (self.spec.bias and not self.adds_bias_last) or self.in_zero != 0

    @property
    def adds_bias_last(self) -> bool:
        """Whether biases are added to the sums of products, saturating."""
        return isinstance(self.narrowing, FixedPoint) and self.narrowing.saturates_at is not None

    @property
    def multiplies_source(self) -> bool:
        """Whether tiles of channels multiply words of its source, not of rows that are laid out before."""
        return not (self.is_depthwise or self.own_words or self.pixels or self.dense)

    @property
    def sums_windows_ahead(self) -> bool:
        """Whether windows are summed before the tiles, for the filter's zero point: where rows are whole vectors."""
        has_zero = self.multiplies_source and self.filter_zero != 0
        return has_zero and has_vector_rows(self.plane.pixel_bytes, self.plane.columns)

    @property
    def splats(self) -> bool:
        """Whether it multiplies splats (a word in every lane), not scalar words.

        Its rows are whole vectors then, and its tiles don't sum windows.
        """
        wants = self.plan.activations == "splats" and self.multiplies_source
        return wants and splats_serve(self.plane.row_bytes, self.filter_zero, self.sums_windows_ahead)

    @property
    def window_columns(self) -> int:
        """The words for the sums of columns: those of the source, and those that the last windows read past them."""
        first, _ = self.target.valid_columns
        read = first * self.spec.stride[1] + self.window_pixels + self.spec.reach[1] - 1
        return _vectors(max(self.plane.columns, read))

    @property
    def window_pixels(self) -> int:
        """The words for the sums of windows."""
        return _vectors(self.columns)

    @property
    def result_bytes(self) -> int:
        """The bytes of an element that lie together in the target."""
        if not self.narrowing:
            return 4
        return 2 if self.is_wide and self.is_last else 1

    @property
    def target_low_bytes(self) -> int:
        """The bytes from the high bytes of a row of an int16 intermediate to its low bytes; 0 for all else."""
        if self.is_last or not self.is_wide:
            return 0
        return self.target_columns * self.narrowed_blocks * CHANNEL_BLOCK


def _vectors(words: int) -> int:
    """A number of words, rounded up to whole vectors."""
    return ceil(words / LANES) * LANES


def inner_conv(chain: Chain, index: int, forms: Forms, plan: Plan) -> InnerConv:
    """Collect what the HVX kernel needs to know of conv `index` (from 0) of a chain in a nest of rows."""
    chain = without_groups(chain)
    conv, extents, is_last = chain.conv[index], tensor_extents(chain), index == len(chain.conv) - 1
    depthwise, pixels = is_depthwise(chain, index), pixel_lanes(chain, index, forms, plan.k_split)
    dense = dense_rows(chain, index, forms, plan.k_split)
    *_, side_by_side, _lanes, _bytes = forms.filters[index].physical_shape
    columns = forms.activations[index + 1].stored_extent("W")
    units = Units(forms.channel_units[index + 1], conv.out_channels, columns, pixels is not None)
    sequence, offset = narrowing_at(chain, index) if conv.requantize else (None, 0)
    return InnerConv(
        number=index + 1,
        spec=conv,
        plan=plan,
        is_last=is_last,
        source=extents[index],
        target=extents[index + 1],
        plane=plane_of(forms, index, chain.dtype == "int16"),
        made_as=Made.of(forms, index + 1),
        target_columns=columns,
        is_signed=chain.dtype == "int8",
        is_wide=chain.dtype == "int16",
        filter_is_wide=chain.dtype_of_filters == "int16",
        in_zero=chain.output_zero_point(index) + (_flip(chain.dtype) if pixels or dense else 0),
        filter_is_signed=forms.packings[index].dtype == "int8",
        filter_zero=conv.filter_zero_point + forms.packings[index].shift,
        fringe=0 if is_last else chain.output_zero_point(index + 1) + (_flip(chain.dtype) if units.is_fours else 0),
        narrowing=sequence,
        offset=offset,
        raised=raised_sums(chain, index, bias_limit(chain, index)) if chain.raises(index) else None,
        codes=_codes(conv.requantize, chain.dtype),
        side_by_side=1 if depthwise else side_by_side,
        tile_blocks=blocks_of_tile(chain, index, plan.k_split),
        units=units,
        is_depthwise=depthwise,
        goes_down=goes_down(chain, plan, index),
        has_table=conv.activation == TABLE,
        pixels=pixels,
        dense=dense,
        diagonal=diagonal_of(chain, index),
        own_words=own_words_of(chain, index),
    )


def _flip(dtype: str) -> int:
    """Return the number that, added, makes activations unsigned."""
    return MADE_UNSIGNED if dtype == "int8" else 0


def _codes(how: Requantize | None, dtype: str) -> tuple[int, int]:
    """Return the least and the largest code of a result, in uint8 or int16."""
    low, high = INTEGER_RANGE[dtype]
    least, most = how.codes(low, high) if how else (low, high)
    return (least, most) if dtype == "int16" else (least - low, most - low)
