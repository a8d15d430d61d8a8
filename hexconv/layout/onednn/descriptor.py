"""oneDNN's memory descriptor: how it is made, where elements lie; views, reshapes, gates of recurrent cells.

Semantics are those of the library itself (version 3.2), which the tests call: see README.md for where the
documents say something else.

Dimensions are matched from the left, in groups: runs of ones come and go, equal sizes stay what they are,
and whatever is left is joined and split again, which needs memory that is dense, in order and without
blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import prod

from hexconv.errors import did_you_mean
from hexconv.layout.mapping import Layout
from hexconv.layout.onednn import description
from hexconv.layout.onednn.description import Description, Kind, checked_dims
from hexconv.layout.onednn.onednn_types import UNIMPLEMENTED, DescriptorError, dtype
from hexconv.layout.onednn.tags import FormatTag

_ACTION = "reshape a memory descriptor"

Group = tuple[range, Sequence[int]]
"""A group: some dimensions of the given descriptor, and the sizes that replace them."""


def reshape(desc: Kind, dims: Sequence[int]) -> Kind:
    """The descriptor of `dims` on the memory of `desc`.

    Not every reshape that a view could express is found, as in the library: a dimension of one whose stride
    doesn't fit stops the joining of its neighbours.

    Raises:
        DescriptorError: the volumes differ, or the memory of a group doesn't allow it.
    """
    if desc.is_zero:
        raise DescriptorError(_ACTION, "it is a zero descriptor")
    wanted = checked_dims(dims, _ACTION)
    if prod(wanted) != prod(desc.dims):
        reason = f"{list(desc.dims)} has {prod(desc.dims)} elements, {list(wanted)} has {prod(wanted)}"
        raise DescriptorError(_ACTION, reason)
    if not wanted:
        return desc.zero()
    if desc.format_kind == "any":
        return replace(desc, dims=wanted)
    made = _Made()
    for old, new in _groups(desc.dims, wanted):
        _place(desc, made, old, new)
    return replace(
        desc,
        dims=wanted,
        padded_dims=tuple(made.padded_dims),
        strides=tuple(made.strides),
        inner_idxs=tuple(made.moved[d] for d in desc.inner_idxs),
    )


@dataclass(frozen=True)
class _Made:
    """The new descriptor's dimensions so far, and where blocked dimensions went."""

    padded_dims: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    moved: dict[int, int] = field(default_factory=dict)

    def add(self, padded: int, stride: int) -> None:
        self.padded_dims.append(padded)
        self.strides.append(stride)

    def keep(self, desc: Description, d: int) -> None:
        self.moved[d] = len(self.strides)
        self.add(desc.padded_dims[d], desc.strides[d])


def _groups(dims: Sequence[int], wanted: Sequence[int]) -> Iterator[Group]:
    """Match old dimensions with new ones, from the left."""
    i = j = 0
    while i < len(dims) or j < len(wanted):
        here, there = _ones(dims[i:]), _ones(wanted[j:])
        if not (here or there):
            here, there = _group(dims, i, wanted, j)
        yield range(i, i + here), wanted[j : j + there]
        i, j = i + here, j + there


def _ones(sizes: Sequence[int]) -> int:
    """The length of the run of ones at the start."""
    return len(list(takewhile(lambda size: size == 1, sizes)))


def _group(dims: Sequence[int], i: int, wanted: Sequence[int], j: int) -> tuple[int, int]:
    """The lengths of the shortest groups, from i and from j on, that have the same volume."""
    here = there = 1
    while i + here <= len(dims) and j + there <= len(wanted):
        difference = prod(dims[i : i + here]) - prod(wanted[j : j + there])
        if not difference:
            return here, there
        here, there = (here + 1, there) if difference < 0 else (here, there + 1)
    raise DescriptorError(_ACTION, f"dimensions {list(dims[i:])} have no part that becomes part of {list(wanted[j:])}")


def _place(desc: Description, made: _Made, old: range, new: Sequence[int]) -> None:
    """Give one group of new dimensions its strides."""
    if all(size == 1 for size in (*(desc.dims[d] for d in old), *new)):
        _place_ones(desc, made, old, len(new))
    elif len(old) == len(new) == 1:
        made.keep(desc, old[0])
    else:
        _place_dense(desc, made, old, new)


