"""One conv of a nest of rows as its kernel computes it: geometry, zero points, narrowing, filter, form. No TVM.

Layouts, predictions, code and counts ask this value. What differs from form to form, its `form` says
(`hexconv.kernel.form`).
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count
from math import ceil, inf, prod

from hexconv.kernel.form import Form, forms_of_kernel, without_groups
from hexconv.kernel.layouts import NestLayouts, Packing, RowUnit
from hexconv.kernel.planes import Plane, plane_in
from hexconv.kernel.tiles import VECTOR_BYTES, WORD_CHANNELS
from hexconv.layout import Layout
from hexconv.spec import Chain, Conv2d, Extents, Plan, Requantize, tensor_extents
from hexconv.spec.activations import TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED, ROW_BLOCK, added_at
from hexconv.spec.kernels import Kernel
from hexconv.spec.narrowing import MADE_UNSIGNED, FixedPoint, Shifts
from hexconv.spec.ranges import Raised, bias_limit, narrowing_at, raised_sums

ELEMENT_BYTES = {"uint8": 1, "int8": 1, "int16": 2, "int32": 4}
MOST_ESTIMATES = 1 << 15
"""The number of convs that are not alike whose estimates are kept."""


@dataclass(frozen=True)
class LayoutChoice:
    """How a tensor lies in its cache.

    Attributes:
        layout: the layout.
        unit: the channels that a step along its axis C counts; 1 for dense pixels of 1 to 3 channels.
        rows: the rows that a step along its axis H counts: 8 or 1.
    """

    layout: Layout
    unit: int
    rows: int = 1

    @classmethod
    def of(cls, layouts: NestLayouts, tensor: int) -> "LayoutChoice":
        """Return how a tensor of a nest lies."""
        return lying(layouts.activations[tensor], layouts.channel_units[tensor], layouts.row_units[tensor])

    @property
    def is_narrow(self) -> bool:
        """Whether it lies in blocks of fewer than 32 channels."""
        return 1 < self.unit < CHANNEL_BLOCK

    @property
    def is_dense(self) -> bool:
        """Whether it is an input whose pixels lie side by side."""
        return self.unit == 1

    @cached_property
    def of_row(self) -> Hashable:
        """How a row of it lies."""
        return self.layout.name, self.layout.physical_shape[2:], self.unit, self.rows

    @cached_property
    def row_bytes(self) -> int:
        """The bytes of a row of the tensor, of which an element is a byte."""
        return prod(self.layout.physical_shape[2:])


@lru_cache(REMEMBERED)
def lying(layout: Layout, unit: int, rows: int) -> LayoutChoice:
    """Return how a tensor lies: many chains, and values of k_split, share it and what follows from it."""
    return LayoutChoice(layout, unit, rows)


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
        """Pixels per 128-byte vector of a narrow block."""
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
class RowConv:
    """One conv of a nest of rows; everything else is derived from it.

    Attributes:
        chain: the chain, in which convs have the groups that HVX computes (`without_groups`).
        index: the index of the conv, from 0.
        reads: how the tensor lies that it reads.
        makes: how the tensor lies that it makes.
        kernel: the kernel that computes it.
        plan: the plan of its chain. Its form and its filter depend on `k_split` alone.
        adds: how the tensor lies that it adds; None where it adds none, and where only its form matters.
    """

    chain: Chain
    index: int
    reads: LayoutChoice
    makes: LayoutChoice
    kernel: Kernel
    plan: Plan
    adds: LayoutChoice | None = None

    @property
    def number(self) -> int:
        """The number of the conv, from 1."""
        return self.index + 1

    @cached_property
    def spec(self) -> Conv2d:
        """The conv of the chain, without groups where it is computed so."""
        return self.chain.conv[self.index]

    @property
    def is_last(self) -> bool:
        """Whether it makes the output."""
        return self.index == len(self.chain.conv) - 1

    @cached_property
    def source(self) -> Extents:
        """The stored extents of the tensor that it reads."""
        return tensor_extents(self.chain)[self.index]

    @cached_property
    def target(self) -> Extents:
        """The stored extents of the tensor that it makes."""
        return tensor_extents(self.chain)[self.index + 1]

    @cached_property
    def plane(self) -> Plane:
        """How its source lies in its cache: all channels of a pixel together, or planes of some blocks of channels."""
        return plane_in(self.reads.layout, self.reads.unit, self.is_wide)

    @property
    def plane_elements(self) -> int:
        """The elements from one plane of a row of its source to the next, as the source lies in its cache."""
        return self.plane.low_bytes if self.splits else self.plane.bytes

    @cached_property
    def columns(self) -> int:
        """The logical columns of the tensor that it makes."""
        first, end = self.target.valid_columns
        return end - first

    @property
    def made_as(self) -> RowUnit:
        """How the rows of its target are counted."""
        return RowUnit(self.makes.rows, self.makes.layout.stored_extent("H"))

    @property
    def makes_blocks(self) -> bool:
        """Whether its target lies in blocks of 8 rows, 8 columns and 32 channels."""
        return self.makes.rows == ROW_BLOCK

    @cached_property
    def target_columns(self) -> int:
        """The pixels of a row of the cache that it fills."""
        return self.makes.layout.stored_extent("W")

    @cached_property
    def out_blocks(self) -> int:
        """The number of blocks of 32 output channels; the last one may be part full."""
        return ceil(self.spec.out_channels / CHANNEL_BLOCK)

    @property
    def channel_tiles(self) -> int:
        """The steps that make all channels."""
        return ceil(self.out_blocks / self.plan.k_split)

    @property
    def last_channels(self) -> int:
        """The channels of the last block."""
        return self.units.last_channels

    @cached_property
    def units(self) -> Units:
        """How channels lie together in its target."""
        return Units(self.makes.unit, self.spec.out_channels, self.target_columns, self.form.has_pixels)

    @property
    def narrowed_blocks(self) -> int:
        """How many blocks of a tile make up a vector of the target; 1 where it is narrow."""
        return self.units.blocks

    @property
    def is_signed(self) -> bool:
        """Whether activations are int8."""
        return self.chain.dtype == "int8"

    @property
    def is_wide(self) -> bool:
        """Whether activations are int16, high bytes and low bytes apart."""
        return self.chain.dtype == "int16"

    @property
    def source_bytes(self) -> int:
        """The bytes of an element of what it reads."""
        return ELEMENT_BYTES[self.chain.dtype]

    @property
    def filter_bytes(self) -> int:
        """The bytes of an element of its filter."""
        return ELEMENT_BYTES[self.chain.dtype_of_filters]

    @property
    def passes(self) -> int:
        """How often words are multiplied: once for each pair of bytes of an activation and of a weight."""
        return self.source_bytes * self.filter_bytes

    @property
    def reads_unsigned(self) -> bool:
        """Whether its source is uint8 as it is stored: int8 is, too, in blocks of 4 channels, which no input has."""
        return not self.is_signed or self.plane.is_of_words

    @property
    def makes_unsigned(self) -> bool:
        """Whether its results are uint8 as they are stored: all that the matrix engine reads is."""
        return not self.is_signed or self.units.is_fours or (self.kernel == "hmx" and not self.is_last)

    @property
    def splits(self) -> bool:
        """Whether its source arrives as int16, whose high and low bytes it has to set apart."""
        return self.is_wide and self.index == 0

    @cached_property
    def forms(self) -> list[Form]:
        """The forms that can compute it."""
        return [kind(self) for kind in forms_of_kernel(self.kernel) if not kind.serves(self)]

    @cached_property
    def form(self) -> Form:
        """The form that computes it: of those that can, the one that takes the fewest packets by its own estimate."""
        kind = _estimated(_Alike(self.decides, self))[0]
        assert kind, "a conv whose tensors lie so that no form can compute it"
        return kind(self)

    @property
    def row_packets(self) -> float:
        """The packets of a row by that estimate; infinite where no form can compute the conv."""
        return _estimated(_Alike(self.decides, self))[1]

    @cached_property
    def decides(self) -> Hashable:
        """All on which it depends what a row of it takes: convs of any chains that agree in it take the same.

        How many rows and images there are does not matter.
        """
        number = conv_number(self.chain, self.index, self.kernel, self.plan.k_split)
        return number, self.reads.of_row, self.makes.of_row, self.adds and (self.adds.of_row, self._added_behind)

    @property
    def _added_behind(self) -> int:
        """By how many columns the tensor that it adds stands behind its target."""
        return added_at(self.chain, self.index)[1]

    @cached_property
    def filter(self) -> tuple[Layout, Packing]:
        """The layout of its filter, and how its elements are packed."""
        return _filter_layout(_Alike(self.decides, self))

    @cached_property
    def filter_zero(self) -> int:
        """The zero point of the filter as it is packed."""
        return self.spec.filter_zero_point + self.filter[1].shift

    @property
    def filter_is_signed(self) -> bool:
        """Whether the filter is packed as int8."""
        return self.filter[1].dtype == "int8"

    @property
    def filter_is_wide(self) -> bool:
        """Whether the filter is int16, high bytes and low bytes apart."""
        return self.chain.dtype_of_filters == "int16"

    @cached_property
    def filter_vectors(self) -> int:
        """The vectors that the filter fills, or one byte of each of its elements."""
        return prod(self.filter[0].physical_shape) // VECTOR_BYTES // self.filter_bytes

    @cached_property
    def filter_steps(self) -> int:
        """The filter vectors of one block of output channels."""
        return self.filter_vectors // self.out_blocks

    @property
    def filter_low_bytes(self) -> int:
        """The bytes from the high bytes of an int16 filter to its low bytes; 0 where its elements are bytes."""
        return self.filter_steps * self.side_by_side * VECTOR_BYTES if self.filter_is_wide else 0

    @property
    def group_bytes(self) -> int:
        """The bytes of the blocks that lie side by side in the filter."""
        return self.filter_steps * self.side_by_side * VECTOR_BYTES + self.filter_low_bytes

    @cached_property
    def side_by_side(self) -> int:
        """How many blocks of output channels lie side by side in the filter."""
        return self.form.side_by_side

    @cached_property
    def tile_blocks(self) -> int:
        """How many blocks of output channels a tile has."""
        return self.form.tile_blocks

    @cached_property
    def tiles(self) -> Counter[int]:
        """How many tiles of channels there are, by their blocks of channels."""
        split = min(self.plan.k_split, self.out_blocks)
        most, (whole, rest) = self.tile_blocks, divmod(self.out_blocks, split)
        found: Counter[int] = Counter()
        for size, times in ((split, whole), (rest, 1)):
            found[most] += size // most * times
            found[size % most] += times
        return Counter({size: times for size, times in found.items() if size and times})

    @property
    def in_zero(self) -> int:
        """The zero point of the source as it is multiplied: as uint8 where the form lays it out anew."""
        return self.chain.output_zero_point(self.index) + (self._flip if self.form.lays_source_out else 0)

    @property
    def fringe(self) -> int:
        """What the target holds where it has no logical element."""
        if self.is_last:
            return 0
        return self.chain.output_zero_point(self.index + 1) + (self._flip if self.units.is_fours else 0)

    @property
    def _flip(self) -> int:
        """The number that, added, makes activations unsigned."""
        return MADE_UNSIGNED if self.is_signed else 0

    @cached_property
    def _narrowed(self) -> tuple[Shifts | FixedPoint | None, int]:
        how = self.spec.requantize
        return narrowing_at(self.chain, self.index) if how and how.engine == "exact" else (None, 0)

    @property
    def narrowing(self) -> Shifts | FixedPoint | None:
        """How HVX makes results of sums; None where the sums are stored, and where the matrix engine converts them."""
        return self._narrowed[0]

    @property
    def offset(self) -> int:
        """The number that narrowing needs added to every sum."""
        return self._narrowed[1]

    @cached_property
    def raised(self) -> Raised | None:
        """What keeps sums of int16 within a word where they saturate; None where they don't."""
        if not self.chain.raises(self.index):
            return None
        return raised_sums(self.chain, self.index, bias_limit(self.chain, self.index))

    @cached_property
    def codes(self) -> tuple[int, int]:
        """The least and the largest code of a result, in uint8 or int16."""
        return _codes(self.spec.requantize, self.chain.dtype)

    @property
    def has_table(self) -> bool:
        """Whether results are looked up in a table."""
        return self.spec.activation == TABLE

    @property
    def has_offsets(self) -> bool:
        """Whether what is added to the sums differs by channel."""
        return (self.spec.bias and not self.adds_bias_last) or self.in_zero != 0

    @property
    def adds_bias_last(self) -> bool:
        """Whether biases are added to the sums of products, saturating."""
        return self.chain.adds_bias_last(self.index)

    @property
    def result_bytes(self) -> int:
        """The bytes of an element that lie together in the target."""
        if not self.spec.requantize:
            return 4
        return 2 if self.is_wide and self.is_last else 1

    @property
    def target_low_bytes(self) -> int:
        """The bytes from the high bytes of a row of an int16 intermediate to its low bytes; 0 for all else."""
        if self.is_last or not self.is_wide:
            return 0
        return self.target_columns * self.narrowed_blocks * CHANNEL_BLOCK


