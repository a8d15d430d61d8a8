"""Cache bytes of every plan of a nest of blocks at once, along the axes of the space."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from hexconv.analyze.block_nest import PlannedBlocks, planned_blocks
from hexconv.analyze.caches import BLOCK, DTYPE_BYTES, PredictedCache, packed_filter, plain_footprints
from hexconv.analyze.exact import Integers, ceil_divide
from hexconv.search.space import Space
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


@dataclass(frozen=True)
class BlockAxes:
    """A chain over a plan space in which all plans have a nest of blocks.

    Arrays have the shape [words, H, K], or broadcast to it.
    """

    chain: Chain
    space: Space

    @cached_property
    def _by_rows(self) -> dict[Plan, list[PlannedBlocks]]:
        """The plans [H] for each combination of words that matters to stripes; their tiles say nothing."""
        found = {}
        for words in dict.fromkeys(map(_alike, self.space.words)):
            found[words] = [planned_blocks(self.chain, replace(words, h_split=int(h))) for h in self.space.h_splits]
        return found

    def rows(self, of: Callable[[PlannedBlocks], Any]) -> Integers:
        """Return figures [words, H, 1] that depend on stripes."""
        known = {words: [of(planned) for planned in row] for words, row in self._by_rows.items()}
        return np.array([known[_alike(words)] for words in self.space.words])[:, :, None]

    def steps(self, index: int) -> Integers:
        """Return whether conv `index` takes several steps over rows: [words, H, 1]."""
        return self.rows(lambda planned: planned.row_steps[index] > 1)

    def tiles(self, index: int) -> Integers:
        """Return the tiles of output channels of conv `index`: [1, 1, K]."""
        return ceil_divide(self.extents[index + 1].channel_blocks, self.space.k_splits)[None, None]

    def staged(self, index: int) -> Integers:
        """Return the blocks of output channels in a tile of conv `index`: [1, 1, K]."""
        return np.minimum(self.space.k_splits, self.extents[index + 1].channel_blocks)[None, None]

    @property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)


def _alike(words: Plan) -> Plan:
    """Reset the words on which stripes don't depend."""
    return replace(words, order="h_outer", filters="resident")


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


def cache_grids(axes: BlockAxes) -> tuple[CacheGrid, ...]:
    """Return every cache of a chain, in the order in which caches are first written."""
    # Which caches there are, and of what, is the same for all plans.
    known = plain_footprints(planned_blocks(axes.chain, axes.space.words[0]))
    grids, doubled = [], two_slots(axes)
    for cache in known:
        slots = np.where(doubled.get(cache.name, False), 2, 1)
        elements = _elements(axes, cache)
        grids.append(CacheGrid(cache.name, cache.dtype, elements * slots * DTYPE_BYTES[cache.dtype]))
    return tuple(grids)


def two_slots(axes: BlockAxes) -> dict[str, Integers]:
    """Return by cache [words, H, K]: whether it is a double buffer, with a slot for compute and one for copies."""
    double, per_tile = axes.space.flags("buffering", "double"), axes.space.flags("filters", "per_tile")
    again = np.full((1, 1, 1), axes.extents[-1].batch > 1)
    last, found = len(axes.chain.conv) - 1, {}
    for index in range(last, -1, -1):
        steps = axes.steps(index)
        tiles = again | steps | (axes.tiles(index) > 1)
        if index == last:
            found[OUTPUT_CACHE] = double & tiles
        found[filter_cache(index + 1)] = double & tiles & per_tile
        again = again | steps  # tiles repeat a source only where there are several steps, which repeat it by themselves
    return {**found, INPUT_CACHE: double & again & axes.rows(lambda planned: not planned.rings)}


def _elements(axes: BlockAxes, cache: PredictedCache) -> Integers:
    """Return the elements of one cache."""
    if cache.role == "filter":
        return _filter(axes, cache.number - 1)
    if cache.role == "accumulator":
        return np.full((1, 1, 1), prod(BLOCK))
    tensor, extents = cache.number, axes.extents[cache.number]
    slabs = axes.rows(lambda planned: planned.slabs[tensor] + (0 if tensor else planned.ahead))
    channel_blocks = axes.staged(tensor - 1) if cache.role == "output" else extents.channel_blocks
    return slabs * channel_blocks * (extents.column_blocks * prod(BLOCK))


def _filter(axes: BlockAxes, index: int) -> Integers:
    """Return the elements of a filter cache: the blocks of one tile, or of all tiles where the filters are resident."""
    out_blocks, *block = packed_filter(axes.chain, index)
    return np.where(axes.space.flags("filters", "resident"), out_blocks, axes.staged(index)) * prod(block)
