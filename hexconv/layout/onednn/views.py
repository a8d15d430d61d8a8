"""Make other descriptors of the same memory: of a region, and with the axes in another order."""

from collections.abc import Sequence
from dataclasses import replace

from hexconv.layout.onednn.blocking import checked_dims
from hexconv.layout.onednn.description import Description, Kind
from hexconv.layout.onednn.errors import UNIMPLEMENTED, DescriptorError


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
