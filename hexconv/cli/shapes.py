"""Reads sizes of inputs that a model leaves open from a command line."""

from collections.abc import Sequence

from hexconv.errors import InputError
from hexconv.spec.fields import LARGEST_SIZE


def stated_shapes(command: str, texts: Sequence[str]) -> dict[str, list[int]]:
    """Return the sizes of inputs by their names, from options `--shape NAME=1,3,224,224`.

    Raises:
        InputError: an option has another form, or a size out of range.
    """
    return dict(_stated(command, text) for text in texts)


def _stated(command: str, text: str) -> tuple[str, list[int]]:
    """Return the name and the sizes in `NAME=1,3,224,224`."""
    name, equals, sizes = text.rpartition("=")
    numbers = [int(size) if size.strip().isdecimal() else 0 for size in sizes.split(",")]
    if not equals or not name or not all(0 < number <= LARGEST_SIZE for number in numbers):
        raise InputError(f"{command}: --shape", repr(text), f"NAME=1,3,224,224, sizes of 1 to {LARGEST_SIZE}")
    return name, numbers
