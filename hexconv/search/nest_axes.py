"""Take plans of a nest of rows along each axis of the space: plans that differ in stripes, or that differ in tiles.

The words of a plan and its stripes decide how often rows are made, steps run and filters staged. Its words and k_split
decide how much one row, step or filter takes. One thing depends on both: where stripes stand inside of channel tiles,
the rows that the last conv reads are made once for each of its tiles.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers, integer_type
from hexconv.analyze.rows import PlannedRows, planned_rows, rows_work
from hexconv.kernel.depthwise import WAYS_TOGETHER
from hexconv.search.space import Space
from hexconv.spec import Chain, Plan


@dataclass(frozen=True)
class NestAxes:
    """A chain over a plan space in which all plans have a nest of rows, and stripes of one kind.

    Arrays have the shape [words, H, K], or broadcast to it: H counts heights of stripes, K counts `k_splits`.
    """

    chain: Chain
    space: Space

    @cached_property
    def by_rows(self) -> dict[Plan, list[PlannedRows]]:
        """The plans [H] for each combination of words that matters to stripes; all channels of a conv in one tile."""
        most, words = int(self.space.k_splits[-1]), dict.fromkeys(map(alike, self.space.words))
        return {plan: [self._at(plan, stripe, most) for stripe in self.space.stripes] for plan in words}

    @cached_property
    def by_tiles(self) -> dict[Plan, list[PlannedRows]]:
        """The plans [K] for the same words, with stripes of one height.

        Stripes are either rows or blocks of 8 rows: all of a space are of one kind.
        """
        stripe = {"rows": self.space.rows[0]} if self.space.rows else {"h_split": 1}
        return {plan: [self._at(plan, stripe, int(k)) for k in self.space.k_splits] for plan in self.by_rows}

    @property
    def one(self) -> list[PlannedRows]:
        """The plans [K] of one combination of words, for figures that don't depend on words."""
        return next(iter(self.by_tiles.values()))

    @property
    def threads(self) -> int:
        """The number of threads, which is the same for every plan."""
        return self.one[0].bands.count

    def _at(self, words: Plan, stripe: Mapping[str, int], k_split: int) -> PlannedRows:
        return planned_rows(self.chain, replace(words, **stripe, k_split=k_split))

    @cached_property
    def kind(self) -> type:
        """The integer type that holds the figures of the plan that repeats most."""
        most = replace(self.space.words[0], order="k_outer", halo="recompute", column_halo="recompute")
        work = rows_work(planned_rows(self.chain, most))
        return integer_type(4 * max(sum(work.traffic_bytes.values()), sum(work.macs.values())))

    def rows(self, of: Callable[[PlannedRows], Any]) -> Integers:
        """Return figures [words, H, 1, ...] that depend on stripes."""
        known = {words: [of(planned) for planned in row] for words, row in self.by_rows.items()}
        return self.of_words(known)[:, :, None]

    def tiles(self, of: Callable[[PlannedRows], Any]) -> Integers:
        """Return figures [1, 1, K, ...] that depend on channel tiles alone."""
        return np.array([of(planned) for planned in self.by_tiles[alike(self.space.words[0])]])[None, None]

    def copies(self, of: Callable[[PlannedRows], Any]) -> Integers:
        """Return figures [words, 1, K, ...] that depend on channel tiles and on who copies."""
        known = {words: [of(planned) for planned in row] for words, row in self.by_tiles.items()}
        return self.of_words(known)[:, None]

    @cached_property
    def again(self) -> Integers:
        """How many times each row is made that the last conv reads."""
        last = len(self.chain.conv) - 1
        repeats = (self.space.flags("order", "k_outer")) & (self.rows(lambda planned: planned.stripes) > 1)
        return np.where(repeats, self.tiles(lambda planned: planned.channel_tiles(last)), 1).astype(self.kind)

    def times(self, tensor: int, of: Callable[[PlannedRows], int]) -> Integers:
        """Return how often something happens to a tensor, repetitions included."""
        times = self.rows(of).astype(self.kind)
        return times if tensor == len(self.chain.conv) else times * self.again

    def made(self, tensor: int) -> tuple[Integers, Integers, Integers]:
        """Count rows with elements, rows without elements, and steps of a tensor."""
        rows = self.times(tensor, lambda planned: planned.logical_rows(tensor))
        stored = self.times(tensor, lambda planned: planned.stored_rows(tensor))
        return rows, stored - rows, self.times(tensor, lambda planned: planned.step_count(tensor))

    def together(self, tensor: int) -> list[Integers]:
        """Count how often rows of a tensor are made in each way (`WAYS_TOGETHER`)."""
        times = self.rows(lambda planned: planned.rows_together(tensor)).astype(self.kind)
        made = times if tensor == len(self.chain.conv) else times * self.again[..., None]
        return [made[..., way] for way in range(len(WAYS_TOGETHER))]

    def stagings(self, index: int) -> Integers:
        """Count how often the whole filter of a conv is staged."""
        once = self.rows(lambda planned: planned.filter_stagings(index)).astype(self.kind)
        resident = self.space.flags("filters", "resident")
        return once if index == len(self.chain.conv) - 1 else np.where(resident, once, once * self.again)

    def of_words(self, known: Mapping[Plan, Any]) -> Integers:
        """Return figures [words, ...] that are known of one plan for all words that are alike."""
        return np.array([known[alike(plan)] for plan in self.space.words])


def alike(words: Plan) -> Plan:
    """Reset the words on which neither rows by themselves nor tiles by themselves depend."""
    return replace(words, order="h_outer", storage="global")
