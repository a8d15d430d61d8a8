"""A layout: a function from logical index to place in a store, its inverse, and moving arrays through it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hexconv.hashed import hashed_once
from hexconv.layout import addresses, inverse, packing, symbolic
from hexconv.layout.digits import Digits
from hexconv.layout.limits import check_digits, check_sizes


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
    def digit_view(self) -> packing.DigitView | None:
        """The store seen with one axis per digit; None where the layout isn't regular enough for that."""
        return packing.digit_view(self)

    def address(self, index: Sequence[Any]) -> dict[str, Any]:
        """The coordinates of one element, or of many at once.

        Args:
            index: one integer per axis, or one integer array per axis (they broadcast).

        Returns:
            The coordinates by the names of the outputs, base included. No array of the tensor's size is allocated.

        Raises:
            InputError: the rank doesn't fit, or an index lies outside of the shape.
        """
        return addresses.coordinates(self, index)

    def position(self, index: Sequence[Any]) -> Any:
        """The row-major offset of an index in the store (`physical_shape`), in elements, bases not counted."""
        return addresses.position(self, index)

    def positions(self) -> NDArray[np.int64]:
        """`position` of every element, as an array of the logical shape."""
        return addresses.positions(self)

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
        return inverse.owner(self, coordinates)

    def collision(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two indices that share an address, or None when the layout is injective."""
        return inverse.collision(self)

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
        return packing.pack(self, self.digit_view, np.asarray(array), fill)

    def unpack(self, array: ArrayLike) -> NDArray[Any]:
        """Move a store (of `physical_shape`, or flat) back into a logical array."""
        return packing.unpack(self, self.digit_view, np.asarray(array))

    def reorder(self, array: ArrayLike, target: "Layout", fill: Any = 0) -> NDArray[Any]:
        """Move a store of this layout into a new store of another layout of the same logical shape."""
        packing.check_shape(target, f"shape of {self.name}", self.shape, target.shape)
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
        return symbolic.physical_index(self, index)

    def logical_index(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The logical index as expressions of the coordinates (no bases); in the padding it lies past the shape."""
        return symbolic.logical_index(self, indices)
