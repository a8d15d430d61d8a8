"""Layouts of the caches and filters of a nest; those of the documents are NHWC8h8w32c and OIHW8i32o4i.

`hexconv.kernel.layouts` has the layouts of the document's nest, `hexconv.kernel.row_layouts` those of a nest of rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.hashed import hashed_once
from hexconv.kernel.tiles import MOST_BLOCKS
from hexconv.layout import Layout, packed
from hexconv.layout.digits import Digit
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, REMEMBERED, ROW_BLOCK

ACTIVATION_TAG = "NHWC8h8w32c"
BYTES_AXIS = "B"
"""The name of the digit of a layout that counts the bytes of an element."""
RUNS_AXIS = "R"
"""The name of the axis of a filter's layout that counts the weights under a row of a window, channels innermost."""


@dataclass(frozen=True)
class Diagonal:
    """The blocks of a grouped conv's filter that are stored: 32 output channels by some planes of 32 inputs.

    Attributes:
        groups: the number of groups.
        inputs: the input channels of a group.
        outputs: the output channels of a group.
    """

    groups: int
    inputs: int
    outputs: int

    @property
    def planes(self) -> int:
        """The planes of 32 channels of the source."""
        return ceil(self.groups * self.inputs / CHANNEL_BLOCK)

    @property
    def blocks(self) -> int:
        """The blocks of 32 output channels."""
        return ceil(self.groups * self.outputs / CHANNEL_BLOCK)

    @cached_property
    def width(self) -> int:
        """The planes that a block of output channels multiplies: as many as the widest one reads.

        >>> Diagonal(4, 64, 64).width, Diagonal(24, 8, 8).width, Diagonal(10, 24, 24).width
        (2, 1, 3)
        """
        return max(self._end(block) - self._first(block) for block in range(self.blocks))

    @property
    def channels(self) -> int:
        """The input channels that a block of output channels multiplies, those of other groups included."""
        return self.width * CHANNEL_BLOCK

    def _first(self, block: Any) -> Any:
        return block * CHANNEL_BLOCK // self.outputs * self.inputs // CHANNEL_BLOCK

    def _end(self, block: int) -> int:
        last = min((block + 1) * CHANNEL_BLOCK, self.groups * self.outputs) - 1
        return ceil((last // self.outputs + 1) * self.inputs / CHANNEL_BLOCK)

    def first_plane(self, block: Any, least: Callable[[Any, int], Any] = min) -> Any:
        """The first plane that a block of output channels multiplies; none of them leaves the source.

        Args:
            block: the number of the block, or an expression of it.
            least: the function that returns the lesser of two numbers, or expressions.

        >>> [Diagonal(10, 24, 24).first_plane(block) for block in range(8)]
        [0, 0, 1, 3, 3, 4, 5, 5]
        """
        return least(self._first(block), self.planes - self.width)

    def blocks_of(self, filter: NDArray[Any]) -> NDArray[Any]:
        """The channels that are multiplied of a filter OIHW of one group, whose inputs are whole planes."""
        some = range(0, len(filter), CHANNEL_BLOCK)
        starts = [self.first_plane(block) * CHANNEL_BLOCK for block in range(self.blocks)]
        return np.concatenate(
            [
                filter[output : output + CHANNEL_BLOCK, start : start + self.channels]
                for output, start in zip(some, starts, strict=True)
            ]
        )

    def tile_blocks(self, k_split: int) -> int:
        """Blocks of output channels of a tile, which multiplies the same words for all of them: those of one group.

        >>> [Diagonal(4, channels, channels).tile_blocks(4) for channels in (32, 64, 96, 128, 160)]
        [1, 2, 1, 4, 1]
        """
        if self.outputs % CHANNEL_BLOCK:
            return 1
        together = gcd(self.outputs // CHANNEL_BLOCK, min(k_split, self.blocks))
        return max(blocks for blocks in range(1, MOST_BLOCKS + 1) if together % blocks == 0)


@dataclass(frozen=True)
class Packing:
    """How the elements of a filter are packed.

    Attributes:
        dtype: the dtype of the packed elements.
        shift: the number that packing adds to each element.
        pads_zeros: whether what is no weight is packed as 0, since kernels multiply it; else no result uses it.
        is_words: whether scalar loads read words of weights: then the filter's cache never lies in VTCM.
        diagonal: the blocks that are stored of a filter of several groups; None where all of its channels are.
        taps: the order in which taps of the kernel are packed, counted row by row; none where that is their order.
        added: what each further kernel, below the first, holds in the place of every weight. What is multiplied is the
            sum of all of them, and has no zero point.
        unfolded: the rows and columns of taps that are packed as input channels (`hexconv.spec.unfolded`).
        memory: the layout of the argument, where its cache holds zeros that memory does not; None where both are one.
    """

    dtype: str
    shift: int = 0
    pads_zeros: bool = False
    is_words: bool = False
    diagonal: Diagonal | None = None
    taps: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    unfolded: tuple[int, int] = (1, 1)
    memory: Layout | None = None


@dataclass(frozen=True)
class RowUnit:
    """How the rows of a tensor are counted.

    Attributes:
        unit: the rows of a slab: 8 where a cache lies in blocks of 8 rows, else 1.
        rows: the rows that are made, those included that fill up the last block.
    """

    unit: int
    rows: int

    @classmethod
    def of(cls, layouts: "NestLayouts", tensor: int) -> "RowUnit":
        """Count the rows of a tensor."""
        return cls(layouts.row_units[tensor], layouts.activations[tensor].stored_extent("H"))


@hashed_once
@dataclass(frozen=True)
class NestLayouts:
    """The layouts of all tensors of one nest.

    Attributes:
        activations: the layouts of the input cache, of every intermediate and of the output cache.
        output: the layout of the output: that of its cache, or another one.
        filters: the layout of the cache of each conv's filter; its argument shares it, but for what `Packing` says.
        row_units: per activation, the rows that one step along its axis H counts: 8 or 1.
        channel_units: per activation, the channels that one step along its axis C counts: 4, 8, 16, 32, 64 or 128; 1
            for an input whose pixels lie side by side without a byte between them.
        packings: how the elements of each conv's filter are packed.
        flips: whether caches hold int8 with the first bit flipped, as uint8, except the output's.
    """

    activations: tuple[Layout, ...]
    output: Layout
    filters: tuple[Layout, ...]
    row_units: tuple[int, ...]
    channel_units: tuple[int, ...]
    packings: tuple[Packing, ...]
    flips: bool = False

    @property
    def filter_arguments(self) -> tuple[Layout, ...]:
        """The layout of each conv's filter as an argument."""
        pairs = zip(self.filters, self.packings, strict=True)
        return tuple(packing.memory or cached for cached, packing in pairs)

    @property
    def has_rows(self) -> bool:
        """Whether intermediates are stored row by row, not in slabs of 8 rows."""
        return self.row_units[0] == 1

    @property
    def has_output_rows(self) -> bool:
        """Whether the output cache is stored row by row, too."""
        return self.row_units[-1] == 1

    @property
    def lays_output_out(self) -> bool:
        """Whether writing the output cache back changes its layout."""
        return self.output != self.activations[-1]


def has_bytes_apart(layout: Layout) -> bool:
    """Whether a layout has a digit for the bytes of an element, so that they lie apart."""
    return any(axis.name == BYTES_AXIS for axis in layout.axes)


def has_runs(layout: Layout) -> bool:
    """Whether the layout of a filter has one axis for the columns and channels under a row of a window."""
    return any(axis.name == RUNS_AXIS for axis in layout.axes)


def input_layout(chain: Chain, shape: tuple[int, int, int, int] | None = None) -> Layout:
    """The layout of a chain's input, or of the images of `shape` that the chain computes in strips."""
    return packed(chain.input_layout, shape or chain.image, logical="NHWC")


def output_layout(chain: Chain, shape: tuple[int, int, int, int] | None = None) -> Layout:
    """The layout of a chain's output, or of the images of `shape` that the chain computes in strips.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 8, 9, 8), output_layout="NHCW32c", conv=(Conv2d(out_channels=33),))
    >>> output_layout(chain).physical_shape
    (1, 8, 2, 9, 32)
    """
    return packed(chain.output_layout, shape or chain.shapes[-1], logical="NHWC")


def logical(extents: Extents) -> tuple[int, int, int, int]:
    """The shape of the stored part of a tensor, NHWC."""
    return (extents.batch, extents.rows, extents.columns, extents.channels)


FILTER_TAG = "OIHW8i32o4i"
FEW_INPUTS_TAG = "OIHW32o"
"""For groups without whole blocks of 32 input channels: a depthwise filter would fill a 32nd of OIHW8i32o4i."""


@lru_cache(REMEMBERED)
def documented_layouts(chain: Chain) -> NestLayouts:
    """The layouts of all tensors of a chain as the documents have them.

    >>> from hexconv.spec import Conv2d
    >>> layouts = documented_layouts(Chain(input=(1, 8, 8, 64), conv=(Conv2d(out_channels=40, kernel=(3, 1)),)))
    >>> layouts.filters[0].physical_shape
    (2, 2, 3, 1, 8, 32, 4)
    """
    return NestLayouts(
        activations=tuple(map(_blocked, tensor_extents(chain))),
        output=output_layout(chain),
        filters=tuple(documented_filter(chain, index) for index in range(len(chain.conv))),
        row_units=(ROW_BLOCK,) * len(chain.shapes),
        channel_units=(CHANNEL_BLOCK,) * len(chain.shapes),
        packings=(Packing(chain.dtype_of_filters),) * len(chain.conv),
    )


def _blocked(extents: Extents) -> Layout:
    """The layout of a tensor in blocks; a row of blocks has those of all phase images, one image after the other."""
    blocked, (down, across) = packed(ACTIVATION_TAG, logical(extents)), extents.phases
    if extents.phases == (1, 1):
        return blocked
    images = {"H": extents.row_blocks, "W": extents.column_blocks}
    of_rows = (Digit("H", "H", ROW_BLOCK * down), Digit("H", "8h", down, ROW_BLOCK))
    of_columns = (Digit("W", "W", COLUMN_BLOCK * across), Digit("W", "8w", across, COLUMN_BLOCK))
    columns = extents.phase_columns
    in_row, kept = extents.images_across, extents.last_phase[0] + 1
    of_image = (Digit("H", "W", 1, down, in_row * columns, kept), Digit("W", "W", 1, across, columns, in_row))
    rest = [digit for digit in blocked.digits if digit.axis in "NC"]
    return replace(
        blocked,
        name=f"{ACTIVATION_TAG} in {down}x{across} phases",
        outputs=tuple(replace(each, extent=images.get(each.name, each.extent)) for each in blocked.outputs),
        digits=(*rest, *of_rows, *of_columns, *of_image),
    )


def documented_filter(chain: Chain, index: int) -> Layout:
    """The layout of the packed filter of conv `index` (from 0) in the document's nest.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=40, kernel=(3, 3), groups=40)
    >>> documented_filter(Chain(input=(1, 8, 8, 40), conv=(conv,)), 0).physical_shape
    (2, 1, 3, 3, 32)
    """
    inputs, grouped = chain.filter_shapes[index][1], chain.conv[index].is_grouped
    tag = FEW_INPUTS_TAG if grouped and inputs % CHANNEL_BLOCK else FILTER_TAG
    return packed(tag, chain.filter_shapes[index])
