"""Quantisation granularity by ONNX's definition: which elements of a tensor share a scale or a zero point.

Shapes and attributes alone decide it, never how many values there are. Of a tensor of shape (D0, D1, ...):

    values                     block_size   granularity
    scalar, or of shape [1]                 per tensor: all elements share one
    [D_axis]                   0            per axis: the elements of a slice along `axis` share one
    D_axis / block_size,       > 0          blocked: `block_size` neighbours along `axis` share one; the last block may
    rounded up, at `axis`,                  be cut short
    other sizes as they are
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.model.refused import Refused

Array = NDArray[Any]
Sizes = Sequence[int | str]
Along = tuple[int, int]
"""The attributes `axis` and `block_size` of a QuantizeLinear or DequantizeLinear."""


def along(attributes: Mapping[str, Any]) -> Along:
    """The axis and the block size of a QuantizeLinear or DequantizeLinear, from its attributes."""
    return int(attributes.get("axis", 1)), int(attributes.get("block_size", 0))


def is_per_tensor(values: Array) -> bool:
    """Whether these scales or zero points are one value for all elements."""
    return values.shape in ((), (1,))


def spread(values: Array, shape: Sizes, by: Along, what: str = "scale") -> Array:
    """Scales or zero points as an array that broadcasts to the shape of the tensor that they belong to.

    Args:
        values: the scales or zero points as the model has them.
        shape: the shape of the tensor.
        by: the axis, which may be negative, and the block size; 0 where there are no blocks.
        what: what the values are, for errors.

    >>> spread(np.array([[1, 2, 3]]), (4, 3), (0, 4)).tolist()
    [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]
    >>> spread(np.array([1, 2, 3]), (4, 3), (-1, 0)).tolist()
    [[1, 2, 3]]

    Raises:
        Refused: the values have another shape than ONNX's definition allows.
    """
    if is_per_tensor(values):
        return values.reshape(())
    (axis, block_size), rank = by, len(shape)
    if not -rank <= axis < rank:
        raise Refused(f"its {what} lies along axis {axis} of a tensor of {_shown(shape)}, which has {rank} axes")
    axis, size = axis % rank, shape[axis]
    if block_size < 0 or isinstance(size, str):
        raise Refused(f"its {what} of {_shown(values.shape)} has blocks of {block_size} along {_shown(shape)}")
    if block_size == 0:
        _check(values, (size,), shape, what, f"along axis {axis}")
        return values.reshape([-1 if place == axis else 1 for place in range(rank)])
    blocks = (*shape[:axis], -(-size // block_size), *shape[axis + 1 :])
    _check(values, blocks, shape, what, f"in blocks of {block_size} along axis {axis}")
    return np.repeat(values, block_size, axis).take(range(size), axis)


def per_slice(grid: Array, axis: int) -> Array | None:
    """One value for each slice along an axis, [1] where all are the same; None where values differ within a slice.

    Args:
        grid: what `spread` made.
        axis: the axis, from 0.

    >>> per_slice(np.array([[1, 2], [1, 2]]), 1), per_slice(np.array([[1, 2], [1, 2]]), 0)
    (array([1, 2]), None)
    """
    slices = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1) if grid.ndim else grid.reshape(1, 1)
    first = slices[:, 0]
    if not np.array_equal(slices, np.broadcast_to(first[:, None], slices.shape)):
        return None
    return first[:1] if np.all(first == first[0]) else first


def _check(values: Array, wanted: Sizes, shape: Sizes, what: str, how: str) -> None:
    if values.shape != tuple(wanted):
        raise Refused(
            f"its {what} has the shape {_shown(values.shape)}; a tensor of {_shown(shape)} takes one for all, "
            f"or {_shown(wanted)} {how}"
        )


def _shown(shape: Sizes) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