@lru_cache(MOST_ESTIMATES)
def conv_number(chain: Chain, index: int, kernel: Kernel, k_split: int) -> int:
    """Return the number of a conv, the same for all that are alike in what their rows depend on, but for layouts."""
    conv, source, target = chain.conv[index], *tensor_extents(chain)[index : index + 2]
    # A step has no more tiles than the conv has blocks of channels. Tiles of groups are cut in a way of their own.
    if conv.groups == 1 and k_split > target.channel_blocks:
        return conv_number(chain, index, kernel, target.channel_blocks)
    return _number(
        (
            (conv, kernel, k_split, index == 0, index == len(chain.conv) - 1),
            (chain.dtype, chain.dtype_of_filters, chain.output_zero_point(index)),
            (source.columns, source.valid_columns, source.channels, target.columns, target.valid_columns),
        )
    )


@lru_cache(MOST_ESTIMATES)
def _number(_decides: Hashable) -> int:
    """Number a key: the same number for the same key, while it is remembered; none is given again."""
    return next(_UNUSED)


_UNUSED = count()


@dataclass(frozen=True)
class _Alike:
    """A conv that equals all others whose rows take the same."""

    decides: Hashable
    conv: RowConv = field(compare=False)


@lru_cache(MOST_ESTIMATES)
def _estimated(alike: _Alike) -> tuple[type[Form] | None, float]:
    """Return the form that computes a conv, and the packets of its rows; none, and infinite, if none can."""
    forms = alike.conv.forms
    best = min(forms, key=lambda form: form.row_packets, default=None)
    return (type(best), best.row_packets) if best else (None, inf)


@lru_cache(MOST_ESTIMATES)
def _filter_layout(alike: _Alike) -> tuple[Layout, Packing]:
    """Return the layout of a conv's filter, and how its elements are packed."""
    return alike.conv.form.filter_layout


@lru_cache(REMEMBERED)
def with_split(k_split: int) -> Plan:
    """Return a plan with a `k_split`, for what depends on no other knob."""
    return Plan(k_split=k_split)


def _codes(how: Requantize | None, dtype: str) -> tuple[int, int]:
    low, high = INTEGER_RANGE[dtype]
    least, most = how.codes(low, high) if how else (low, high)
    return (least, most) if dtype == "int16" else (least - low, most - low)


def row_conv(chain: Chain, index: int, layouts: NestLayouts, plan: Plan, kernel: Kernel = "hvx") -> RowConv:
    """Return conv `index` (from 0) of a chain in a nest of rows whose tensors lie as `layouts` says."""
    of, add = LayoutChoice.of, chain.conv[index].add
    lies = of(layouts, index), of(layouts, index + 1)
    return RowConv(without_groups(chain), index, *lies, kernel, plan, of(layouts, add.tensor) if add else None)
