"""Fields of a oneDNN memory descriptor: padded dimensions, strides, digits, bytes; a format for `any`.

Channels are cut into the largest block of 16, 8 or 4 that divides them, so that nothing is padded: data to
`nChw16c` and its like, weights to `OIhw16i16o` and its like, each channel dimension with a block of its own.
Data whose channels no block divides have their channels last (`nhwc`); weights without any block stay in
logical order (`oihw`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import Literal, TypeVar, get_args

from hexconv.layout.digits import MAX_ADDRESS, Axis, Digit, Output
from hexconv.layout.mapping import Layout
from hexconv.layout.onednn.onednn_types import ITEMSIZE_BYTES, DescriptorError
from hexconv.layout.onednn.tags import LETTERS, MAX_RANK, FormatTag, block_of

FormatKind = Literal["undef", "any", "blocked"]
Kind = TypeVar("Kind", bound="Description")
"""The class of a descriptor; a function that changes a descriptor returns one of the same class."""


@dataclass(frozen=True, eq=False)
class Description:
    """The sizes, type and format of a tensor, as oneDNN describes it.

    Attributes:
        dims: logical sizes.
        data_type: `f32`, `s8`, ... (`hexconv.layout.onednn.onednn_types`).
        format_kind: `blocked`; `any` while no format is chosen; `undef` for the zero descriptor.
        padded_dims: sizes rounded up to whole blocks.
        strides: elements between neighbouring outer blocks, per dimension.
        inner_blks: sizes of the inner blocks, outermost first.
        inner_idxs: the dimension of each inner block.
        offset0: the element at which the descriptor starts; only a submemory has another than 0.
    """

    dims: tuple[int, ...]
    data_type: str
    format_kind: FormatKind = "blocked"
    padded_dims: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    inner_blks: tuple[int, ...] = ()
    inner_idxs: tuple[int, ...] = ()
    offset0: int = 0

    @classmethod
    def zero(cls: type[Kind]) -> Kind:
        """The empty descriptor, which says that an argument is absent."""
        return cls((), "undef", "undef")

    @property
    def ndims(self) -> int:
        """Number of dimensions; 0 for the zero descriptor."""
        return len(self.dims)

    @property
    def is_zero(self) -> bool:
        """Whether this is the empty descriptor."""
        return self.ndims == 0

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of an element."""
        return ITEMSIZE_BYTES[self.data_type]

    def block(self, dim: int) -> int:
        """How many elements of a dimension its inner blocks hold together; 1 where it has none."""
        return block_of(dim, self.inner_blks, self.inner_idxs)

    def get_size(self) -> int:
        """Bytes to allocate, padding included.

        The largest extent of any one dimension, not the end of the last element: gaps at the end count. 0 for
        `any`, for zero descriptors and volumes, and for a submemory that starts past its parent's start.
        """
        if self.format_kind != "blocked" or 0 in self.dims or self.offset0:
            return 0
        blocks = [padded // self.block(d) for d, padded in enumerate(self.padded_dims)]
        span = max(1 if n == 1 else n * step for n, step in zip(blocks, self.strides, strict=True))
        if span == 1:
            span = prod(self.inner_blks)
        return span * self.itemsize_bytes

    def __eq__(self, other: object) -> bool:
        """Compare as the library does: the stride of a dimension of one element is ignored, its block is not."""
        return isinstance(other, Description) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        telling = tuple(
            s for s, d, p in zip(self.strides, self.dims, self.padded_dims, strict=False) if (d, p) != (1, 1)
        )
        formats = (
            self.format_kind,
            self.padded_dims,
            telling,
            self.inner_blks,
            self.inner_idxs,
            self.offset0,
        )
        return (self.dims, self.data_type, *formats)


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


Use = Literal["data", "weights", "grouped-weights"]
"""The uses of a tensor, with dimensions n,c,..; o,i,..; g,o,i,..: the use decides which are channels."""

BLOCKS = (16, 8, 4)


def tag_for(desc: Description, use: str) -> str:
    """The tag that the rule chooses.

    Raises:
        DescriptorError: there is no such use, or the tensor has too few dimensions for it.

    >>> from hexconv.layout.onednn.descriptor import MemoryDesc
    >>> tag_for(MemoryDesc.by_tag((2, 24, 7, 7), "f32", "any"), "data")
    'aBcd8b'
    >>> tag_for(MemoryDesc.by_tag((32, 3, 3, 3), "f32", "any"), "weights")
    'Abcd16a'
    """
    action = "choose a format"
    if use not in get_args(Use):
        raise DescriptorError(action, f"use {use!r} is none of {', '.join(get_args(Use))}")
    channels = {"data": (1,), "weights": (1, 0), "grouped-weights": (2, 1)}[use]
    if desc.ndims <= max(channels):
        raise DescriptorError(action, f"{use} have {max(channels) + 1} dimensions or more, got {list(desc.dims)}")
    blocks = [(d, _block(desc.dims[d])) for d in channels]
    cut = {d: block for d, block in blocks if block}
    order = [d for d in range(desc.ndims) if d != 1] + [1] if use == "data" and not cut else range(desc.ndims)
    outer = "".join(LETTERS[d].upper() if d in cut else LETTERS[d] for d in order)
    return outer + "".join(f"{block}{LETTERS[d]}" for d, block in cut.items())


def _block(size: int) -> int | None:
    """The largest block that divides a size; None if none does."""
    return next((block for block in BLOCKS if size and size % block == 0), None)
