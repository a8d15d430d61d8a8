"""The plans that a chain may have beside tensors in VTCM, and what it moves where its ends are such tensors."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

from hexconv.analyze import planned_work
from hexconv.search.grid import Figures
from hexconv.spec import Chain

Flags = tuple[bool, bool]
"""Whether what a chain reads lies in VTCM, and whether what it writes does."""
Cost = tuple[int, float]
"""The bytes of memory that steps move, then their packets by the model."""


@dataclass(frozen=True)
class PlanChoices:
    """The plans that a chain may have, and what it moves by each of them.

    Attributes:
        chain: the chain.
        plans: the figures of each plan; the first one is that of the chain alone.
    """

    chain: Chain
    plans: tuple[Figures, ...]

    @cached_property
    def _ends(self) -> list[tuple[int, int]]:
        """The bytes of the input that each plan copies, and those of the output."""
        works = [planned_work(self.chain, plan.plan).traffic_bytes for plan in self.plans]
        return [(work["input"], work["output"]) for work in works]

    @cached_property
    def _sorted(self) -> dict[Flags, list[tuple[Cost, int, int]]]:
        """For each flags: cost, footprint and number of all plans, the best first."""
        return {
            flags: sorted(
                ((plan.traffic_bytes - flags[0] * read - flags[1] * written, plan.latency_packets), size, number)
                for number, (plan, (read, written)) in enumerate(zip(self.plans, self._ends, strict=True))
                for size in [plan.footprint_bytes]
            )
            for flags in product((False, True), (False, True))
        }

    def best(self, room_bytes: int, flags: Flags) -> tuple[Cost, Figures] | None:
        """Return the cost and the figures of the best plan that fits; None where none does."""
        for cost, size, number in self._sorted[flags]:
            if size <= room_bytes:
                return cost, self.plans[number]
        return None
