"""Compute the bytes of all caches of every plan of a nest of rows at once."""

from typing import Any

import numpy as np

from hexconv.analyze.cache import PredictedCache
from hexconv.analyze.exact import Integers
from hexconv.kernel.turns import turns
from hexconv.lower.vtcm import GRANULE_BYTES
from hexconv.search.nest_axes import NestAxes
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache, words_cache

OF_ROWS = ("input", "intermediate", "output")
"""The roles of caches that hold rows of a tensor."""
OF_FILTERS = ("filter", "words")
"""The roles of caches that hold a whole filter where filters are resident, and a tile of it where they aren't."""
ALONE = -1


def footprint_bytes(axes: NestAxes) -> Integers:
    """Compute the bytes of all memories; what one holds is rounded up to whole granules."""
    resident = [tiles.caches(is_resident=True) for tiles in axes.tiles]
    by_tile = [tiles.caches(is_resident=False) for tiles in axes.tiles]
    known = {name: cache for each in by_tile for name, cache in each.items()}
    slots, takes_turns, total = _slots(axes), _turns(axes), np.zeros(1, axes.kind)
    largest: dict[tuple[int, str], Integers] = {}
    for name, cache in known.items():
        of_filters = ([each.get(name) for each in caches] for caches in (by_tile, resident))
        held = _held_bytes(axes, cache, *of_filters, slots=slots.get(name, 1))
        if name not in takes_turns:
            total = total + held
            continue
        turn = takes_turns[name]
        total = total + np.where(turn == ALONE, held, 0)
        for memory in {*turn.ravel().tolist()} - {ALONE}:
            others = largest.get((memory, cache.dtype), 0)
            largest[memory, cache.dtype] = np.maximum(others, np.where(turn == memory, held, 0))
    return sum(largest.values(), total)


def _held_bytes(
    axes: NestAxes,
    cache: PredictedCache,
    by_tile: list[PredictedCache | None],
    resident: list[PredictedCache | None],
    slots: Any,
) -> Integers:
    """Compute the bytes of VTCM that one cache needs: 0 in plans that don't have it, or whose figure leaves it out.

    Args:
        axes: the plans.
        cache: the cache as some plan has it.
        by_tile: the cache [K] as plans of one height of stripes have it, with one slot, where filters are staged tile
            by tile; None where they don't have it.
        resident: the same where filters are resident.
        slots: how many slots it has.
    """
    sizes, copies = _sizes(axes, by_tile), _copies(by_tile)
    if cache.role in OF_FILTERS:
        is_resident = axes.space.flags("filters", "resident")
        sizes = np.where(is_resident, _sizes(axes, resident), sizes)
        copies = np.where(is_resident, _copies(resident), copies)
    if cache.role in OF_ROWS:
        rows = axes.rows(lambda counts: counts.cache_rows[cache.number])[..., None]
        sizes = sizes // axes.one.cache_rows[cache.number] * rows
    bytes = sizes * slots * counts(axes, cache)
    return copies * -(-bytes // (copies * GRANULE_BYTES)) * GRANULE_BYTES


def _sizes(axes: NestAxes, caches: list[PredictedCache | None]) -> Integers:
    """Return the bytes of a cache: [1, 1, K]."""
    return np.array([each.bytes if each else 0 for each in caches], axes.kind)[None, None]


def _copies(caches: list[PredictedCache | None]) -> int:
    """Return how many threads have a cache of their own."""
    return caches[0].copies if caches[0] else 1


def _turns(axes: NestAxes) -> dict[str, Integers]:
    """Return [words, H, 1]: the number of the memory in which a cache takes turns with others, or ALONE; by its name.

    Caches that take turns in no plan are left out.
    """
    strips = axes.one.strips
    if strips and strips.keeps:
        return {}
    whole = axes.rows(lambda counts: counts.stripes)[..., None] == 1
    makes_anew = axes.space.flags("halo", "recompute") | whole
    of_words = [
        {name: number for number, names in enumerate(turns(len(axes.convs), plan)) for name in names}
        for plan in axes.space.words
    ]
    names = dict.fromkeys(name for memories in of_words for name in memories)
    return {
        name: np.where(makes_anew, np.array([each.get(name, ALONE) for each in of_words])[:, None, None], ALONE)
        for name in names
    }


def counts(axes: NestAxes, cache: PredictedCache) -> Integers:
    """Return [words, 1, 1]: 1 where a cache counts, else 0.

    Where some cache lies in VTCM, those in VTCM count; elsewhere all do that there are.
    """
    there = [cache.is_in_vtcm(plan) or not (plan.uses_vtcm or cache.is_vtcm_only) for plan in axes.space.words]
    return np.array(there)[:, None, None] * 1


def _slots(axes: NestAxes) -> dict[str, Integers]:
    """Return the slots of each cache: 2 if it is copied to or from more than once while something computes."""
    double, resident = axes.space.flags("buffering", "double"), axes.space.flags("filters", "resident")
    times: dict[str, Integers] = {}
    runs: Any = np.array(axes.one.extents[-1].batch, axes.kind)
    for index in reversed(axes.convs):
        is_last = index == axes.convs[-1]
        steps = runs * axes.rows(lambda counts: counts.most_stripes + counts.run_in)[..., None] if is_last else runs
        tiles = steps * axes.of_tiles(lambda tiles, index=index: tiles.channel_tiles(index))
        times |= {OUTPUT_CACHE: tiles} if is_last else {}
        times |= dict.fromkeys((filter_cache(index + 1), words_cache(index + 1)), np.where(resident, 1, tiles))
        runs = steps * axes.again if is_last else steps
    times[INPUT_CACHE] = np.where(axes.rows(lambda counts: counts.streams)[..., None], 1, runs)
    return {name: np.where(double & (each > 1), 2, 1) for name, each in times.items()}
