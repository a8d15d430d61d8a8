"""Plans of one chain as a grid of numpy axes, words x stripes x k_split; one plan is a grid of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.analyze.caches import PredictedCache
from hexconv.analyze.exact import Integers
from hexconv.spec import Plan
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache, words_cache
from hexconv.spec.places import MIXED

Way = tuple[bool, bool]
"""How stripes go: whether they roll, and whether copies overlap compute."""


def way_of(plan: Plan) -> Way:
    """Return how the stripes of a plan go."""
    return plan.halo == "roll", plan.buffering == "double"


@dataclass(frozen=True)
class Plans:
    """Plans of one chain as a grid with three axes: words x heights of stripes x values of k_split.

    Attributes:
        words: one plan for every combination of words, [words]; what their splits are doesn't matter.
        heights: the rows of a stripe, [H], where the output has as many.
        k_splits: the values of k_split, [K].
        sample: a plan with the words that all have in common: kernel, threads, strips, and whether stripes are blocks
            or rows, where that decides how the output lies.
    """

    words: tuple[Plan, ...]
    heights: tuple[int, ...]
    k_splits: tuple[int, ...]
    sample: Plan

    @classmethod
    def of(cls, plan: Plan) -> "Plans":
        """Return a grid of one plan."""
        return cls((plan,), (plan.stripe_rows,), (plan.k_split,), plan)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The sizes of the axes."""
        return len(self.words), len(self.heights), len(self.k_splits)

    def flags(self, knob: str, value: str) -> Integers:
        """Return where a knob has a value: [words, 1, 1]."""
        if (knob, value) not in self._flags:
            self._flags[knob, value] = np.array([getattr(plan, knob) == value for plan in self.words])[:, None, None]
        return self._flags[knob, value]

    @cached_property
    def _flags(self) -> dict[tuple[str, str], Integers]:
        """The flags that were asked for."""
        return {}

    @cached_property
    def rolls_in_tiles(self) -> Integers:
        """Return where stripes roll inside of channel tiles, each of which is staged once: [words, 1, 1]."""
        return np.array([plan.rolls_in_tiles for plan in self.words])[:, None, None]

    @cached_property
    def ways(self) -> list[Way]:
        """The ways in which the stripes of some plan go."""
        return list(dict.fromkeys(map(way_of, self.words)))

    @cached_property
    def _way_numbers(self) -> list[int]:
        """The number of the way of each combination of words."""
        return [self.ways.index(way_of(plan)) for plan in self.words]

    def of_words(self, of_ways: Mapping[Way, Any]) -> Integers:
        """Return a figure of each combination of words, [words, ...], from that of the way in which its stripes go."""
        return np.array([of_ways[way] for way in self.ways])[self._way_numbers]

    def two_slots(
        self,
        images: bool,
        steps: Sequence[Any],
        again: Sequence[Any],
        tiles: Sequence[Any],
        has_ring: Any,
        in_tiles: Sequence[Any],
    ) -> dict[str, Integers]:
        """Return by cache [words, H, K] whether it has two slots: it is copied more than once while something computes.

        Args:
            images: whether there are several images.
            steps: whether the loop over the stripes of each conv has several trips.
            again: whether loops repeat what each conv reads.
            tiles: the channel tiles of each conv.
            has_ring: whether the input has a ring.
            in_tiles: whether the stripes of each conv roll inside of its channel tiles; those of the last conv stand
                around all images.
        """
        double, per_tile = self.flags("buffering", "double"), self.flags("filters", "per_tile")
        repeated, found = np.full((1, 1, 1), images), dict[str, Any]()
        for index in reversed(range(len(steps))):
            copied = double & (repeated | steps[index] | (tiles[index] > 1))
            outermost = in_tiles[index] & (not found)
            staged = double & ((repeated & ~outermost) | (steps[index] & ~in_tiles[index]) | (tiles[index] > 1))
            found |= {} if found else {OUTPUT_CACHE: copied}
            found |= dict.fromkeys((filter_cache(index + 1), words_cache(index + 1)), staged & per_tile)
            repeated = repeated | again[index]
        return {**found, INPUT_CACHE: double & repeated & ~has_ring}

    def counts(self, cache: PredictedCache) -> Integers:
        """Return [words, 1, 1]: 1 where a cache counts, else 0.

        Where some cache lies in VTCM, those in VTCM count; elsewhere all do that there are.
        """
        plans = {plan.storage: plan for plan in self.words}
        there = {
            storage: cache.is_in_vtcm(plan) or not (plan.uses_vtcm or cache.is_vtcm_only)
            for storage, plan in plans.items()
        }
        if len(there) == 1:
            return np.full((1, 1, 1), int(*there.values()))
        return np.array([there[plan.storage] for plan in self.words])[:, None, None] * 1

    @cached_property
    def but_for_places(self) -> tuple["Plans", Any]:
        """The plans of which none differs from another in where its caches lie alone; and which of them each is like.

        Where caches lie decides what counts as footprint and as traffic, but not what steps make, copy and compute.
        """
        if not self.is_mixed:
            return self, slice(None)
        knobs = [field.name for field in fields(Plan) if field.name != "storage"]
        every = [tuple(getattr(plan, knob) for knob in knobs) for plan in self.words]
        kinds = {key: kind for kind, key in enumerate(dict.fromkeys(every))}
        words = tuple(self.words[every.index(key)] for key in kinds)
        return replace(self, words=words), [kinds[key] for key in every]

    @property
    def is_mixed(self) -> bool:
        """Whether some plan has caches in VTCM and others outside, where what kernels do is traffic, too."""
        return any(plan.storage in MIXED for plan in self.words)
