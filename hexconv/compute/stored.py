"""Index stored tensors with TVM expressions, by the index maths of `hexconv.layout`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import te, tirx

from hexconv.kernel import has_bytes_apart
from hexconv.layout import Layout
from hexconv.spec import Extents

FIRST_BIT = -128
"""The first bit of an int8."""
Index = Any
"""A TVM integer expression (or a Python int)."""


@dataclass(frozen=True)
class Stored:
    """The stored part of an activation: which of its elements are logical, and its layout.

    Attributes:
        extents: the stored extents.
        layout: the layout.
        columns: from the number of an image to its logical columns, the first and one past the last, where images
            differ in them.
        flips: whether it holds int8 with the first bit flipped, as uint8.
    """

    extents: Extents
    layout: Layout
    columns: "Callable[[Index], tuple[Index, Index]] | None" = None
    flips: bool = False

    @property
    def padded(self) -> tuple[int, int, int, int]:
        """The stored sizes along N, H, W and C, rounded up to whole blocks."""
        n, h, w, c = (_reach(self.layout, axis) for axis in "NHWC")
        return n, h, w, c

    def element_at(self, tensor: te.Tensor, at: "Position") -> tirx.Expr:
        """An element of the tensor; where the bytes of an element lie apart, they are put together."""
        if not has_bytes_apart(self.layout):
            return self.flipped(tensor[at.packed(self.layout)])
        high, low = (tensor[at.packed(self.layout, byte)] for byte in (0, 1))
        return high.astype("int8").astype("int16") * tirx.const(256, "int16") + low.astype("int16")

    def as_stored(self, value: tirx.Expr, at: "Position") -> tirx.Expr:
        """The part of a value that is stored at a position: the whole value, or one of its bytes."""
        if not has_bytes_apart(self.layout):
            return self.flipped(value)
        shift = tirx.Select(at.byte == 0, tirx.const(8, "int32"), tirx.const(0, "int32"))
        return tirx.bitwise_and(value.astype("int32") >> shift, tirx.const(255, "int32")).astype("uint8")

    def flipped(self, value: tirx.Expr) -> tirx.Expr:
        """A value with its first bit flipped, where the tensor holds it so."""
        if not self.flips:
            return value
        if isinstance(value, tirx.IntImm):
            return tirx.const(int(value) ^ FIRST_BIT, "int8")
        return tirx.bitwise_xor(value, tirx.const(FIRST_BIT, "int8"))


def _reach(layout: Layout, axis: str) -> int:
    """The stored size along an axis: the product of what its digits count to."""
    return prod(digit.modulus or layout.values(digit) for digit in layout.digits_of(axis=axis))


@dataclass(frozen=True)
class Position:
    """One stored element of an activation: batch, stored row, stored column, channel; and which byte of it."""

    n: Index
    row: Index
    column: Index
    channel: Index
    byte: Index = 0

    @classmethod
    def of(cls, layout: Layout, indices: tuple[Index, ...]) -> "Position":
        """Find the position of the element that has these indices in the packed tensor."""
        return cls(*layout.logical_index(indices))

    def packed(self, layout: Layout, byte: int = 0) -> tuple[Index, ...]:
        """The indices of this element in the packed tensor; where its bytes lie apart, the indices of byte `byte`."""
        apart = {"b": byte} if has_bytes_apart(layout) else {}
        return layout.physical_index(n=self.n, h=self.row, w=self.column, c=self.channel, **apart)

    def where_logical(self, stored: Stored, value: tirx.Expr, otherwise: tirx.Expr) -> tirx.Expr:
        """`value` where this element exists in NHWC, and `otherwise` elsewhere, where nothing of `value` is evaluated.

        The conditions are nested, that of channels innermost: each can then be decided at the loop that it depends on.
        """
        extents = stored.extents
        _, all_rows, all_columns, all_channels = stored.padded
        rows = _between(self.row, *extents.valid_rows, all_rows)
        columns = _between(self.column, *extents.valid_columns, all_columns)
        if stored.columns:
            first, end = stored.columns(self.n)
            columns = [self.column >= first, self.column < end]
        channels = _between(self.channel, 0, extents.channels, all_channels)
        for conditions in (channels, columns, rows):
            value = te.if_then_else(te.all(*conditions), value, otherwise) if conditions else value
        return value


def _between(index: Index, first: int, end: int, size: int) -> list[tirx.Expr]:
    """`first <= index < end`, for an index that runs over 0..size-1."""
    lower = [index >= first] if first > 0 else []
    return lower + ([index < end] if end < size else [])
