"""Slabs, row steps and channel tiles of every tensor of a chain, for all splits at once.

The forms are those of `hexconv.analyze.footprint`, on vectors: rows depend on `h_split` alone, channels on `k_split`.
"""

from dataclasses import dataclass

import numpy as np

from hexconv.analyze.slabs import slabs_read
from hexconv.search.exact import Integers, ceil_divide
from hexconv.search.space import Space
from hexconv.spec import Chain, Extents, tensor_extents


@dataclass(frozen=True)
class Stripes:
    """How a plan's splits divide the tensors of a chain: the input is tensor 0, conv i writes tensor i + 1.

    Attributes:
        extents: the stored extents of every tensor.
        h_splits: [H], the values of h_split.
        slabs: per tensor [H]: the slabs of 8 rows that are held.
        row_steps: per conv [H]: the steps over the slabs of its output.
        channel_tiles: per conv [K]: the tiles of output channels.
        staged_blocks: per conv [K]: the blocks of output channels in a tile.
    """

    extents: tuple[Extents, ...]
    h_splits: Integers
    slabs: tuple[Integers, ...]
    row_steps: tuple[Integers, ...]
    channel_tiles: tuple[Integers, ...]
    staged_blocks: tuple[Integers, ...]


def stripes(chain: Chain, space: Space) -> Stripes:
    """Return the rows and channels of every plan of a space."""
    extents, h, k = tensor_extents(chain), space.h_splits, space.k_splits
    slabs = _slabs(chain, extents, h)
    written = (*slabs[1:-1], np.full_like(h, extents[-1].row_blocks))
    channel_blocks = [tensor.channel_blocks for tensor in extents[1:]]
    return Stripes(
        extents=extents,
        h_splits=h,
        slabs=slabs,
        row_steps=tuple(ceil_divide(rows, h) for rows in written),
        channel_tiles=tuple(ceil_divide(blocks, k) for blocks in channel_blocks),
        staged_blocks=tuple(np.minimum(blocks, k) for blocks in channel_blocks),
    )


def _slabs(chain: Chain, extents: tuple[Extents, ...], h: Integers) -> tuple[Integers, ...]:
    """Return the slabs that are held of each tensor, computed from the output backwards."""
    slabs = [np.minimum(h, extents[-1].row_blocks)]
    for conv, source in zip(reversed(chain.conv), reversed(extents[:-1]), strict=True):
        step = np.minimum(h, slabs[-1])
        slabs.append(np.minimum(slabs_read(conv, step), source.row_blocks))  # pyright: ignore[reportArgumentType]
    return tuple(reversed(slabs))
