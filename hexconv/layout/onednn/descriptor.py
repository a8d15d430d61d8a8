"""oneDNN's memory descriptor: how it is made, how much memory it needs and where its elements lie.

Semantics are those of the library itself (version 3.2), which the tests call: see README.md for where the
documents say something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hexconv.layout.layout import Layout
from hexconv.layout.onednn import blocking, choice, reshaping, views
from hexconv.layout.onednn.description import Description
from hexconv.layout.onednn.dtypes import dtype
from hexconv.layout.onednn.errors import DescriptorError
from hexconv.layout.onednn.tags import FormatTag


@dataclass(frozen=True, eq=False)
class MemoryDesc(Description):
    """A memory descriptor; made by `by_tag`, `by_strides`, `zero` and the views of another one.

    All five that the library may refuse take `allow_empty`: with it a refusal gives a zero descriptor.
    """

    @classmethod
    def by_tag(cls, dims: Sequence[int], data_type: str, tag: str, *, allow_empty: bool = False) -> MemoryDesc:
        """Descriptor of a format tag, a domain name, `any` (no format yet) or `undef` (a zero descriptor).

        Raises:
            DescriptorError: no such tag or type, a rank that isn't the tag's, more than 12 or negative
            dimensions.
        """
        return _or_zero(lambda: _by_tag(dims, data_type, tag), allow_empty)

    @classmethod
    def by_strides(
        cls,
        dims: Sequence[int],
        data_type: str,
        strides: Sequence[int] | None = None,
        *,
        allow_empty: bool = False,
    ) -> MemoryDesc:
        """Descriptor of plain strides in elements, row-major ones by default.

        Raises:
            DescriptorError: strides are negative, or let dimensions overlap (a stride of 0 repeats
            and may).
        """
        return _or_zero(lambda: _by_strides(dims, data_type, strides), allow_empty)

    def submemory(self, dims: Sequence[int], offsets: Sequence[int], *, allow_empty: bool = False) -> MemoryDesc:
        """Descriptor of a region of this one; see `hexconv.layout.onednn.views`."""
        return _or_zero(lambda: views.submemory(self, dims, offsets), allow_empty)

    def reshape(self, dims: Sequence[int], *, allow_empty: bool = False) -> MemoryDesc:
        """The same memory seen with other dimensions; see `hexconv.layout.onednn.reshaping`."""
        return _or_zero(lambda: reshaping.reshape(self, dims), allow_empty)

    def permute_axes(self, permutation: Sequence[int], *, allow_empty: bool = False) -> MemoryDesc:
        """The same memory with dimension i renamed to `permutation[i]`."""
        return _or_zero(lambda: views.permute_axes(self, permutation), allow_empty)

    def resolved(self, use: str) -> MemoryDesc:
        """This descriptor, its format chosen by the rule of `hexconv.layout.onednn.choice` if it is `any`.

        Args:
            use: `data`, `weights` or `grouped-weights`.
        """
        if self.format_kind != "any":
            return self
        return MemoryDesc.by_tag(self.dims, self.data_type, choice.tag_for(self, use))

    def layout(self) -> Layout:
        """The layout of the elements: one output, `offset_elements`.

        Raises:
            DescriptorError: the descriptor is `any` or zero, whose elements have no places.
        """
        if self.format_kind != "blocked":
            raise DescriptorError("place elements", f"the format is {self.format_kind!r}: choose a tag or strides")
        return blocking.layout(self)

    def _checked(self) -> MemoryDesc:
        """Refuse sizes beyond 64 bits, which overflow in the library."""
        blocking.check_room(self.get_size(), self.dims)
        return self


def _or_zero(make: Callable[[], MemoryDesc], allow_empty: bool) -> MemoryDesc:
    """Make a descriptor; if it is refused, return the zero descriptor where that is allowed."""
    try:
        return make()
    except DescriptorError:
        if not allow_empty:
            raise
        return MemoryDesc.zero()


def _by_tag(dims: Sequence[int], data_type: str, tag: str) -> MemoryDesc:
    if not dims or tag == "undef":
        return MemoryDesc.zero()
    action = "construct a memory descriptor using a format tag"
    sizes = blocking.checked_dims(dims, action)
    if tag == "any":
        return MemoryDesc(sizes, dtype(data_type), "any")
    parsed = FormatTag.parse(tag)
    if parsed.rank != len(sizes):
        raise DescriptorError(action, f"tag {tag} has {parsed.rank} dimensions, {list(sizes)} has {len(sizes)}")
    padded, strides = blocking.of_tag(parsed, sizes)
    desc = MemoryDesc(sizes, dtype(data_type), "blocked", padded, strides, parsed.inner_blks, parsed.inner_idxs)
    return desc._checked()


def _by_strides(dims: Sequence[int], data_type: str, strides: Sequence[int] | None) -> MemoryDesc:
    if not dims:
        return MemoryDesc.zero()
    action = "construct a memory descriptor using strides"
    sizes = blocking.checked_dims(dims, action)
    steps = blocking.row_major(sizes) if strides is None else tuple(strides)
    blocking.check_strides(sizes, steps, action)
    return MemoryDesc(sizes, dtype(data_type), "blocked", sizes, steps)._checked()
