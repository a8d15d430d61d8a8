"""What a layout is made of: the axes of a tensor, the coordinates of its store, and the digits between them."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

from hexconv.layout.digit import Axis, Digit, Output


@dataclass(frozen=True)
class Digits:
    """Axes, outputs and digits of a layout, and the figures that follow from them alone.

    Attributes:
        name: what the layout is called, for messages and pictures.
        axes: logical dimensions, in logical order.
        outputs: coordinates of the store, slowest first; their extents are the shape of a packed array.
        digits: the terms of the coordinates (see `hexconv.layout.digit`).
        itemsize_bytes: bytes of an element.
        line_outputs: how many of the last outputs a line of a picture runs along; 2 for pixels and their
            lanes.
    """

    name: str
    axes: tuple[Axis, ...]
    outputs: tuple[Output, ...]
    digits: tuple[Digit, ...]
    itemsize_bytes: int = 4
    line_outputs: int = 1

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Logical sizes."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def physical_shape(self) -> tuple[int, ...]:
        """Sizes of the store, padding included."""
        return tuple(output.extent for output in self.outputs)

    @property
    def logical_elements(self) -> int:
        """Elements that the tensor has."""
        return prod(self.shape)

    @property
    def elements(self) -> int:
        """Elements that the store has room for."""
        return prod(self.physical_shape)

    @property
    def bytes(self) -> int:
        """Bytes to allocate."""
        return self.elements * self.itemsize_bytes

    def axis(self, name: str) -> Axis:
        """The logical axis of that name."""
        return next(axis for axis in self.axes if axis.name == name)

    def digits_of(self, *, axis: str | None = None, output: str | None = None) -> tuple[Digit, ...]:
        """The digits of an axis, most significant first, or of an output, in the order in which they were given."""
        if axis is not None:
            own = (d for d in self.digits if d.axis == axis)
            # A block of 1 has the divisor of the digit above it.
            return tuple(sorted(own, key=lambda d: (-d.divisor, d.modulus == 1)))
        return tuple(d for d in self.digits if d.output == output)

    def values(self, digit: Digit) -> int:
        """How many values a digit takes, including those that the axis's shift leaves empty."""
        axis = self.axis(digit.axis)
        return digit.count(axis.size + axis.shift)

    def falling(self, output: str) -> list[Digit]:
        """The digits of an output that take more than one value, longest stride first."""
        return sorted((d for d in self.digits_of(output=output) if self.values(d) > 1), key=lambda d: -d.stride)

    @cached_property
    def nested(self) -> bool:
        """Whether every coordinate is a mixed-radix number, so that it can be taken apart digit by digit.

        Along every output, each stride is longer than all smaller digits can reach together.
        """
        return all(self._nested_along(output.name) for output in self.outputs)

    def _nested_along(self, output: str) -> bool:
        reach = 0
        for digit in reversed(self.falling(output)):
            if digit.stride <= reach:
                return False
            reach += digit.stride * (self.values(digit) - 1)
        return True