def _place_ones(desc: Description, made: _Made, old: range, count: int) -> None:
    """Place dimensions of one element: unpadded ones are made anew; padded ones stay, as the last of the new ones.

    The one exception is refused: a row cut out of a block by a submemory is 1 wide, unpadded and yet
    blocked. The library makes it anew and leaves its block to a dimension that has nothing to do with it.
    """
    for d in old:
        if desc.padded_dims[d] == 1 != desc.block(d):
            raise DescriptorError(_ACTION, f"dimension {d} is one element of a block of {desc.block(d)}")
    padded = [d for d in old if desc.padded_dims[d] != 1]
    if count < len(padded):
        raise DescriptorError(
            _ACTION,
            f"dimension {padded[0]} of size 1 is padded to {desc.padded_dims[padded[0]]} and can't go",
        )
    d = old.start
    end = d == desc.ndims
    stride = prod(desc.inner_blks) if end else desc.strides[d] * desc.dims[d] // desc.block(d)
    for _ in range(count - len(padded)):
        made.add(1, stride)
    for d in padded:
        made.keep(desc, d)


def _place_dense(desc: Description, made: _Made, old: range, new: Sequence[int]) -> None:
    """Join and split dimensions: one dense row of elements is cut in another way."""
    for d in old:
        if desc.block(d) != 1 or desc.padded_dims[d] != desc.dims[d]:
            raise DescriptorError(_ACTION, f"dimension {d} is blocked: it can be neither split nor joined")
    for d in old[:-1]:
        needed = desc.strides[d + 1] * desc.dims[d + 1]
        if desc.strides[d] != needed:
            reason = f"dimensions {d} and {d + 1} aren't dense: stride {desc.strides[d]}, not {needed}"
            raise DescriptorError(_ACTION, reason)
    step = desc.strides[old[-1]]
    for k, size in enumerate(new):
        made.add(size, step * prod(new[k + 1 :]))


def submemory(parent: Kind, dims: Sequence[int], offsets: Sequence[int]) -> Kind:
    """The descriptor of the region of sizes `dims` that starts at `offsets`.

    Raises:
        DescriptorError: out of range (invalid_arguments); or, along a blocked dimension, an offset inside
        of a block,
            or an end inside of a block that isn't the parent's end (unimplemented).
    """
    action = "construct a sub-memory"
    if parent.format_kind != "blocked":
        raise DescriptorError(action, f"the parent's format is {parent.format_kind!r}")
    if not len(dims) == len(offsets) == parent.ndims:
        raise DescriptorError(action, f"{len(dims)} sizes and {len(offsets)} offsets for {parent.ndims} dimensions")
    region = checked_dims(dims, action)
    for d, (offset, size) in enumerate(zip(offsets, region, strict=True)):
        if offset < 0 or offset + size > parent.dims[d]:
            raise DescriptorError(action, f"{offset} + {size} along dimension {d} leaves 0 .. {parent.dims[d]}")
    padded = tuple(_padded(parent, d, region[d], offsets[d], action) for d in range(parent.ndims))
    start = sum(
        step * off // parent.block(d) for d, (step, off) in enumerate(zip(parent.strides, offsets, strict=True))
    )
    return replace(parent, dims=region, padded_dims=padded, offset0=parent.offset0 + start)


def permute_axes(desc: Kind, permutation: Sequence[int]) -> Kind:
    """Permute axes: dimension i becomes dimension `permutation[i]`; memory stays where it is.

    Raises:
        DescriptorError: the permutation isn't one of 0 .. ndims - 1.
    """
    if sorted(permutation) != list(range(desc.ndims)):
        wanted = f"each of 0 .. {desc.ndims - 1} once"
        raise DescriptorError("permute axes of a memory descriptor", f"{list(permutation)}: {wanted}")
    from_new = sorted(range(desc.ndims), key=lambda d: permutation[d])

    def moved(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values[d] for d in from_new) if values else ()

    return replace(
        desc,
        dims=moved(desc.dims),
        padded_dims=moved(desc.padded_dims),
        strides=moved(desc.strides),
        inner_idxs=tuple(permutation[d] for d in desc.inner_idxs),
    )


