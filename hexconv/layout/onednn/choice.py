"""Choose a format for `any` where no primitive is there to choose it: a rule of our own that reads only the sizes.

Channels are cut into the largest block of 16, 8 or 4 that divides them, so that nothing is padded: data to
`nChw16c` and its like, weights to `OIhw16i16o` and its like, each channel dimension with a block of its own.
Data whose channels no block divides have their channels last (`nhwc`); weights without any block stay in
logical order (`oihw`).
"""

from typing import Literal, get_args

from hexconv.layout.onednn.description import Description
from hexconv.layout.onednn.errors import DescriptorError
from hexconv.layout.onednn.tags import LETTERS

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
