"""Index a part of a packed tensor, which lies in a flat buffer, as the tensor is indexed."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tvm import tirx

from hexconv.layout import Layout


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
