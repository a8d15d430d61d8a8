"""Turn a place back into a logical index, and find elements that share a place."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hexconv.errors import InputError, Unsupported
from hexconv.layout.addresses import positions, row_major
from hexconv.layout.digits import Digits

Owner = tuple[NDArray[np.int64], NDArray[np.bool_]]


def owner(layout: Digits, coordinates: Sequence[ArrayLike]) -> Owner:
    """The logical indices (..., rank) at some coordinates, and whether an element lives at each."""
    steps, reachable = _steps(layout, coordinates)
    found, held = _by_digits(layout, steps) if layout.nested else _by_table(layout, steps)
    held = held & reachable
    return np.where(held[..., None], found, -1), held


def collision(layout: Digits) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Two indices that share a place, or None; a nested layout has none, any other layout is enumerated."""
    if layout.nested or layout.logical_elements < 2:
        return None
    flat = positions(layout).ravel()
    order = np.argsort(flat, kind="stable")
    twice = np.flatnonzero(np.diff(flat[order]) == 0)
    if not twice.size:
        return None
    pair = np.unravel_index(order[twice[0] : twice[0] + 2], layout.shape)
    return tuple(int(x[0]) for x in pair), tuple(int(x[1]) for x in pair)


def _steps(layout: Digits, coordinates: Sequence[ArrayLike]) -> tuple[list[Any], NDArray[np.bool_]]:
    """Turn coordinates into element steps from their bases, and tell at which of them an element can start."""
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


def _by_digits(layout: Digits, steps: Sequence[Any]) -> Owner:
    """Cut every coordinate into its digits, longest stride first, and join the digits into indices."""
    place = np.shape(steps[0]) if steps else ()
    index = {axis.name: np.full(place, -axis.shift, np.int64) for axis in layout.axes}
    held = np.ones(place, np.bool_)
    for output, rest in zip(layout.outputs, steps, strict=True):
        for digit in layout.falling(output.name):
            value, rest = np.divmod(rest, digit.stride)
            held &= value < layout.values(digit)
            index[digit.axis] += value * digit.divisor
        held &= rest == 0
    for axis in layout.axes:
        held &= (index[axis.name] >= 0) & (index[axis.name] < axis.size)
    return np.stack([*index.values()], axis=-1) if index else np.zeros((*place, 0), np.int64), held


def _by_table(layout: Digits, steps: Sequence[Any]) -> Owner:
    """Look a place up among the places of all elements; with interleaved strides there is no quicker way."""
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
