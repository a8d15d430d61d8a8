"""See what a storage mode joins as units: int8 in the 4N mode is int8x4 of shape (ceil(n / 4), c, h, w)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hexconv.layout.okk.modes import MODES
from hexconv.layout.okk.strides import Shape


class View(NamedTuple):
    """The same memory of a tensor under another shape and type.

    Attributes:
        shape: its four sizes.
        dtype: its type, `int8x4`, `uint16x2`, `float32x2`, or a plain one.
    """

    shape: Shape
    dtype: str


def unit_view(name: str, shape: Sequence[int], dtype: str) -> View:
    """The view of a tensor as units of a storage mode; strides are counted in units.

    >>> unit_view("4n", (6, 5, 4, 5), "int8")
    View(shape=(2, 5, 4, 5), dtype='int8x4')
    """
    joined, (n, c, h, w) = MODES[name].joined, shape
    return View((-(-n // joined), c, h, w), f"{dtype}x{joined}")


def join_units(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Join the elements of an array into units, as unsigned numbers of the unit's width; missing elements are 0.

    Args:
        name: `4n`, `2n` or `2ic`.
        array: (n, c, h, w) of 1, 2 or 4 bytes an element; for 2ic (i, o, h, w).

    Returns:
        (ceil(n / joined), c, h, w) of uint32, for 2ic of uint64; the first element has the lowest bits.
    """
    joined = MODES[name].joined
    whole = np.pad(array, [(0, -array.shape[0] % joined), (0, 0), (0, 0), (0, 0)])
    grouped = np.moveaxis(whole.reshape(-1, joined, *array.shape[1:]), 1, -1)
    return np.ascontiguousarray(grouped).view(_unit(name))[..., 0]


def split_units(units: NDArray[Any], first: int, dtype: str) -> NDArray[Any]:
    """The first `first` elements along n (2ic: along i) that units hold; undoes `join_units`."""
    elements = np.moveaxis(np.ascontiguousarray(units)[..., None].view(dtype), -1, 1)
    return elements.reshape(-1, *units.shape[1:])[:first]


def _unit(name: str) -> np.dtype[Any]:
    mode = MODES[name]
    return np.dtype(f"<u{mode.joined * mode.itemsize_bytes}")
