"""The bytes of every cache of every plan of a space at once (`hexconv.analyze.footprint`, on vectors)."""

from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.analyze.cache import DTYPE_BYTES, PredictedCache
from hexconv.analyze.footprint import BLOCK, packed_filter, plain_footprints
from hexconv.analyze.slabs import halo_slabs
from hexconv.search.exact import Integers
from hexconv.search.space import Space
from hexconv.search.stripes import Stripes
from hexconv.spec import Chain
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


@dataclass(frozen=True)
class CacheGrid:
    """One cache, for all plans of a space.

    Attributes:
        name: its name, as in the closed form.
        dtype: the dtype of its elements.
        bytes: its size in every plan; the array broadcasts to [words, H, K].
    """

    name: str
    dtype: str
    bytes: Integers


def cache_grids(chain: Chain, space: Space, stripes: Stripes) -> tuple[CacheGrid, ...]:
    """Return every cache of a chain, in the order in which caches are first written."""
    # Which caches there are, and of what, is the same for all plans.
    known, doubled = plain_footprints(chain, space.words[0]), two_slots(space, stripes)
    grids = []
    for cache in known:
        slots = np.where(doubled.get(cache.name, False), 2, 1)
        elements = _elements(chain, space, stripes, cache)
        grids.append(CacheGrid(cache.name, cache.dtype, elements * slots * DTYPE_BYTES[cache.dtype]))
    return tuple(grids)


def two_slots(space: Space, stripes: Stripes) -> dict[str, Integers]:
    """Return by cache [words, H, K]: whether it is a double buffer, with a slot for compute and one for copies."""
    double = space.flags("buffering", "double")
    again = np.full((1, 1, 1), stripes.extents[-1].batch > 1)
    last = len(stripes.row_steps) - 1
    found = {}
    for index in range(last, -1, -1):
        steps = (stripes.row_steps[index] > 1)[None, :, None]
        tiles = again | steps | (stripes.channel_tiles[index] > 1)[None, None, :]
        if index == last:
            found[OUTPUT_CACHE] = double & tiles
        found[filter_cache(index + 1)] = double & tiles & space.flags("filters", "per_tile")
        again = again | steps  # tiles repeat a source only where there are several steps, which repeat it by themselves
    return {**found, INPUT_CACHE: double & again & space.flags("halo", "recompute")}


def _ahead(chain: Chain, space: Space, stripes: Stripes) -> Integers:
    """Return [words, H, 1]: the slabs of the input that a ring holds ahead, beside a stripe."""
    if any(halo_slabs(conv) < 0 for conv in chain.conv):
        return np.zeros((1, 1, 1), np.int64)
    step = np.minimum(stripes.h_splits, stripes.slabs[1]) * chain.conv[0].stride[0]
    ahead = np.minimum(step, stripes.extents[0].row_blocks - stripes.slabs[0])
    return np.where(space.rolls & space.flags("buffering", "double"), ahead[None, :, None], 0)


def _elements(chain: Chain, space: Space, stripes: Stripes, cache: PredictedCache) -> Integers:
    """Return the elements of one cache."""
    if cache.role == "filter":
        return _filter(chain, space, stripes, cache.number - 1)
    if cache.role == "accumulator":
        return np.full((1, 1, 1), prod(BLOCK))
    extents, rows = stripes.extents[cache.number], stripes.slabs[cache.number][None, :, None]
    if cache.role == "input":
        rows = rows + _ahead(chain, space, stripes)
    if cache.role == "output":
        return rows * stripes.staged_blocks[-1] * (extents.column_blocks * prod(BLOCK))
    return rows * (extents.column_blocks * extents.channel_blocks * prod(BLOCK))


def _filter(chain: Chain, space: Space, stripes: Stripes, index: int) -> Integers:
    """Return the elements of a filter cache: the blocks of one tile, or of all tiles where the filters are resident."""
    out_blocks, *block = packed_filter(chain, index)
    staged = np.where(space.flags("filters", "resident"), out_blocks, stripes.staged_blocks[index])
    return staged * prod(block)
