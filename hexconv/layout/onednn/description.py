"""The fields of a memory descriptor, and how much memory its tensor takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, TypeVar

from hexconv.layout.onednn.dtypes import ITEMSIZE_BYTES
from hexconv.layout.onednn.tags import block_of

FormatKind = Literal["undef", "any", "blocked"]
Kind = TypeVar("Kind", bound="Description")
"""The class of a descriptor; a function that changes a descriptor returns one of the same class."""


@dataclass(frozen=True, eq=False)
class Description:
    """The sizes, type and format of a tensor, as oneDNN describes it.

    Attributes:
        dims: logical sizes.
        data_type: `f32`, `s8`, ... (`hexconv.layout.onednn.dtypes`).
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
