"""Closed form of a nest of rows: its convs, their products, and the bytes of its rows.

Products. One instruction computes 128 products: 4 in each of 32 lanes. Every logical pixel of a step takes one
instruction for each block of 32 output channels and each word of 4 channels under its window. If the filter has a zero
point (int8 filters have 128, as uint8), every tile of channels sums its windows: all vectors of the rows under a row of
outputs, or, if rows are no whole vectors, one instruction more for each word. If the first words of a tile are
multiplied during the tile before it, the last tile of a row starts once more. int16 has a pass for each pair of bytes,
and sums the windows of both bytes. Where lanes are pixels (`hexconv.kernel.pixels`), an instruction takes 4 input
channels of 32 pixels, for one output channel; no windows are summed. On dense rows (`hexconv.kernel.dense`) a word
has 4 bytes of a row of a window, whatever their taps, and additions sum windows. No filter is summed for the zero point
of a source, except by scalar code: HVX kernels load offsets that are laid out before a run.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, prod
from typing import Any

from hexconv.analyze.caches import DTYPE_BYTES
from hexconv.kernel.bands import RowBands, row_bands
from hexconv.kernel.form import without_groups
from hexconv.kernel.layouts import NestLayouts
from hexconv.kernel.row_conv import RowConv, row_conv
from hexconv.kernel.row_layouts import planned_layouts
from hexconv.spec import Chain, Extents, Plan, choose_kernels, tensor_extents
from hexconv.spec.extents import REMEMBERED
from hexconv.spec.kernels import Kernel
from hexconv.spec.strips import Strips, in_strips, strips_of


@dataclass(frozen=True)
class PlannedRows:
    """A chain under a plan whose nest is kept in rows: its convs, and what a row of each tensor takes.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
        kernels: the kernel of each conv.
        strips: the strips of columns that the chain is a batch of; None where its rows are whole.
    """

    chain: Chain
    plan: Plan
    kernels: tuple[Kernel, ...]
    strips: Strips | None = None

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def layouts(self) -> NestLayouts:
        """The layouts of all tensors and filters."""
        return planned_layouts(self.chain, self.plan, self.kernels)

    @cached_property
    def bands(self) -> RowBands:
        """The bands of rows that the threads make."""
        return row_bands(self.chain, self.plan)

    def channel_tiles(self, index: int) -> int:
        """Return how many channel tiles conv `index` has."""
        return ceil(self.extents[index + 1].channel_blocks / self.plan.k_split)

    @cached_property
    def convs(self) -> tuple[RowConv, ...]:
        """The convs as their kernels compute them."""
        kernels = enumerate(self.kernels)
        return tuple(row_conv(self.chain, index, self.layouts, self.plan, kernel) for index, kernel in kernels)

    @property
    def source_bytes(self) -> int:
        """The bytes of an element of what convs read."""
        return DTYPE_BYTES[self.chain.dtype]

    def macs_of_row(self, index: int) -> int:
        """The multiply-accumulates of a row of conv `index`, whether or not it makes any."""
        return self.convs[index].form.row_macs

    def input_bytes(self, rows: Any) -> Any:
        """Return the bytes that are copied of so many rows of the input, strip by strip equally many."""
        first, end = self.extents[0].valid_columns
        of_pixel = self.chain.input[3] * DTYPE_BYTES[self.chain.dtype]
        if not self.strips:
            return rows * (end - first) * of_pixel
        valid = (self.strips.valid_columns(0, number) for number in range(self.strips.count))
        return rows // self.strips.count * sum(end - first for first, end in valid) * of_pixel

    def filled_bytes(self, tensor: int, rows: Any) -> Any:
        """Return the bytes outside of the image that are filled in so many rows of an intermediate, in all strips."""
        if not self.strips or not self.strips.fills(tensor):
            return 0 * rows
        layout, columns = self.layouts.activations[tensor], self.strips.tensors[tensor].made
        valid = (self.strips.valid_columns(tensor, number) for number in range(self.strips.count))
        filled = sum(first + columns - end for first, end in valid)
        return rows // self.strips.count * filled * layout.stored_extent("C") * self.source_bytes

    def filled_share(self, tensor: int) -> float:
        """Return the bytes outside of the image that are filled in a row of an intermediate, on average over strips."""
        return self.filled_bytes(tensor, self.strips.count) / self.strips.count if self.strips else 0.0

    def kept_bytes(self, tensor: int, rows: Any) -> Any:
        """Return the bytes that are kept of so many rows of a tensor: each strip but the last keeps its own."""
        if not self.strips or not self.strips.keeps:
            return 0 * rows
        shape, kept = self.layouts.activations[tensor].physical_shape, self.strips.tensors[tensor].kept
        of_column = prod(shape[2:]) // self.layouts.activations[tensor].stored_extent("W")
        of_column *= DTYPE_BYTES[self.chain.dtype] if tensor == 0 else 1  # bytes of an intermediate lie apart
        return rows // self.strips.count * (self.strips.count - 1) * kept * of_column

    def staging_macs(self, index: int) -> int:
        """The multiply-accumulates that sum the filter of conv `index` for its source's zero point, in all threads.

        They are done once a conv makes anything.
        """
        return self.convs[index].form.once_macs * self.bands.count


@lru_cache(REMEMBERED)
def planned_rows(chain: Chain, plan: Plan) -> PlannedRows:
    """The closed forms of a chain under a plan; each figure is computed once and remembered."""
    nest, of_nest = in_strips(chain, plan)
    choices = choose_kernels(chain, plan)
    return PlannedRows(without_groups(nest), of_nest, tuple(choice.used for choice in choices), strips_of(chain, plan))
