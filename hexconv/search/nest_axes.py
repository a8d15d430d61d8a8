"""Take the figures of a nest of rows along each axis of the space: for all heights of stripes, and for each k_split.

The words of a plan and its stripes decide how often rows are made, steps run and filters staged
(`hexconv.analyze.stripe_counts`). Its words and k_split decide how much one row, step or filter takes
(`hexconv.search.nest_tiles`). One thing depends on both: where stripes stand inside of channel tiles, the rows that the
last conv reads are made once for each of its tiles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers, integer_type
from hexconv.analyze.rows import PlannedRows, planned_rows
from hexconv.analyze.rows_of_chain import RowsOfChain
from hexconv.analyze.stripe_counts import StripeCounts, stripe_counts
from hexconv.search.nest_tiles import WAYS, Tiles, Way
from hexconv.search.space import Space
from hexconv.spec import Chain
from hexconv.spec.extents import ROW_BLOCK


@dataclass(frozen=True)
class NestAxes:
    """A chain over a plan space in which all plans have a nest of rows, and stripes of one kind.

    Arrays have the shape [words, H, K], or broadcast to it: H counts heights of stripes, K counts `k_splits`.
    """

    chain: Chain
    space: Space

    @cached_property
    def tiles(self) -> list[Tiles]:
        """What rows, steps and filters take, [K], with stripes of one height.

        Stripes are either rows or blocks of 8 rows: all of a space are of one kind.
        """
        stripe = {"rows": self.space.rows[0]} if self.space.rows else {"h_split": 1}
        words = replace(self.space.words[0], order="h_outer", halo="recompute", column_halo="recompute")
        if self.space.words[0].column_halo == "keep":
            words = replace(words, halo="roll", column_halo="keep")
        plan = replace(words, buffering="single", filters="per_tile", storage="global", **stripe)
        first = Tiles(planned_rows(self.chain, replace(plan, k_split=int(self.space.k_splits[0]))))
        return [first, *(first.of_k_split(int(k_split)) for k_split in self.space.k_splits[1:])]

    @property
    def one(self) -> PlannedRows:
        """One plan, for figures that are the same for all."""
        return self.tiles[0].planned

    @property
    def convs(self) -> range:
        """The convs, counted from 0."""
        return range(len(self.chain.conv))

    @property
    def threads(self) -> int:
        """The number of threads, which is the same for every plan."""
        return self.one.bands.count

    @cached_property
    def _ways(self) -> dict[tuple[bool, bool], StripeCounts]:
        """What stripes do in each way that some plan has: whether they roll, and whether copies overlap compute."""
        rows, heights = RowsOfChain.of(self.one), tuple(_stripe_rows(stripe) for stripe in self.space.stripes)
        ways = dict.fromkeys((plan.halo == "roll", plan.buffering == "double") for plan in self.space.words)
        return {way: stripe_counts(rows, heights, *way) for way in ways}

    @cached_property
    def _way_of_words(self) -> Integers:
        """The number of the way that each combination of words has: [words]."""
        numbers = {way: number for number, way in enumerate(self._ways)}
        return np.array([numbers[plan.halo == "roll", plan.buffering == "double"] for plan in self.space.words])

    def rows(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return figures [words, H] or [words, ..., H] that depend on stripes."""
        return np.array([of(counts) for counts in self._ways.values()])[self._way_of_words]

    def times(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return how often something happens in all images, as in `rows`."""
        return self.rows(of).astype(self.kind) * self.one.extents[-1].batch

    def of_tiles(self, of: Callable[[Tiles], Any]) -> Integers:
        """Return figures [1, 1, K] that depend on channel tiles alone."""
        return np.array([of(tiles) for tiles in self.tiles])[None, None]

    def copies(self, of: Callable[[Tiles], Mapping[Way, Any]]) -> Integers:
        """Return figures [words, 1, K] that depend on channel tiles and on the way to copy, which `of` maps to them."""
        known = [of(tiles) for tiles in self.tiles]
        of_ways = np.array([[each[way] for each in known] for way in WAYS])
        return of_ways[self._copied, None]

    @cached_property
    def _copied(self) -> Integers:
        """The number of the way to copy (`WAYS`) that each combination of words has: [words]."""
        return np.array(
            [WAYS.index((plan.filters == "resident", plan.buffering == "double")) for plan in self.space.words]
        )

    @cached_property
    def kind(self) -> type:
        """The integer type that holds the figures of a plan that repeats everything most often."""
        again, batch = self.tiles[0].channel_tiles(self.convs[-1]), self.one.extents[-1].batch
        counts = self._ways.values()
        most = again * batch
        rows = [most * int(each) for each in np.max([each.logical_rows.max(axis=-1) for each in counts], axis=0)]
        staged = [most * int(each) for each in np.max([each.stagings.max(axis=-1) for each in counts], axis=0)]
        traffic = self.one.input_bytes(rows[0]) + self.tiles[0].output_bytes
        traffic += sum(staged[index + 1] * max(each.filter_bytes(index) for each in self.tiles) for index in self.convs)
        macs = sum(rows[index + 1] * max(each.row_macs(index) for each in self.tiles) for index in self.convs)
        macs += sum(max(each.staging_macs(index) for each in self.tiles) for index in self.convs)
        return integer_type(4 * max(traffic, macs))

    @cached_property
    def again(self) -> Integers:
        """How many times each row is made that the last conv reads."""
        repeats = self.space.flags("order", "k_outer") & (self.rows(lambda counts: counts.stripes) > 1)[..., None]
        tiles = self.of_tiles(lambda tiles: tiles.channel_tiles(self.convs[-1]))
        return np.where(repeats, tiles, 1)

    def repeated(self, tensor: int, times: Integers) -> Integers:
        """Return how often something happens to a tensor [words, H], repetitions included: [words, H, K]."""
        return times[..., None] if tensor == len(self.chain.conv) else times[..., None] * self.again

    def _all_repeated(self, times: Integers) -> Integers:
        """Return how often something happens to every tensor [words, T, H], repetitions included: [T, words, H, K]."""
        every = np.moveaxis(times, 1, 0)[..., None] * self.again
        every[-1] = times[:, -1, :, None]
        return every

    @cached_property
    def cache_rows(self) -> Integers:
        """The rows that the cache of every tensor holds: [words, T, H]."""
        return self.rows(lambda counts: counts.cache_rows)

    @cached_property
    def _made(self) -> tuple[Integers, Integers, Integers]:
        """Of every tensor [T, words, H, K]: rows with elements, rows without elements, and steps."""
        rows = self.times(lambda counts: counts.logical_rows)
        blank = self.times(lambda counts: counts.stored_rows) - rows
        steps = self.times(lambda counts: counts.steps)
        return self._all_repeated(rows), self._all_repeated(blank), self._all_repeated(steps)

    def made(self, tensor: int) -> tuple[Integers, Integers, Integers]:
        """Count rows with elements, rows without elements, and steps of a tensor."""
        rows, blank, steps = self._made
        return rows[tensor], blank[tensor], steps[tensor]

    def together(self, index: int) -> list[Integers]:
        """Count how often rows of conv `index` are made in each way (`WAYS_TOGETHER`); nothing unless it is depthwise.

        Rows of other convs take nothing beside what each row takes, however they are made.
        """
        if not self.tiles[0].is_depthwise(index):
            return []
        times = self.times(lambda counts: counts.together(index))
        return [self.repeated(index + 1, times[:, way]) for way in range(times.shape[1])]

    @cached_property
    def _stagings(self) -> Integers:
        """How often the filter of the conv that makes each tensor is staged: [T, words, H, K]."""
        staged = self._all_repeated(self.times(lambda counts: counts.stagings))
        return np.where(self.space.flags("filters", "resident"), 1, staged)

    def stagings(self, index: int) -> Integers:
        """Count how often the whole filter of a conv is staged."""
        return self._stagings[index + 1]


def _stripe_rows(stripe: dict[str, int]) -> int:
    """Return the rows of a stripe from the knob that states its height."""
    return stripe.get("rows") or stripe["h_split"] * ROW_BLOCK
