"""Write the digits of a layout as expressions, for compilers or anything else that has `+ * // %`."""

from collections.abc import Mapping, Sequence
from typing import Any

from hexconv.errors import InputError, Unsupported
from hexconv.layout.digit import Digit
from hexconv.layout.digits import Digits


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
