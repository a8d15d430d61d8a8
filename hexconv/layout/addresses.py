"""Turn a logical index into a place: of one element with plain integers, of many with numpy."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.layout.digit import Axis
from hexconv.layout.digits import Digits
from hexconv.layout.limits import check_array


def coordinates(layout: Digits, index: Sequence[Any]) -> dict[str, Any]:
    """The coordinates of an index, by the names of the outputs, with base and unit applied."""
    steps = element_steps(layout, _checked(layout, index))
    return {o.name: o.base + o.unit * step for o, step in zip(layout.outputs, steps, strict=True)}


def position(layout: Digits, index: Sequence[Any]) -> Any:
    """The row-major offset of an index in the store, in elements."""
    return row_major(layout, element_steps(layout, _checked(layout, index)))


def positions(layout: Digits) -> NDArray[np.int64]:
    """The row-major offset of every element in the store, as an array of the tensor's shape."""
    check_array(f"{layout.name}: a table of {list(layout.shape)}", layout.logical_elements, 8)
    terms = [
        table.reshape([-1 if other is axis else 1 for other in layout.axes])
        for axis in layout.axes
        for table in [row_major(layout, _tables(layout, axis))]
    ]
    return reduce(np.add, terms, np.zeros([1] * len(layout.axes), np.int64))


def element_steps(layout: Digits, index: Sequence[Any]) -> list[Any]:
    """The element steps of an index from each output's base: integers for integers, arrays for arrays."""
    return [_along(layout, output.name, index) for output in layout.outputs]


def row_major(layout: Digits, steps: Sequence[Any]) -> Any:
    """Join coordinates in elements into one offset: the store is a dense array of `physical_shape`."""
    offset: Any = 0
    for extent, step in zip(layout.physical_shape, steps, strict=True):
        offset = offset * extent + step
    return offset


def _along(layout: Digits, output: str, index: Sequence[Any]) -> Any:
    """Sum the terms that go to one output; an axis that many points share is looked up in a table."""
    total: Any = 0
    for axis, x in zip(layout.axes, index, strict=True):
        terms = [d for d in layout.digits if d.axis == axis.name and d.output == output]
        if not terms:
            continue
        if isinstance(x, np.ndarray) and x.size > axis.size:
            total = total + _table(axis, terms)[x]
        else:
            total = total + sum(d.stride * d.of(x + axis.shift) for d in terms)
    return total


def _tables(layout: Digits, axis: Axis) -> list[NDArray[np.int64]]:
    """For each output, the table of what each index of one axis adds to its coordinate."""
    return [
        _table(axis, [d for d in layout.digits if d.axis == axis.name and d.output == o.name]) for o in layout.outputs
    ]


def _table(axis: Axis, terms: Sequence[Any]) -> NDArray[np.int64]:
    """The table of what each index of an axis adds to one coordinate."""
    shifted = np.arange(axis.shift, axis.shift + axis.size, dtype=np.int64)
    return sum((d.stride * d.of(shifted) for d in terms), np.zeros(axis.size, np.int64))


def _checked(layout: Digits, index: Sequence[Any]) -> list[Any]:
    """Check an index and return it as integers or int64 arrays; it must lie inside of the shape."""
    if len(index) != len(layout.axes):
        names = ",".join(axis.name for axis in layout.axes)
        raise InputError(f"{layout.name}: index", f"{len(index)} numbers", f"{len(layout.axes)} of them: {names}")
    return [_inside(layout, axis, x) for axis, x in zip(layout.axes, index, strict=True)]


def _inside(layout: Digits, axis: Axis, x: Any) -> Any:
    """Check one axis's part of an index; plain integers stay plain, so that they never overflow."""
    whole = int(x) if isinstance(x, int | np.integer) else np.asarray(x, dtype=np.int64)
    low, high = (whole, whole) if isinstance(whole, int) else (whole.min(initial=0), whole.max(initial=-1))
    if low < 0 or high >= axis.size:
        bad = low if low < 0 else high
        raise InputError(
            f"{layout.name}: index along {axis.name}",
            str(bad),
            f"0 to {axis.size - 1} (shape {list(layout.shape)})",
        )
    return whole
