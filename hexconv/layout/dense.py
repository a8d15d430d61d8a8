"""Layouts of plain dense buffers: one offset, axes in a given order."""

from collections.abc import Sequence
from math import prod

from hexconv.errors import InputError
from hexconv.layout.digit import Axis, Digit, Output
from hexconv.layout.layout import Layout


def dense(order: str, shape: Sequence[int], *, itemsize_bytes: int = 4) -> Layout:
    """Row-major buffer of the axes in `order`, which is the logical order too; one output, `offset_elements`.

    Raises:
        InputError: the shape doesn't have as many sizes as the order has axes.

    >>> dense("NCHW", (1, 2, 3, 4)).address((0, 1, 2, 3))
    {'offset_elements': 23}
    """
    if len(shape) != len(order):
        raise InputError(f"buffer {order}: shape", f"{len(shape)} sizes", f"{len(order)} sizes: {','.join(order)}")
    return Layout(
        name=order,
        axes=tuple(Axis(letter, size) for letter, size in zip(order, shape, strict=True)),
        outputs=(Output("offset_elements", prod(shape)),),
        digits=tuple(Digit(letter, "offset_elements", stride=prod(shape[k + 1 :])) for k, letter in enumerate(order)),
        itemsize_bytes=itemsize_bytes,
    )
