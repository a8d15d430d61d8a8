"""The parts that a layout is made of: logical axes, digits of an index, and coordinates of the store.

Every layout of this package writes each of its coordinates as

    coordinate[o] = base[o] + unit[o] * sum of stride * (((x[axis] + shift[axis]) // divisor) % modulus)

over the digits that go to output `o`. Each term looks at one axis alone, which is why addresses of a whole
tensor are a sum of small tables, and why one set of functions serves packed tensors, blocked tags, images
and NPUs.
"""

from dataclasses import dataclass
from typing import Any


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
    """

    axis: str
    output: str
    divisor: int = 1
    modulus: int | None = None
    stride: int = 1

    def of(self, index: Any) -> Any:
        """The value of the digit for an index that has the axis's shift added: integer, array or expression."""
        quotient = index if self.divisor == 1 else index // self.divisor
        return quotient if self.modulus is None else quotient % self.modulus

    def count(self, span: int) -> int:
        """How many values the digit takes over indices 0 .. span - 1.

        >>> Digit("c", "co", divisor=32).count(33), Digit("c", "ci", modulus=32).count(5)
        (2, 5)
        """
        values = -(-span // self.divisor)
        return values if self.modulus is None else min(values, self.modulus)
