"""Take plans of a nest of blocks along each axis of the space: plans that differ in stripes, or in tiles."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.exact import Integers, ceil_divide
from hexconv.analyze.rolled_blocks import planned_blocks
from hexconv.search.space import Space
from hexconv.spec import Chain, Extents, Plan, tensor_extents


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
