"""Compute the padded dimensions, strides and digits of a blocked descriptor."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul

from hexconv.layout.digit import Axis, Digit, Output
from hexconv.layout.layout import Layout
from hexconv.layout.limits import MAX_ADDRESS
from hexconv.layout.onednn.description import Description
from hexconv.layout.onednn.errors import DescriptorError
from hexconv.layout.onednn.tags import LETTERS, MAX_RANK, FormatTag

Sizes = tuple[int, ...]


def checked_dims(dims: Sequence[int], action: str) -> Sizes:
    """Check dimensions as the library does: at most 12, whole, not negative."""
    if len(dims) > MAX_RANK:
        raise DescriptorError(action, f"dimensions are invalid: {len(dims)} of them, at most {MAX_RANK}")
    for size in dims:
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise DescriptorError(action, f"dimension {size!r} of {list(dims)}: whole numbers from 0 on")
    check_room(prod(max(1, size) for size in dims), dims)
    return tuple(dims)


def check_room(room: int, dims: Sequence[int]) -> None:
    """Refuse a descriptor that 64-bit addresses don't reach."""
    if room > MAX_ADDRESS:
        action = "construct a memory descriptor"
        raise DescriptorError(action, f"{list(dims)} needs {room} bytes or elements, at most {MAX_ADDRESS}")


def of_tag(tag: FormatTag, dims: Sizes) -> tuple[Sizes, Sizes]:
    """The padded dimensions and strides of a tag; an empty dimension counts as one in the strides outside of it."""
    padded = tuple(-(-size // tag.block(d)) * tag.block(d) for d, size in enumerate(dims))
    strides = [0] * len(dims)
    step = prod(tag.inner_blks)
    for d in reversed(tag.order):
        strides[d] = step
        step *= max(1, padded[d] // tag.block(d))
    return padded, tuple(strides)


def row_major(dims: Sizes) -> Sizes:
    """Strides of a dense array, the last dimension the fastest."""
    return tuple(list(accumulate([1, *dims[:0:-1]], mul))[::-1])


def check_strides(dims: Sizes, strides: Sequence[int], action: str) -> None:
    """Check that each stride steps over what all shorter strides reach together.

    The check is conservative, as the library's is: dimensions (2, 3) with strides (3, 2) don't overlap and are refused
    all the same.
    """
    if len(strides) != len(dims):
        raise DescriptorError(action, f"{len(strides)} strides for {len(dims)} dimensions")
    if any(isinstance(step, bool) or not isinstance(step, int) for step in strides):
        raise DescriptorError(action, f"strides {list(strides)}: whole numbers from 0 on")
    if 0 in dims:
        return
    reach = 1
    for step, size in sorted((s, size) for s, size in zip(strides, dims, strict=True) if s and size > 1):
        if step < 0:
            raise DescriptorError(action, f"stride {step}: 0 and more; only a dimension of 1 may have any")
        if step < reach:
            raise DescriptorError(action, f"stride {step} steps into the {reach} elements that shorter strides reach")
        reach = step * size


def layout(desc: Description) -> Layout:
    """The layout of a blocked descriptor: for each dimension a digit for its outer block, then one per inner block."""
    digits = tuple(_digits(desc))
    reach = _reach(desc, digits)
    size = desc.get_size() // desc.itemsize_bytes
    return Layout(
        name=f"onednn {desc.data_type}",
        axes=tuple(Axis(LETTERS[d], size) for d, size in enumerate(desc.dims)),
        outputs=(Output("offset_elements", 0 if 0 in desc.dims else max(size, reach), desc.offset0),),
        digits=digits,
        itemsize_bytes=desc.itemsize_bytes,
    )


def _digits(desc: Description) -> list[Digit]:
    steps = list(accumulate([1, *desc.inner_blks[:0:-1]], mul))[::-1] if desc.inner_blks else []
    digits = [Digit(LETTERS[d], "offset_elements", desc.block(d), None, desc.strides[d]) for d in range(desc.ndims)]
    below = {d: 1 for d in range(desc.ndims)}
    for size, d, step in reversed(list(zip(desc.inner_blks, desc.inner_idxs, steps, strict=True))):
        digits.append(Digit(LETTERS[d], "offset_elements", below[d], size, step))
        below[d] *= size
    return digits


def _reach(desc: Description, digits: Sequence[Digit]) -> int:
    """How many elements the descriptor spans up to its last one, counted from offset0."""
    if 0 in desc.dims:
        return 0
    return 1 + sum(d.stride * (d.count(desc.dims[LETTERS.index(d.axis)]) - 1) for d in digits)
