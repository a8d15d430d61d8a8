"""Plans of one chain as a grid of numpy axes, words x stripes x k_split; one plan is a grid of one."""

from dataclasses import dataclass

import numpy as np

from hexconv.analyze.caches import PredictedCache
from hexconv.analyze.exact import Integers
from hexconv.spec import Plan
from hexconv.spec.places import MIXED


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
        return np.array([getattr(plan, knob) == value for plan in self.words])[:, None, None]

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

    @property
    def is_mixed(self) -> bool:
        """Whether some plan has caches in VTCM and others outside, where what kernels do is traffic, too."""
        return any(plan.storage in MIXED for plan in self.words)
