"""What a layout is made of: axes of a tensor, coordinates of its store, the digits between them, and limits of sizes.

Every layout of this package writes each of its coordinates as

    coordinate[o] = base[o] + unit[o] * sum of stride * (((x[axis] + shift[axis]) // divisor) % modulus)

over the digits that go to output `o`. Each term looks at one axis alone, which is why addresses of a whole
tensor are a sum of small tables, and why one set of functions serves packed tensors, blocked tags, images
and NPUs.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from hexconv.errors import InputError, Unsupported


@dataclass(frozen=True)
class Axis:
    """A logical dimension.

    Attributes:
        name: its letter, which no other axis of the layout has.
        size: how many logical elements lie along it; 0 makes the tensor empty.
        shift: the number added to the index before any digit is taken: channels of a tensor that starts at NPU 3 shift
            by 3.
    """

    name: str
    size: int
    shift: int = 0


@dataclass(frozen=True)
class Output:
    """A coordinate of the store.

    Attributes:
        name: the name of what it counts: a physical axis, `offset`, `x`, `npu`, `byte`.
        extent: how many elements the store holds along it, padding included.
        base: the number added to the coordinate, such as the address that the tensor starts at; not part of the store.
        unit: what one element step adds to the coordinate: the itemsize for a byte address, else 1.
    """

    name: str
    extent: int
    base: int = 0
    unit: int = 1


@dataclass(frozen=True)
class Digit:
    """One digit of one axis's index, and where it goes.

    Attributes:
        axis: the name of the logical axis.
        output: the name of the coordinate that it adds to.
        divisor: logical elements that one step of the digit stands for.
        modulus: how many values the digit has before it wraps; None for the leading digit, which never wraps.
        stride: elements of the store that one step of the digit moves along its output.
        kept: how many of its values have room in the store; None for all.
    """

    axis: str
    output: str
    divisor: int = 1
    modulus: int | None = None
    stride: int = 1
    kept: int | None = None

    def of(self, index: Any) -> Any:
        """The value of the digit for an index that has the axis's shift added: integer, array or expression."""
        quotient = index if self.divisor == 1 else index // self.divisor
        return quotient if self.modulus is None else quotient % self.modulus

    def count(self, span: int) -> int:
        """How many values that are kept the digit takes over indices 0 .. span - 1.

        >>> Digit("c", "co", divisor=32).count(33), Digit("c", "ci", modulus=32).count(5)
        (2, 5)
        """
        values = -(-span // self.divisor)
        return min(most for most in (values, self.modulus, self.kept) if most is not None)


@dataclass(frozen=True)
class Digits:
    """Axes, outputs and digits of a layout, and the figures that follow from them alone.

    Attributes:
        name: what the layout is called, for messages and pictures.
        axes: logical dimensions, in logical order.
        outputs: coordinates of the store, slowest first; their extents are the shape of a packed array.
        digits: the terms of the coordinates (see `hexconv.layout.digits`).
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


MAX_ADDRESS = 2**62
"""The largest address; addresses are signed 64-bit integers, and one bit is left for sums."""

MAX_ARRAY_BYTES = 2**33
"""The largest array that a request may allocate (8 GiB); the address of one element needs no array."""


def check_sizes(layout: Digits) -> None:
    """Refuse sizes that are not whole numbers, or that 64-bit addresses don't reach."""
    for part, size in [(a.name, a.size) for a in layout.axes] + [(o.name, o.extent) for o in layout.outputs]:
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise InputError(f"{layout.name}: size of {part}", repr(size), "whole numbers from 0 on")
    room = max(layout.bytes, prod(max(1, size) for size in layout.shape))
    if room > MAX_ADDRESS:
        raise InputError(
            f"{layout.name}: shape",
            f"{list(layout.shape)} ({room} bytes)",
            f"tensors of up to {MAX_ADDRESS} bytes",
        )


def check_digits(layout: Digits) -> None:
    """Check that digits determine the index and name known axes and outputs; a failure is a mistake of the program."""
    axes, outputs = ({part.name for part in parts} for parts in (layout.axes, layout.outputs))
    assert len(axes) == len(layout.axes), f"{layout.name}: an axis is named twice"
    assert len(outputs) == len(layout.outputs), f"{layout.name}: an output is named twice"
    for digit in layout.digits:
        assert digit.axis in axes, f"{layout.name}: {digit} has no axis"
        assert digit.output in outputs, f"{layout.name}: {digit} has no output"
    for axis in layout.axes:
        _check_chain(layout, axis.name, axis.size + axis.shift)


def _check_chain(layout: Digits, axis: str, span: int) -> None:
    """Check that an axis's digits form a mixed-radix number: each divisor is what the digits below count to."""
    reached = 1
    for digit in reversed(layout.digits_of(axis=axis)):
        assert digit.divisor == reached, f"{layout.name}: digits of {axis} leave a gap at {reached}"
        reached = reached * digit.modulus if digit.modulus else max(span, reached)
    assert reached >= span, f"{layout.name}: digits of {axis} count to {reached}, the axis to {span}"


def check_array(what: str, elements: int, itemsize: int) -> None:
    """Refuse an array that would take more than `MAX_ARRAY_BYTES`.

    Raises:
        Unsupported: the array is too large; the text has both sizes.
    """
    if elements * itemsize > MAX_ARRAY_BYTES:
        raise Unsupported(
            f"{what} takes {elements * itemsize} bytes, arrays are made up to {MAX_ARRAY_BYTES}; "
            "ask for the address of single elements, or for a smaller shape"
        )
