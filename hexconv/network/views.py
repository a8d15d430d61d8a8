"""Tensors that only move: where the elements of a model's tensor lie in memory, as strides, until a step copies them.

Reshape -> Transpose -> Reshape -> Slice  =  one loop nest over places

Transposes, slices and reshapes change strides alone. A step is needed where an operator or a chain reads elements in
a layout of its own; it loops over the places of the source and of the result.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hexconv.network.program_steps import NCHW, NHWC, Dimension, Operand, extents_of
from hexconv.run.tensors import Array

Loop = tuple[int, int, int]
"""Size, step of the source, step of the result."""


@dataclass(frozen=True)
class Placed:
    """A tensor of the model in the memory of an operand.

    Attributes:
        operand: the memory, and what its elements stand for.
        base: as many bytes as the memory has elements, which stand for their places; nothing reads or writes them.
        places: a view of the base in the model's shape.
    """

    operand: Operand
    base: Array
    places: Array

    @classmethod
    def of(cls, operand: Operand, shape: tuple[int, ...]) -> "Placed":
        """Place a tensor of the model: NCHW in any shape, as an operand in NHWC or NCHW lays it out."""
        base = np.empty(prod(operand.extents), np.uint8)
        batch, rows, columns, channels = operand.extents
        if operand.layout == NCHW:
            places = base.reshape(batch, channels, rows, columns)
        else:
            places = base.reshape(batch, rows, columns, channels).transpose(0, 3, 1, 2)
        return cls(operand, base, places.reshape(shape, copy=False))

    @property
    def first(self) -> int:
        """The place of the first element."""
        return self.places.ctypes.data - self.base.ctypes.data

    def moved(self, places: Array) -> "Placed":
        """Return another view of the same memory."""
        return replace(self, places=places)

    def reshaped(self, shape: tuple[int, ...]) -> "Placed | None":
        """Return the same elements in another shape; None if no strides tell their places."""
        try:
            return self.moved(self.places.reshape(shape, copy=False))
        except ValueError:
            return None

    @property
    def as_it_lies(self) -> Operand | None:
        """The operand that lies as the tensor does, all of it in one of the layouts; None if there is none.

        Memory is seen under other extents, or in another layout, only where its elements are in the order of NCHW, or
        where rows and columns alone are joined or parted.
        """
        shape = self.places.shape
        if prod(shape) != self.base.size or self.first != 0:
            return None
        for layout in (NHWC, NCHW):
            operand = replace(self.operand, extents=extents_of(shape), layout=layout)
            is_same = (operand.extents, layout) == (self.operand.extents, self.operand.layout)
            ends = [(each.layout, each.extents[0], each.extents[3]) for each in (operand, self.operand)]
            is_seen_so = is_same or (operand.is_flat and self.operand.is_flat) or ends[0] == ends[1]
            if is_seen_so and _same(Placed.of(operand, shape).places, self.places):
                return operand.reshaped(operand.extents) if layout == NCHW else operand
        return None


def _same(one: Array, other: Array) -> bool:
    """Whether two views of one shape have the same strides where there is more than one element."""
    return all(size == 1 or one.strides[at] == other.strides[at] for at, size in enumerate(one.shape))


def loops(source: Placed, result: Placed, tables: dict[int, str] | None = None) -> tuple[Dimension, ...]:
    """Return the loops that copy a source to a result of the same shape, as few as can be, in the order of the result.

    Args:
        source: the tensor that is read.
        result: the tensor that is written.
        tables: for some axes the name of a constant with the source's places, instead of its strides.
    """
    named = tables or {}
    axes = sorted(range(source.places.ndim), key=lambda at: -abs(result.places.strides[at]))
    made = list[Dimension]()
    for at in axes:
        size = result.places.shape[at]
        own = Dimension(size, source.places.strides[at], result.places.strides[at], named.get(at, ""))
        if size == 1 and not own.places:
            continue
        last = made[-1] if made else None
        joins = last and not (last.places or own.places)
        if joins and last and (last.source_step, last.result_step) == (own.source_step * size, own.result_step * size):
            made[-1] = replace(own, size=last.size * size)
        else:
            made.append(own)
    return tuple(made) or (Dimension(1, 0, 0),)
