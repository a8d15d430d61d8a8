"""Take plans of a nest of blocks along the axis of their stripes: with rings, and without.

Plans without rings are computed at once, on vectors (`hexconv.analyze.slabs`). Of those with rings each height of a
stripe has a few numbers of its own (`hexconv.analyze.rolled`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.rolled import Rolled
from hexconv.analyze.slabs import Splits
from hexconv.search.space import Space


@dataclass(frozen=True)
class BlockAxes:
    """A plan space of a chain in which all plans have a nest of blocks.

    Attributes:
        space: the plans.
        splits: how their splits divide the chain's tensors.
    """

    space: Space
    splits: Splits

    @cached_property
    def _rolled(self) -> list[Rolled]:
        """The plans with rings, [H]; none if no plan of the space has any."""
        return [Rolled(self.splits.chain, int(h)) for h in self.splits.h_split] if self.space.rolls.any() else []

    def chosen(self, whole: Any, rolled: Callable[[Rolled], Any]) -> Integers:
        """Return figures [words, H, 1] of all plans.

        Args:
            whole: the figures [H] of plans without rings, or one figure for all.
            rolled: gives the figure of a plan with rings.
        """
        known = np.broadcast_to(whole, self.splits.h_split.shape)[None, :, None]
        if not self._rolled:
            return known
        return np.where(self.space.rolls, np.array([rolled(each) for each in self._rolled])[None, :, None], known)

    def slabs(self, tensor: int) -> Integers:
        """Return the slabs that are held of a tensor, with those that are read ahead."""
        held = self.chosen(self.splits.slabs[tensor], lambda rolled: rolled.slabs[tensor])
        if tensor:
            return held
        ahead = self.chosen(0, lambda rolled: rolled.ahead)
        return held + np.where(self.space.flags("buffering", "double"), ahead, 0)

    def step_slabs(self, index: int) -> Integers:
        """Return the slabs that conv `index` makes in a step."""
        return self.chosen(self.splits.step_slabs[index], lambda rolled: rolled.step_slabs[index])

    def row_steps(self, index: int) -> Integers:
        """Return the trips of the loop over the steps of conv `index`."""
        return self.chosen(self.splits.row_steps[index], lambda rolled: rolled.row_steps[index])

    @property
    def has_rings(self) -> Integers:
        """Whether any tensor has a ring."""
        return self.chosen(False, lambda rolled: rolled.streamed > 0)

    @property
    def reads_first(self) -> Integers:
        """Whether steps come first that only read the input."""
        single = self.chosen(0, lambda rolled: rolled.reads_first(0))
        double = self.chosen(0, lambda rolled: rolled.reads_first(rolled.ahead))
        return np.where(self.space.flags("buffering", "double"), double, single) > 0
