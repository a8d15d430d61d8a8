"""Compute the figures of every plan of a nest of rows at once, from a few plans of each axis of the space.

The words of a plan and its stripes decide how often rows are made, steps run and filters staged. Its words and k_split
decide how much one row, step or filter takes. One thing depends on both: where stripes stand inside of channel tiles,
the rows that the last conv reads are made once for each of its tiles. So every figure is a sum of products of the two,
and the closed form of single plans (`hexconv.analyze.rows`, `hexconv.analyze.nest_packets`) gives the factors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.analyze.copy_packets import on_filter, on_input, on_output
from hexconv.analyze.footprint import PredictedCache
from hexconv.analyze.nest_packets import on_conv
from hexconv.analyze.outside import touched_by
from hexconv.analyze.packet_parts import Parts, Spent
from hexconv.analyze.rows import PlannedRows, planned_rows, rows_work
from hexconv.analyze.rows_footprint import rows_footprints
from hexconv.kernel.depthwise import TILE_ROWS
from hexconv.lower.vtcm import GRANULE_BYTES
from hexconv.search.exact import Integers, integer_type
from hexconv.search.space import Space
from hexconv.spec import Chain, Plan
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache, filter_name
from hexconv.spec.places import MIXED


@dataclass(frozen=True)
class NestGrid:
    """A chain over a plan space in which all plans have a nest of rows, and stripes of one kind.

    Arrays have the shape [words, H, K], or broadcast to it: H counts heights of stripes, K counts `k_splits`.
    """

    chain: Chain
    space: Space

    @cached_property
    def _by_rows(self) -> dict[Plan, list[PlannedRows]]:
        """The plans [H] for each combination of words that matters to stripes; all channels of a conv in one tile."""
        most, words = int(self.space.k_splits[-1]), dict.fromkeys(map(_alike, self.space.words))
        return {plan: [self._at(plan, stripe, most) for stripe in self.space.stripes] for plan in words}

    @cached_property
    def _by_tiles(self) -> dict[Plan, list[PlannedRows]]:
        """For the same words, the plans [K], with stripes of one height.

        Stripes are either rows or blocks of 8 rows: all of a space are of one kind.
        """
        stripe = {"rows": self.space.rows[0]} if self.space.rows else {"h_split": 1}
        return {plan: [self._at(plan, stripe, int(k)) for k in self.space.k_splits] for plan in self._by_rows}

    @property
    def _one(self) -> list[PlannedRows]:
        """The plans [K] of one combination of words, for figures that don't depend on words."""
        return next(iter(self._by_tiles.values()))

    @property
    def _threads(self) -> int:
        """The number of threads, which is the same for every plan."""
        return self._one[0].bands.count

    def _at(self, words: Plan, stripe: Mapping[str, int], k_split: int) -> PlannedRows:
        return planned_rows(self.chain, replace(words, **stripe, k_split=k_split))

    @cached_property
    def _kind(self) -> type:
        """The integer type that holds the figures of the plan that repeats most."""
        work = rows_work(self.chain, replace(self.space.words[0], order="k_outer", halo="recompute"))
        return integer_type(4 * max(sum(work.traffic_bytes.values()), sum(work.macs.values())))

    def _rows(self, of: Callable[[PlannedRows], Any]) -> Integers:
        """Return figures [words, H, 1, ...] that depend on stripes."""
        known = {words: [of(planned) for planned in row] for words, row in self._by_rows.items()}
        return np.array([known[_alike(plan)] for plan in self.space.words])[:, :, None]

    def _tiles(self, of: Callable[[PlannedRows], Any]) -> Integers:
        """Return figures [1, 1, K, ...] that depend on channel tiles alone."""
        return np.array([of(planned) for planned in self._by_tiles[_alike(self.space.words[0])]])[None, None]

    def _copies(self, of: Callable[[PlannedRows], Any]) -> Integers:
        """Return figures [words, 1, K, ...] that depend on channel tiles and on who copies."""
        known = {words: [of(planned) for planned in row] for words, row in self._by_tiles.items()}
        return np.array([known[_alike(plan)] for plan in self.space.words])[:, None]

    @cached_property
    def _again(self) -> Integers:
        """How many times each row is made that the last conv reads."""
        last = len(self.chain.conv) - 1
        repeats = (self.space.flags("order", "k_outer")) & (self._rows(lambda planned: planned.stripes) > 1)
        return np.where(repeats, self._tiles(lambda planned: planned.channel_tiles(last)), 1).astype(self._kind)

    def _times(self, tensor: int, of: Callable[[PlannedRows], int]) -> Integers:
        """Return how often something happens to a tensor, repetitions included."""
        times = self._rows(of).astype(self._kind)
        return times if tensor == len(self.chain.conv) else times * self._again

    def _made(self, tensor: int) -> tuple[Integers, Integers, Integers]:
        """Count rows with elements, rows without elements, and steps of a tensor."""
        rows = self._times(tensor, lambda planned: planned.logical_rows(tensor))
        stored = self._times(tensor, lambda planned: planned.stored_rows(tensor))
        return rows, stored - rows, self._times(tensor, lambda planned: planned.step_count(tensor))

    def _together(self, tensor: int) -> list[Integers]:
        """Count how often four, two and one rows of a tensor are made together."""
        times = self._rows(lambda planned: planned.rows_together(tensor)).astype(self._kind)
        made = times if tensor == len(self.chain.conv) else times * self._again[..., None]
        return [made[..., size] for size in range(len(TILE_ROWS))]

    def _stagings(self, index: int) -> Integers:
        """Count how often the whole filter of a conv is staged."""
        once = self._rows(lambda planned: planned.filter_stagings(index)).astype(self._kind)
        resident = self.space.flags("filters", "resident")
        return once if index == len(self.chain.conv) - 1 else np.where(resident, once, once * self._again)

    @property
    def footprint_bytes(self) -> Integers:
        """The bytes of all caches, each cache rounded up to whole granules."""
        caches = {words: [self._caches(planned) for planned in row] for words, row in self._by_tiles.items()}
        known = {name: cache for row in caches.values() for each in row for name, cache in each.items()}
        slots, tensors, total = self._slots(), self._tensors(known), np.zeros(1, self._kind)
        for name in known:
            of_words = {words: [_bytes_of(each, name) for each in row] for words, row in caches.items()}
            sizes = np.array([of_words[_alike(plan)] for plan in self.space.words], self._kind)[:, None]
            rows, rows_of_one = self._cache_rows(tensors[name]) if name in tensors else (1, 1)
            bytes = sizes // rows_of_one * rows * slots.get(name, 1) * self._counts(known[name])
            of_threads = {words: _copies_of(row[0], name) for words, row in caches.items()}
            copies = np.array([of_threads[_alike(plan)] for plan in self.space.words])[:, None, None]
            total = total + copies * -(-bytes // (copies * GRANULE_BYTES)) * GRANULE_BYTES
        return total

    def _counts(self, cache: PredictedCache) -> Integers:
        """Return [words, 1, 1]: 1 where a cache counts, else 0.

        Where some cache lies in VTCM, those in VTCM count; elsewhere all do.
        """
        return np.array([cache.is_in_vtcm(plan) or not plan.uses_vtcm for plan in self.space.words])[:, None, None] * 1

    def _caches(self, planned: PlannedRows) -> dict[str, PredictedCache]:
        """Return the caches of a plan with one slot each, by name."""
        return {cache.name: cache for cache in rows_footprints(self.chain, self._single(planned).plan)}

    def _single(self, planned: PlannedRows) -> PlannedRows:
        """Return the same plan with kernels that copy themselves, so that no cache has a second slot."""
        return planned_rows(self.chain, replace(planned.plan, buffering="single"))

    def _tensors(self, caches: Mapping[str, PredictedCache]) -> dict[str, int]:
        """Map the caches that hold rows to the tensor whose rows they hold."""
        held = [name for name, cache in caches.items() if cache.role in ("input", "intermediate", "output")]
        return {name: tensor for tensor, name in enumerate(held)}

    def _cache_rows(self, tensor: int) -> tuple[Integers, Integers]:
        """Return the rows of a tensor's cache, and the rows of the same cache in `_caches`."""
        known = {words: self._single(row[0]).cache_rows[tensor] for words, row in self._by_tiles.items()}
        sampled = np.array([known[_alike(plan)] for plan in self.space.words])[:, None, None]
        return self._rows(lambda planned: planned.cache_rows[tensor]), sampled

    def _slots(self) -> dict[str, Integers]:
        """Return the slots of each cache: 2 if it is copied to or from more than once while something computes."""
        double, resident = self.space.flags("buffering", "double"), self.space.flags("filters", "resident")
        times: dict[str, Integers] = {}
        runs: Any = np.array(self._one[0].extents[-1].batch, self._kind)
        for index in reversed(range(len(self.chain.conv))):
            is_last = index == len(self.chain.conv) - 1
            trips = self._rows(lambda planned: planned.bands.most_stripes + planned.run_in)
            steps = runs * trips if is_last else runs
            tiles = steps * self._tiles(lambda planned, index=index: planned.channel_tiles(index))
            times |= {OUTPUT_CACHE: tiles} if is_last else {}
            times[filter_cache(index + 1)] = np.where(resident, 1, tiles)
            runs = steps * self._again if is_last else steps
        times[INPUT_CACHE] = np.where(self._rows(lambda planned: planned.streams), 1, runs)
        return {name: np.where(double & (each > 1), 2, 1) for name, each in times.items()}

    @property
    def traffic_bytes(self) -> Integers:
        """The bytes that all tensors move between memory and the caches."""
        sample, convs = self._one, range(len(self.chain.conv))
        work = [rows_work(self.chain, planned.plan).traffic_bytes for planned in sample]
        total = self._made(0)[0] * (work[0]["input"] // max(sample[0].logical_rows(0), 1)) + work[0]["output"]
        for index in convs:
            sizes = [
                each[filter_name(index + 1)] // p.filter_stagings(index) for each, p in zip(work, sample, strict=True)
            ]
            total = total + self._stagings(index) * np.array(sizes, self._kind)
        return total + self._outside_bytes if any(plan.storage in MIXED for plan in self.space.words) else total

    @property
    def _outside_bytes(self) -> Integers:
        """The bytes that kernels read and write in caches that don't count."""
        caches = {cache.name: cache for one in self._one for cache in rows_footprints(self.chain, one.plan)}
        total: Any = 0
        for index in range(len(self.chain.conv)):
            making = self._times(index + 1, lambda planned, index=index: planned.making_steps(index + 1))
            touched = [touched_by(planned, index) for planned in self._one]
            counts = (*self._made(index + 1)[:2], making, self._threads, *self._together(index + 1))
            for times, sizes in zip(counts, zip(*(each.parts for each in touched), strict=True), strict=True):
                for name in dict.fromkeys(name for size in sizes for name in size):
                    of_tiles = np.array([size[name] for size in sizes], self._kind)
                    total = total + times * (1 - self._counts(caches[name])) * of_tiles
        return total

    @property
    def macs(self) -> Integers:
        """The multiply-accumulates of all convs."""
        total: Any = 0
        for index in range(len(self.chain.conv)):
            once = [planned.macs_once(index) for planned in self._one]
            row = [
                (planned.macs(index) - first) // max(planned.logical_rows(index + 1), 1)
                for planned, first in zip(self._one, once, strict=True)
            ]
            total = total + self._made(index + 1)[0] * np.array(row, self._kind) + np.array(once, self._kind)
        return total

    def packets(self, priced: Callable[[Parts], float]) -> Integers:
        """Return the packets that the model gives: the counts of parts, times their prices."""
        steps = self._made(len(self.chain.conv))[2]
        output = [self._copies(lambda planned, of=of: priced(of(on_output(planned)))) for of in (_step, _once)]
        total = steps * output[0] + output[1]
        prices = [self._rows(lambda planned: _prices(on_input(planned), priced))]
        for index in range(len(self.chain.conv)):
            prices.append(self._tiles(lambda planned, index=index: _prices(on_conv(planned, index), priced)))
            staged = self._copies(lambda planned, index=index: priced(on_filter(planned, index)))
            total = total + self._stagings(index) * staged
        for tensor, each in enumerate(prices):
            counts = (*self._made(tensor), self._threads, *self._together(tensor))
            total = total + sum(count * each[..., place] for place, count in enumerate(counts))
        return total.astype(float)


def _bytes_of(caches: Mapping[str, PredictedCache], name: str) -> int:
    """Return the bytes of a cache; 0 if a plan doesn't have it."""
    return caches[name].bytes if name in caches else 0


def _copies_of(caches: Mapping[str, PredictedCache], name: str) -> int:
    """Return the number of equal copies of a cache, one a thread; 1 if a plan doesn't have it."""
    return caches[name].copies if name in caches else 1


def _alike(words: Plan) -> Plan:
    """Reset the words on which neither rows by themselves nor tiles by themselves depend."""
    return replace(words, order="h_outer", storage="global")


def _prices(spent: Spent, priced: Callable[[Parts], float]) -> list[float]:
    """Price a row with elements, a row without, a step, what happens once, and rows that are made together."""
    return [priced(parts) for parts in spent.parts]


def _step(spent: Spent) -> Parts:
    return spent.step


def _once(spent: Spent) -> Parts:
    return spent.once


def nest_grid(chain: Chain, space: Space, priced: Callable[[Parts], float]) -> tuple[Integers, ...]:
    """Compute footprint, traffic, MACs and packets of every plan, [N] each."""
    grid = NestGrid(chain, space)
    figures = (grid.footprint_bytes, grid.traffic_bytes, grid.macs, grid.packets(priced))
    return tuple(np.broadcast_to(each, space.shape).ravel() for each in figures)
