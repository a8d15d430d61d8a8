"""Compute the bytes of all caches of every plan of a nest of rows at once."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from hexconv.analyze.cache import PredictedCache
from hexconv.analyze.exact import Integers
from hexconv.analyze.rows import PlannedRows
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.lower.vtcm import GRANULE_BYTES
from hexconv.search.nest_axes import NestAxes
from hexconv.spec import Plan
from hexconv.spec.extents import REMEMBERED
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache, words_cache

OF_ROWS = ("input", "intermediate", "output")
"""The roles of caches that hold rows of a tensor."""
ALONE = -1


def footprint_bytes(axes: NestAxes) -> Integers:
    """Compute the bytes of all memories; what one holds is rounded up to whole granules."""
    caches = {words: [_caches(planned) for planned in row] for words, row in axes.by_tiles.items()}
    known = {name: cache for row in caches.values() for each in row for name, cache in each.items()}
    slots, total = _slots(axes), np.zeros(1, axes.kind)
    largest: dict[tuple[int, str], Integers] = {}
    for name, cache in known.items():
        of_words = {words: [each.get(name) for each in row] for words, row in caches.items()}
        held, turn = _held_bytes(axes, cache, of_words, slots.get(name, 1)), _turn(axes, name)
        total = total + np.where(turn == ALONE, held, 0)
        for memory in set(turn.ravel()) - {ALONE}:
            others = largest.get((memory, cache.dtype), 0)
            largest[memory, cache.dtype] = np.maximum(others, np.where(turn == memory, held, 0))
    return sum(largest.values(), total)


def _held_bytes(
    axes: NestAxes, cache: PredictedCache, of_words: Mapping[Plan, list[PredictedCache | None]], slots: Any
) -> Integers:
    """Compute the bytes of VTCM that one cache needs: 0 in plans that don't have it, or whose figure leaves it out.

    Args:
        axes: the plans.
        cache: the cache as some plan has it.
        of_words: the cache [K] as plans of one height of stripes have it, with one slot; None where they don't.
        slots: how many slots it has.
    """
    known = {words: [each.bytes if each else 0 for each in row] for words, row in of_words.items()}
    sizes = axes.of_words(known).astype(axes.kind)[:, None]
    rows, rows_of_one = _cache_rows(axes, cache.number) if cache.role in OF_ROWS else (1, 1)
    bytes = sizes // rows_of_one * rows * slots * counts(axes, cache)
    of_threads = {words: row[0].copies if row[0] else 1 for words, row in of_words.items()}
    copies = axes.of_words(of_threads)[:, None, None]
    return copies * -(-bytes // (copies * GRANULE_BYTES)) * GRANULE_BYTES


def _turn(axes: NestAxes, name: str) -> Integers:
    """Return [words, H, 1]: the number of the memory in which a cache takes turns with others, or ALONE."""
    return axes.rows(lambda planned: planned.turns.get(name, ALONE))


def counts(axes: NestAxes, cache: PredictedCache) -> Integers:
    """Return [words, 1, 1]: 1 where a cache counts, else 0.

    Where some cache lies in VTCM, those in VTCM count; elsewhere all do that there are.
    """
    there = [cache.is_in_vtcm(plan) or not (plan.uses_vtcm or cache.is_vtcm_only) for plan in axes.space.words]
    return np.array(there)[:, None, None] * 1


def _caches(planned: PlannedRows) -> dict[str, PredictedCache]:
    """Return all caches that a plan may have, with one slot each, by name."""
    return {cache.name: cache for cache in rows_footprints(_single(planned))}


@lru_cache(REMEMBERED)
def _single(planned: PlannedRows) -> PlannedRows:
    """Return the same plan with all that it may have in VTCM, and no second slots: kernels that copy themselves."""
    return replace(planned, plan=replace(planned.plan, buffering="single", storage="vtcm"))


def _cache_rows(axes: NestAxes, tensor: int) -> tuple[Integers, Integers]:
    """Return the rows of a tensor's cache, and the rows of the same cache in `_caches`."""
    known = {words: _single(row[0]).cache_rows[tensor] for words, row in axes.by_tiles.items()}
    sampled = axes.of_words(known)[:, None, None]
    return axes.rows(lambda planned: planned.cache_rows[tensor]), sampled


def _slots(axes: NestAxes) -> dict[str, Integers]:
    """Return the slots of each cache: 2 if it is copied to or from more than once while something computes."""
    double, resident = axes.space.flags("buffering", "double"), axes.space.flags("filters", "resident")
    times: dict[str, Integers] = {}
    runs: Any = np.array(axes.one[0].extents[-1].batch, axes.kind)
    for index in reversed(range(len(axes.chain.conv))):
        is_last = index == len(axes.chain.conv) - 1
        trips = axes.rows(lambda planned: planned.bands.most_stripes + planned.run_in)
        steps = runs * trips if is_last else runs
        tiles = steps * axes.tiles(lambda planned, index=index: planned.channel_tiles(index))
        times |= {OUTPUT_CACHE: tiles} if is_last else {}
        times |= dict.fromkeys((filter_cache(index + 1), words_cache(index + 1)), np.where(resident, 1, tiles))
        runs = steps * axes.again if is_last else steps
    times[INPUT_CACHE] = np.where(axes.rows(lambda planned: planned.streams), 1, runs)
    return {name: np.where(double & (each > 1), 2, 1) for name, each in times.items()}
