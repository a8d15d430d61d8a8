"""Second slots and slabs read ahead of every plan of a space at once (`hexconv.analyze.footprint`, on vectors)."""

import numpy as np

from hexconv.analyze.footprint import halo_slabs
from hexconv.search.exact import Integers
from hexconv.search.space import Space
from hexconv.search.stripes import Stripes
from hexconv.spec import Chain


def cache_slots(chain: Chain, space: Space, stripes: Stripes) -> dict[str, Integers]:
    """By cache, an array that broadcasts to [words, H, K]: 2 where it is copied to or from more than once, else 1."""
    doubles, by_channels = space.flags("buffering", "double"), space.flags("order", "k_outer")
    runs = np.full((1, 1, 1), stripes.extents[-1].batch > 1)  # whether there is a loop around the copy
    again: dict[str, np.ndarray] = {}
    for index in reversed(range(len(chain.conv))):
        steps = (stripes.row_steps[index] > 1)[None, :, None]
        tiles = runs | steps | (stripes.channel_tiles[index] > 1)[None, None, :]
        again.setdefault("output_cache", tiles)
        again[f"filter{index + 1}_cache"] = tiles & ~space.flags("filters", "resident")
        runs = np.where(by_channels & steps, tiles, runs | steps)
    again["input_cache"] = runs & ~space.rolls
    return {name: 1 + (copied & doubles).astype(np.int64) for name, copied in again.items()}


def ahead_slabs(chain: Chain, space: Space, stripes: Stripes) -> Integers:
    """[words, H, 1]: slabs of the input that a ring holds beside a stripe."""
    if any(halo_slabs(conv) < 0 for conv in chain.conv):
        return np.zeros((1, 1, 1), np.int64)
    step = np.minimum(stripes.h_splits, stripes.slabs[1]) * chain.conv[0].stride[0]
    ahead = np.minimum(step, stripes.extents[0].row_blocks - stripes.slabs[0])
    return np.where(space.flags("buffering", "double") & space.rolls, ahead[None, :, None], 0)
