"""Place to logical index, and whether two elements share a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hexconv.errors import InputError, Unsupported
from hexconv.layout.addresses import positions, row_major
from hexconv.layout.digit import Digit

if TYPE_CHECKING:
    from hexconv.layout.layout import Layout

Owner = tuple[NDArray[np.int64], NDArray[np.bool_]]


def is_nested(layout: Layout) -> bool:
    """Whether, along every output, each stride is longer than all smaller digits can reach together."""
    return all(_nested_along(layout, output.name) for output in layout.outputs)


def falling(layout: Layout, output: str) -> list[Digit]:
    """Digits of an output that take more than one value, longest stride first."""
    return sorted((d for d in layout.digits_of(output=output) if values(layout, d) > 1), key=lambda d: -d.stride)


def values(layout: Layout, digit: Digit) -> int:
    """How many values a digit takes, the shift's empty ones included."""
    axis = layout.axis(digit.axis)
    return digit.count(axis.size + axis.shift)


def owner(layout: Layout, coordinates: Sequence[ArrayLike]) -> Owner:
    """Logical indices (..., rank) and whether an element lives there."""
    steps, reachable = _steps(layout, coordinates)
    found, held = _by_digits(layout, steps) if layout.nested else _by_table(layout, steps)
    held = held & reachable
    return np.where(held[..., None], found, -1), held


def collision(layout: Layout) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two indices of one place, or None; a nested layout has none, any other is enumerated."""
    if layout.nested or layout.logical_elements < 2:
        return None
    flat = positions(layout).ravel()
    order = np.argsort(flat, kind="stable")
    twice = np.flatnonzero(np.diff(flat[order]) == 0)
    if not twice.size:
        return None
    pair = np.unravel_index(order[twice[0] : twice[0] + 2], layout.shape)
    return tuple(int(x[0]) for x in pair), tuple(int(x[1]) for x in pair)


def _nested_along(layout: Layout, output: str) -> bool:
    reach = 0
    for digit in reversed(falling(layout, output)):
        if digit.stride <= reach:
            return False
        reach += digit.stride * (values(layout, digit) - 1)
    return True


def _steps(layout: Layout, coordinates: Sequence[ArrayLike]) -> tuple[list[Any], NDArray[np.bool_]]:
    """Coordinates as element steps from their bases, and which of them an element can start at."""
    if len(coordinates) != len(layout.outputs):
        names = ",".join(output.name for output in layout.outputs)
        raise InputError(
            f"{layout.name}: coordinates", f"{len(coordinates)} numbers", f"{len(layout.outputs)}: {names}"
        )
    away = [np.asarray(c, np.int64) - o.base for o, c in zip(layout.outputs, coordinates, strict=True)]
    away = np.broadcast_arrays(*away) if away else [np.zeros((), np.int64)]
    fits = [(a % o.unit == 0) & (a >= 0) & (a < o.extent * o.unit) for o, a in zip(layout.outputs, away, strict=False)]
    steps = [a // o.unit for o, a in zip(layout.outputs, away, strict=False)]
    return steps, np.all(fits, axis=0) if fits else np.ones((), np.bool_)


def _by_digits(layout: Layout, steps: Sequence[Any]) -> Owner:
    """Take every coordinate apart, longest stride first, and put the indices together."""
    place = np.shape(steps[0]) if steps else ()
    index = {axis.name: np.full(place, -axis.shift, np.int64) for axis in layout.axes}
    held = np.ones(place, np.bool_)
    for output, rest in zip(layout.outputs, steps, strict=True):
        for digit in falling(layout, output.name):
            value, rest = np.divmod(rest, digit.stride)
            held &= value < values(layout, digit)
            index[digit.axis] += value * digit.divisor
        held &= rest == 0
    for axis in layout.axes:
        held &= (index[axis.name] >= 0) & (index[axis.name] < axis.size)
    return np.stack([*index.values()], axis=-1) if index else np.zeros((*place, 0), np.int64), held


def _by_table(layout: Layout, steps: Sequence[Any]) -> Owner:
    """Look the place up among the places of all elements: strides that interleave allow nothing quicker."""
    shared = collision(layout)
    if shared:
        raise Unsupported(
            f"{layout.name} has no inverse: elements {list(shared[0])} and {list(shared[1])} share an address"
        )
    flat = positions(layout).ravel()
    order = np.argsort(flat, kind="stable")
    wanted = row_major(layout, steps)
    slot = np.searchsorted(flat, wanted, sorter=order)
    found = order[np.minimum(slot, max(0, flat.size - 1))] if flat.size else np.zeros(np.shape(wanted), np.int64)
    held = (flat[found] == wanted) if flat.size else np.zeros(np.shape(wanted), np.bool_)
    return np.stack(np.unravel_index(found, [max(1, s) for s in layout.shape]), axis=-1).astype(np.int64), held
