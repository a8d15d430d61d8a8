"""Operands of scalar code for a conv in a nest of rows: where elements lie, zero points, filters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tvm import tirx

from hexconv.compute.stored import Position, Stored
from hexconv.compute.te import ConvOperands
from hexconv.kernel.layouts import has_bytes_apart
from hexconv.kernel.row_conv import RowConv
from hexconv.kernel.scalar import ScalarForm
from hexconv.layout import Layout
from hexconv.lower.conv_step import ConvStep, StepOperands, in_ring
from hexconv.spec.names import numbered
from hexconv.spec.vectors import UNCACHED, lookup_place, whole_channels


@dataclass(frozen=True)
class FlatCache:
    """A part of a packed tensor in a flat buffer.

    Attributes:
        buffer: the buffer that holds the part.
        origin: the element of the buffer at which index 0 along every axis lies.
        strides: elements from one index to the next, axis by axis.
    """

    buffer: tirx.Var
    origin: tirx.Expr
    strides: tuple[int, ...]

    @classmethod
    def of(cls, layout: Layout, buffer: tirx.Var, origin: tirx.Expr, **extents: int) -> "FlatCache":
        """Describe a cache that holds some images, or some blocks of filters, and all else of a packed tensor in order.

        Args:
            layout: the layout of the tensor.
            buffer: the buffer of the cache.
            origin: the element of the buffer at which index 0 along every axis lies.
            extents: by name, the sizes of axes along which it holds only a part. It may hold any number of rows.
        """
        shape = [extents.get(output.name, output.extent) for output in layout.outputs]
        return cls(buffer, origin, tuple(prod(shape[axis + 1 :]) for axis in range(len(shape))))

    def behind(self, elements: int) -> "FlatCache":
        """Return the same cache, with its origin `elements` further on."""
        return replace(self, origin=self.origin + elements) if elements else self

    def place(self, indices: tuple[Any, ...]) -> tirx.Expr:
        """Return the element of the buffer at some indices of the tensor."""
        return sum((index * stride for index, stride in zip(indices, self.strides, strict=True)), self.origin)

    def __getitem__(self, indices: tuple[Any, ...]) -> tirx.Expr:
        """Load the value at some indices of the tensor."""
        return tirx.BufferLoad(self.buffer, [self.place(indices)])


Arguments = Mapping[str, tirx.Buffer]


@dataclass(frozen=True)
class ScalarInner:
    """What scalar code knows of a conv before its steps.

    Attributes:
        conv: the conv.
        form: how scalar code computes it.
        source: the stored part and the layout of the tensor that it reads.
        target: the stored part and the layout of the tensor that it makes.
        operands: the bias, the per-channel values of requantisation, and the table.
        offsets: the scratch for the offset of each channel's sums of words; None if the sums need no offset.
    """

    conv: RowConv
    form: ScalarForm
    source: Stored
    target: Stored
    operands: ConvOperands
    offsets: tirx.Buffer | None

    @property
    def dtype(self) -> str:
        """The type of the target's elements."""
        return self.conv.chain.output_dtype(self.conv.index)

    @property
    def sum_dtype(self) -> str:
        """The type of its sums: int32, or int64 where they saturate before they are scaled."""
        return self.conv.chain.sum_dtype(self.conv.index)

    @property
    def fringe(self) -> int:
        """What the target holds where it has no logical element."""
        return 0 if self.conv.is_last else self.conv.chain.output_zero_point(self.conv.number)

    @property
    def sums_windows(self) -> bool:
        """Whether it sums windows, for the zero point of its filter."""
        return self.form.sums_words and self.conv.filter_zero != 0

    @property
    def channels(self) -> int:
        """The output channels, rounded up to whole blocks of 32."""
        return whole_channels(self.conv.spec.out_channels)

    @property
    def columns(self) -> int:
        """The stored columns of its target."""
        return self.target.padded[2]

    def source_cache(self, operands: StepOperands) -> FlatCache:
        """Return the cache that a step reads."""
        return FlatCache.of(self.source.layout, operands.source.buffer, operands.source.origin)

    def source_row(self, operands: StepOperands, y: tirx.Expr, rh: tirx.Expr) -> tirx.Expr:
        """Return the row of the source cache that a row of taps reads for row `y` of a step."""
        source = operands.source
        return in_ring(source, source.first + y * self.conv.spec.stride[0] + rh * self.conv.spec.dilation[0])

    def source_column(self, x: tirx.Expr, rw: tirx.Expr) -> tirx.Expr:
        """Return the column of the source cache that a tap reads for a stored column of the target."""
        return x * self.conv.spec.stride[1] + rw * self.conv.spec.dilation[1]

    def filter_cache(self, operands: StepOperands) -> FlatCache:
        """Return the filter cache of a step."""
        return FlatCache.of(self.conv.filter[0], operands.filter, operands.filter_origin)

    def target_places(self, step: ConvStep, y: tirx.Expr, x: tirx.Expr, channel: Any) -> list[tuple[Position, Any]]:
        """Return where an element of a step is stored: its position and its element of the buffer.

        Elements whose bytes lie apart have two places, one for each byte.
        """
        place, layout = step.target, self.target.layout
        unit = self.conv.makes.rows
        row = y + place.first * unit if unit > 1 else in_ring(place, place.first + y)
        cache = FlatCache.of(
            layout, place.buffer, place.origin, **({"C": step.most_blocks} if self.conv.is_last else {})
        )
        found = []
        for byte in (0, 1) if has_bytes_apart(layout) else (0,):
            at = Position(0, row, x, channel, tirx.const(byte, "int32"))
            found.append((at, cache.place(at.packed(layout, byte))))
        return found


def scalar_inner(conv: RowConv, arguments: Arguments) -> ScalarInner:
    """Collect what scalar code knows of a conv of a nest of rows."""
    form, scope = conv.form, conv.plan.scope("filters")
    assert isinstance(form, ScalarForm)
    scratch = [
        tirx.decl_buffer((elements,), dtype, numbered(what, conv.number), scope=scope)
        for what, _, dtype, elements in form.scratch()
    ]
    source, target = Stored(conv.source, conv.reads.layout), Stored(conv.target, conv.makes.layout)
    return ScalarInner(conv, form, source, target, _operands(conv.number, arguments), next(iter(scratch), None))


def _operands(number: int, arguments: Arguments) -> ConvOperands:
    """Return the arguments of the function beside the filter of conv `number`: bias, requantisation, table."""
    named = {what: arguments.get(numbered(what, number)) for what in UNCACHED}
    vectors = {what: buffer for what, buffer in named.items() if buffer is not None}
    return ConvOperands(vectors.pop("bias", None), vectors, lookup_place)
