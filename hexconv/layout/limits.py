"""The limits of a layout's sizes, which are checked before anything is allocated."""

from math import prod

from hexconv.errors import InputError, Unsupported
from hexconv.layout.digits import Digits

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
