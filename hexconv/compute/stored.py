"""Tensors as they are stored, in symbols: the index maths of `hexconv.layout` on TVM expressions."""

from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from hexconv.layout import Layout, packed
from hexconv.spec import Conv2d, Extents
from hexconv.spec.extents import CHANNEL_BLOCK

ACTIVATION_TAG = "NHWC8h8w32c"
FILTER_TAG = "OIHW8i32o4i"
FEW_INPUTS_TAG = "OIHW32o"
"""Of groups whose input channels are no whole blocks of 32: depthwise filters would use a 32nd of the above."""

Index = Any
"""A TVM integer expression (or a Python int)."""


def activation_layout(extents: Extents) -> Layout:
    """The stored part of an activation, packed.

    >>> activation_layout(Extents(1, 62, 62, 128, 0, 0, 62, 62)).physical_shape
    (1, 8, 8, 4, 8, 8, 32)
    """
    return packed(ACTIVATION_TAG, (extents.batch, extents.rows, extents.columns, extents.channels))


def filter_layout(conv: Conv2d, in_channels: int) -> Layout:
    """A filter, packed; `in_channels` are those of the whole input.

    >>> filter_layout(Conv2d(out_channels=40, kernel=(3, 1)), 64).physical_shape
    (2, 2, 3, 1, 8, 32, 4)
    >>> filter_layout(Conv2d(out_channels=40, kernel=(3, 3), groups=40), 40).physical_shape
    (2, 1, 3, 3, 32)
    """
    inputs = in_channels // conv.groups
    tag = FILTER_TAG if conv.groups == 1 or inputs % CHANNEL_BLOCK == 0 else FEW_INPUTS_TAG
    return packed(tag, (conv.out_channels, inputs, *conv.kernel))


@dataclass(frozen=True)
class Position:
    """One stored element of an activation: batch, stored row, stored column, channel."""

    n: Index
    row: Index
    column: Index
    channel: Index

    @classmethod
    def of(cls, layout: Layout, indices: tuple[Index, ...]) -> "Position":
        """From the indices of the packed tensor."""
        return cls(*layout.logical_index(indices))

    def packed(self, layout: Layout) -> tuple[Index, ...]:
        """The indices of the packed tensor."""
        return layout.physical_index(n=self.n, h=self.row, w=self.column, c=self.channel)

    def where_logical(self, extents: Extents, value: tirx.Expr, otherwise: tirx.Expr) -> tirx.Expr:
        """`value` where this element exists in NHWC, and `otherwise` elsewhere, where nothing of `value` is evaluated.

        One condition inside of the other, channels innermost: each can then be decided at the loop that it depends on.
        """
        _, row_blocks, column_blocks, channel_blocks, *inner = activation_layout(extents).physical_shape
        rows = _between(self.row, *extents.valid_rows, row_blocks * inner[0])
        columns = _between(self.column, *extents.valid_columns, column_blocks * inner[1])
        channels = _between(self.channel, 0, extents.channels, channel_blocks * inner[2])
        for conditions in (channels, columns, rows):
            value = te.if_then_else(te.all(*conditions), value, otherwise) if conditions else value
        return value


def _between(index: Index, first: int, end: int, size: int) -> list[tirx.Expr]:
    """`first <= index < end`, for an index that runs over 0..size-1."""
    lower = [index >= first] if first > 0 else []
    return lower + ([index < end] if end < size else [])
