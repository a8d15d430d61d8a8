"""Describe the same memory with other dimensions of the same volume.

Dimensions are matched from the left, in groups: runs of ones come and go, equal sizes stay what they are,
and whatever is left is joined and split again, which needs memory that is dense, in order and without
blocks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import prod

from hexconv.layout.onednn.blocking import checked_dims
from hexconv.layout.onednn.description import Description, Kind
from hexconv.layout.onednn.errors import DescriptorError

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
