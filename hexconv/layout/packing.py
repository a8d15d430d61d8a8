"""Moving numpy arrays into a layout's store and back.

A layout whose digits nest is a strided view of its store with one view axis per digit: packing is one
assignment, as fast as numpy's own transpose. Any other layout goes through its table of positions.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.layout.addresses import positions, row_major
from hexconv.layout.digit import Axis, Digit, Output
from hexconv.layout.digits import Digits
from hexconv.layout.limits import check_array

Link = tuple[Digit, int]
"""A digit and how many values it takes, padding included."""


@dataclass(frozen=True)
class DigitView:
    """A store seen with one axis per digit.

    Attributes:
        counts: values of each digit, grouped by logical axis, most significant first.
        strides_elements: the stride of each digit in the store, in elements.
        padded_shape: per logical axis, what its digits count to.
        inside: the slices of the padded shape in which the tensor lies.
    """

    counts: tuple[int, ...]
    strides_elements: tuple[int, ...]
    padded_shape: tuple[int, ...]
    inside: tuple[slice, ...]

    def of(self, store: NDArray[Any]) -> NDArray[Any]:
        """View a store with one axis per digit; the view is writable where the store is."""
        return as_strided(store, self.counts, [s * store.itemsize for s in self.strides_elements])


def digit_view(layout: Digits) -> DigitView | None:
    """The view of a layout, or None where digit values would meet each other or leave the store."""
    chains = [_chain(layout, axis) for axis in layout.axes]
    links = [link for chain in chains for link in chain]
    if not all(_fits(links, output) for output in layout.outputs):
        return None
    steps = [[d.stride * (d.output == output.name) for output in layout.outputs] for d, _ in links]
    return DigitView(
        counts=tuple(count for _, count in links),
        strides_elements=tuple(row_major(layout, step) for step in steps),
        padded_shape=tuple(prod(count for _, count in chain) for chain in chains),
        inside=tuple(slice(axis.shift, axis.shift + axis.size) for axis in layout.axes),
    )


def pack(layout: Digits, view: DigitView | None, array: NDArray[Any], fill: Any) -> NDArray[Any]:
    """Move a logical array into a new store of `physical_shape`, its padding filled."""
    check_shape(layout, "logical array", array.shape, layout.shape)
    check_array(f"{layout.name}: a store for {list(layout.shape)}", layout.elements, array.itemsize)
    if not array.size:
        return np.full(layout.physical_shape, fill, array.dtype)
    if view is None:
        store = np.full(layout.physical_shape, fill, array.dtype)
        store.reshape(-1)[positions(layout)] = array
        return store
    # Without padding every element is written: no fill needed.
    full = layout.elements == layout.logical_elements
    store = np.empty(layout.physical_shape, array.dtype)
    if not full:
        store[...] = fill
    view.of(store)[...] = _padded(layout, view, array, fill).reshape(view.counts)
    return store


def unpack(layout: Digits, view: DigitView | None, store: NDArray[Any]) -> NDArray[Any]:
    """Move a store into a new logical array."""
    if store.shape != (layout.elements,):
        check_shape(layout, "store", store.shape, layout.physical_shape)
    check_array(f"{layout.name}: an array of {list(layout.shape)}", layout.logical_elements, store.itemsize)
    if not layout.logical_elements:
        return np.empty(layout.shape, store.dtype)
    dense = np.ascontiguousarray(store)
    if view is None:
        return dense.reshape(-1)[positions(layout)]
    array = view.of(dense).reshape(view.padded_shape)[view.inside]
    return array.copy() if np.may_share_memory(array, store) else np.ascontiguousarray(array)


def _chain(layout: Digits, axis: Axis) -> list[Link]:
    """The digits of an axis with their counts, most significant first.

    A lower digit always counts to its modulus: with 5 channels in blocks of 32 the view still steps over 32.
    """
    span = axis.size + axis.shift
    digits = layout.digits_of(axis=axis.name)
    return [(d, d.count(span) if k == 0 else (d.modulus or 1)) for k, d in enumerate(digits)]


def _fits(links: list[Link], output: Output) -> bool:
    """Whether the digits of one output nest, counted to the end, and stay inside of its extent."""
    reach = 0
    for stride, count in sorted((d.stride, count) for d, count in links if d.output == output.name and count > 1):
        if stride <= reach:
            return False
        reach += stride * (count - 1)
    return reach < output.extent


def _padded(layout: Digits, view: DigitView, array: NDArray[Any], fill: Any) -> NDArray[Any]:
    """The logical array, padded as far as its digits count."""
    if view.padded_shape == array.shape:
        return array
    check_array(f"{layout.name}: padding {list(layout.shape)}", prod(view.padded_shape), array.itemsize)
    whole = np.full(view.padded_shape, fill, array.dtype)
    whole[view.inside] = array
    return whole


def check_shape(layout: Digits, what: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Refuse an array, or a tensor, of another shape."""
    if given != wanted:
        raise InputError(f"{layout.name}: {what}", str(list(given)), f"{list(wanted)}")
