"""Where a stored element of a packed activation lies: its row, column and channel, and which of them are real."""

from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK, Extents

Index = Any
"""A TVM integer expression (or a Python int)."""


@dataclass(frozen=True)
class Position:
    """One element of an NHWC8h8w32c tensor: batch, stored row, stored column, channel."""

    n: Index
    row: Index
    column: Index
    channel: Index

    @classmethod
    def of(cls, n: Index, ho: Index, wo: Index, co: Index, hi: Index, wi: Index, ci: Index) -> "Position":
        """From the seven indices of the packed tensor."""
        return cls(n, ho * ROW_BLOCK + hi, wo * COLUMN_BLOCK + wi, co * CHANNEL_BLOCK + ci)

    @property
    def packed(self) -> tuple[Index, ...]:
        """The seven indices of the packed tensor."""
        row, column, channel = self.row, self.column, self.channel
        outer = (self.n, row // ROW_BLOCK, column // COLUMN_BLOCK, channel // CHANNEL_BLOCK)
        return (*outer, row % ROW_BLOCK, column % COLUMN_BLOCK, channel % CHANNEL_BLOCK)

    def where_logical(self, extents: Extents, value: tirx.Expr, otherwise: tirx.Expr) -> tirx.Expr:
        """`value` where this element exists in NHWC, and `otherwise` elsewhere, where nothing of `value` is evaluated.

        One condition inside of the other, channels innermost: each can then be decided at the loop that it depends on.
        """
        rows = _between(self.row, *extents.valid_rows, extents.row_blocks * ROW_BLOCK)
        columns = _between(self.column, *extents.valid_columns, extents.column_blocks * COLUMN_BLOCK)
        channels = _between(self.channel, 0, extents.channels, extents.channel_blocks * CHANNEL_BLOCK)
        for conditions in (channels, columns, rows):
            value = te.if_then_else(te.all(*conditions), value, otherwise) if conditions else value
        return value


def _between(index: Index, first: int, end: int, size: int) -> list[tirx.Expr]:
    """`first <= index < end`, for an index that runs over 0..size-1."""
    lower = [index >= first] if first > 0 else []
    return lower + ([index < end] if end < size else [])
