"""A layout: logical index to place in a store, its inverse, as arithmetic or expressions; moving arrays.

A layout whose digits nest is a strided view of its store with one view axis per digit: packing is one
assignment, as fast as numpy's own transpose. Any other layout goes through its table of positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from hexconv.errors import InputError, Unsupported
from hexconv.hashed import hashed_once
from hexconv.layout.digits import Axis, Digit, Digits, Output, check_array, check_digits, check_sizes


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


def physical_index(layout: Digits, index: Mapping[str, Any]) -> tuple[Any, ...]:
    """The place of an index: one expression per output, in element steps.

    `index` has one expression per lower-case axis letter.
    """
    names = [axis.name.lower() for axis in layout.axes]
    if sorted(index) != sorted(names):
        raise InputError(f"{layout.name}: index letters", ", ".join(sorted(index)) or "none", ", ".join(names))
    return tuple(_sum_of_digits(layout, output.name, index) for output in layout.outputs)


def logical_index(layout: Digits, indices: Sequence[Any]) -> tuple[Any, ...]:
    """The index at a place: one expression per axis, out of one per output in element steps.

    Raises:
        InputError: there are not as many indices as outputs.
        Unsupported: strides interleave, so that no digit can be cut out of a coordinate.
    """
    if len(indices) != len(layout.outputs):
        raise InputError(f"{layout.name}: physical indices", str(len(indices)), str(len(layout.outputs)))
    if not layout.nested:
        raise Unsupported(f"{layout.name}: strides interleave, so that no index can be cut out of a coordinate")
    parts = _parts(layout, indices)
    return tuple(_plus(parts[axis.name], -axis.shift) for axis in layout.axes)


def _sum_of_digits(layout: Digits, output: str, index: Mapping[str, Any]) -> Any:
    total: Any = 0
    for digit in layout.digits_of(output=output):
        shifted = _plus(index[digit.axis.lower()], layout.axis(digit.axis).shift)
        total = _plus(total, _times(digit.of(shifted), digit.stride))
    return total


def _parts(layout: Digits, indices: Sequence[Any]) -> dict[str, Any]:
    """For each axis, the sum of its digits times their divisors."""
    parts: dict[str, Any] = {axis.name: 0 for axis in layout.axes}
    for output, rest in zip(layout.outputs, indices, strict=True):
        for digit in _cut(layout, output.name):
            value = rest if digit.stride == 1 else rest // digit.stride
            rest = 0 if digit.stride == 1 else rest % digit.stride
            parts[digit.axis] = _plus(parts[digit.axis], _times(value, digit.divisor))
    return parts


def _cut(layout: Digits, output: str) -> list[Digit]:
    """The digits to cut out of a coordinate; a single digit is the coordinate itself, even when it counts to 1."""
    digits = layout.digits_of(output=output)
    alone = len(digits) == 1 and digits[0].stride == 1
    return list(digits) if alone else layout.falling(output)


def _plus(left: Any, right: Any) -> Any:
    """Add, without the zero that would clutter a printed expression."""
    if isinstance(right, int) and right == 0:
        return left
    return right if isinstance(left, int) and left == 0 else left + right


def _times(value: Any, factor: int) -> Any:
    """Multiply, without the one that would clutter a printed expression."""
    return value if factor == 1 else value * factor


@hashed_once
@dataclass(frozen=True)
class Layout(Digits):
    """Where every element of one tensor lives.

    Raises:
        InputError: a size isn't a whole number from 0 on, or no 64-bit address reaches the whole store.
    """

    def __post_init__(self) -> None:
        check_sizes(self)
        check_digits(self)

    @property
    def waste_bytes(self) -> int:
        """Bytes of the store that no element of the tensor uses."""
        return max(0, self.elements - self.logical_elements) * self.itemsize_bytes

    @property
    def waste(self) -> float:
        """The share of the store that no element uses, 0 .. 1; 0 for an empty store."""
        return self.waste_bytes / self.bytes if self.bytes else 0.0

    @cached_property
    def digit_view(self) -> DigitView | None:
        """The store seen with one axis per digit; None where the layout isn't regular enough for that."""
        return digit_view(self)

    def address(self, index: Sequence[Any]) -> dict[str, Any]:
        """The coordinates of one element, or of many at once.

        Args:
            index: one integer per axis, or one integer array per axis (they broadcast).

        Returns:
            The coordinates by the names of the outputs, base included. No array of the tensor's size is allocated.

        Raises:
            InputError: the rank doesn't fit, or an index lies outside of the shape.
        """
        return coordinates(self, index)

    def position(self, index: Sequence[Any]) -> Any:
        """The row-major offset of an index in the store (`physical_shape`), in elements, bases not counted."""
        return position(self, index)

    def positions(self) -> NDArray[np.int64]:
        """`position` of every element, as an array of the logical shape."""
        return positions(self)

    def owner(self, coordinates: Sequence[ArrayLike]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The inverse: which element lives at these coordinates.

        Args:
            coordinates: one integer or array per output, base included.

        Returns:
            Logical indices, shape (..., rank), and whether there is an element at all: False for padding,
            whose indices are -1.

        Raises:
            Unsupported: elements share addresses, so that there is no inverse.
        """
        return owner(self, coordinates)

    def collision(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two indices that share an address, or None when the layout is injective."""
        return collision(self)

    @property
    def collision_is_certain(self) -> bool:
        """Whether a stride of 0 repeats elements: no store of such a layout has one owner per place."""
        repeats = any(self.values(d) > 1 and d.stride == 0 for d in self.digits)
        return repeats and self.logical_elements > 0

    def pack(self, array: ArrayLike, fill: Any = 0) -> NDArray[Any]:
        """Move a logical array into a new store.

        Args:
            array: the array, of the logical shape; its dtype is kept.
            fill: the value of the padding.

        Returns:
            Array of `physical_shape`.
        """
        return pack(self, self.digit_view, np.asarray(array), fill)

    def unpack(self, array: ArrayLike) -> NDArray[Any]:
        """Move a store (of `physical_shape`, or flat) back into a logical array."""
        return unpack(self, self.digit_view, np.asarray(array))

    def reorder(self, array: ArrayLike, target: "Layout", fill: Any = 0) -> NDArray[Any]:
        """Move a store of this layout into a new store of another layout of the same logical shape."""
        check_shape(target, f"shape of {self.name}", self.shape, target.shape)
        return target.pack(self.unpack(array), fill)

    def renamed(self, names: Sequence[str]) -> "Layout":
        """The same layout with other names of its axes, in logical order."""
        new = dict(zip((axis.name for axis in self.axes), names, strict=True))
        axes = tuple(replace(axis, name=new[axis.name]) for axis in self.axes)
        return replace(self, axes=axes, digits=tuple(replace(digit, axis=new[digit.axis]) for digit in self.digits))

    def in_order(self, names: Sequence[str]) -> "Layout":
        """The same layout with its axes, and so the sizes of its shape, in another logical order.

        >>> from hexconv.layout import packed
        >>> packed("NCHW16c", (1, 20, 4, 5)).in_order("NHWC").shape
        (1, 4, 5, 20)
        """
        return replace(self, axes=tuple(self.axis(name) for name in names))

    def stored_extent(self, axis: str) -> int:
        """Count the elements that the store holds along a logical axis, padding included.

        >>> from hexconv.layout import packed
        >>> layout = packed("NHWC8h8w32c", (1, 12, 30, 40))
        >>> [layout.stored_extent(axis) for axis in "HWC"]
        [16, 32, 64]
        """
        return self._stored_extents[axis]

    @cached_property
    def _stored_extents(self) -> dict[str, int]:
        """`stored_extent` of every axis."""
        places = {axis.name: {digit.output for digit in self.digits if digit.axis == axis.name} for axis in self.axes}
        return {
            axis: prod(output.extent for output in self.outputs if output.name in own) for axis, own in places.items()
        }

    def physical_index(self, **index: Any) -> tuple[Any, ...]:
        """The coordinates of an index as expressions of anything that has `+ * // %`, no bases.

        Args:
            index: one expression per axis, by its lower-case letter: `physical_index(n=n, h=h, w=w, c=c)`.
        """
        return physical_index(self, index)

    def logical_index(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The logical index as expressions of the coordinates (no bases); in the padding it lies past the shape."""
        return logical_index(self, indices)