def _padded(parent: Description, d: int, size: int, offset: int, action: str) -> int:
    """The padded size of a region along one dimension; a region that may not be cut there is refused."""
    block = parent.block(d)
    at_end = offset + size == parent.dims[d]
    if offset % block or not (size % block == 0 or size < block or at_end):
        reason = f"{offset} + {size} along dimension {d} cuts a block of {block}"
        raise DescriptorError(action, reason, UNIMPLEMENTED)
    return parent.padded_dims[d] - offset if at_end else size


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
        """Descriptor of a region of this one; see `hexconv.layout.onednn.descriptor`."""
        return _or_zero(lambda: submemory(self, dims, offsets), allow_empty)

    def reshape(self, dims: Sequence[int], *, allow_empty: bool = False) -> MemoryDesc:
        """The same memory seen with other dimensions; see `hexconv.layout.onednn.descriptor`."""
        return _or_zero(lambda: reshape(self, dims), allow_empty)

    def permute_axes(self, permutation: Sequence[int], *, allow_empty: bool = False) -> MemoryDesc:
        """The same memory with dimension i renamed to `permutation[i]`."""
        return _or_zero(lambda: permute_axes(self, permutation), allow_empty)

    def resolved(self, use: str) -> MemoryDesc:
        """This descriptor, its format chosen by the rule of `hexconv.layout.onednn.description` if it is `any`.

        Args:
            use: `data`, `weights` or `grouped-weights`.
        """
        if self.format_kind != "any":
            return self
        return MemoryDesc.by_tag(self.dims, self.data_type, description.tag_for(self, use))

    def layout(self) -> Layout:
        """The layout of the elements: one output, `offset_elements`.

        Raises:
            DescriptorError: the descriptor is `any` or zero, whose elements have no places.
        """
        if self.format_kind != "blocked":
            raise DescriptorError("place elements", f"the format is {self.format_kind!r}: choose a tag or strides")
        return description.layout(self)

    def _checked(self) -> MemoryDesc:
        """Refuse sizes beyond 64 bits, which overflow in the library."""
        description.check_room(self.get_size(), self.dims)
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
    sizes = description.checked_dims(dims, action)
    if tag == "any":
        return MemoryDesc(sizes, dtype(data_type), "any")
    parsed = FormatTag.parse(tag)
    if parsed.rank != len(sizes):
        raise DescriptorError(action, f"tag {tag} has {parsed.rank} dimensions, {list(sizes)} has {len(sizes)}")
    padded, strides = description.of_tag(parsed, sizes)
    desc = MemoryDesc(sizes, dtype(data_type), "blocked", padded, strides, parsed.inner_blks, parsed.inner_idxs)
    return desc._checked()


def _by_strides(dims: Sequence[int], data_type: str, strides: Sequence[int] | None) -> MemoryDesc:
    if not dims:
        return MemoryDesc.zero()
    action = "construct a memory descriptor using strides"
    sizes = description.checked_dims(dims, action)
    steps = description.row_major(sizes) if strides is None else tuple(strides)
    description.check_strides(sizes, steps, action)
    return MemoryDesc(sizes, dtype(data_type), "blocked", sizes, steps)._checked()


GATES = {
    "lstm": ("input", "forget", "candidate", "output"),
    "gru": ("update", "reset", "output"),
}
"""The gates of each cell, in the order of memory (from the document on `ldigo`, `ldgoi` and `ldgo`)."""

GATE_AXIS = {5: 3, 4: 2}
"""The gates' dimension by rank: weights are l,d,i,g,o and biases l,d,g,o, whatever their tag."""


def gate_index(cell: str, gate: str) -> int:
    """The index of a gate along the axis of gates.

    Raises:
        DescriptorError: there is no such cell or gate.

    >>> gate_index("lstm", "candidate"), gate_index("gru", "reset")
    (2, 1)
    """
    if gate not in _gates(cell):
        reason = f"{did_you_mean(gate, _gates(cell))}{gate!r} is none of {', '.join(_gates(cell))}"
        raise DescriptorError(f"find a gate of {cell}", reason)
    return _gates(cell).index(gate)


def gate_of(desc: MemoryDesc, cell: str, gate: str) -> MemoryDesc:
    """The part of weights (l, d, i, g, o) or of a bias (l, d, g, o) that belongs to one gate; a submemory.

    Raises:
        DescriptorError: no such cell or gate, another rank, or another number of gates than the cell has.
    """
    axis, index = gate_axis(desc.dims, cell), gate_index(cell, gate)
    dims = [1 if d == axis else size for d, size in enumerate(desc.dims)]
    return desc.submemory(dims, [index if d == axis else 0 for d in range(desc.ndims)])


def gate_axis(dims: tuple[int, ...], cell: str) -> int:
    """The dimension along which the gates of a cell lie.

    Raises:
        DescriptorError: another rank, or another number of gates.
    """
    wanted = len(_gates(cell))
    axis = GATE_AXIS.get(len(dims))
    if axis is None or dims[axis] != wanted:
        shapes = f"weights l,d,i,{wanted},o or a bias l,d,{wanted},o"
        raise DescriptorError(f"find the gates of {cell}", f"dimensions {list(dims)}; {shapes}")
    return axis


def _gates(cell: str) -> tuple[str, ...]:
    if cell not in GATES:
        raise DescriptorError("find a gate", f"cell {cell!r} is none of {', '.join(GATES)}")
    return GATES[cell]
