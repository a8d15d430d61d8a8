"""A chain under a plan, and what the closed forms of its nest say: caches, who shares memory, what moves, MACs."""

from dataclasses import dataclass, replace
from functools import cached_property

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.cache import PredictedCache
from hexconv.analyze.footprint import plain_footprints
from hexconv.analyze.needed import Work
from hexconv.analyze.outside import rows_touched
from hexconv.analyze.rolled_blocks import planned_blocks
from hexconv.analyze.rows import PlannedRows, planned_rows, rows_work
from hexconv.analyze.rows_footprint import rows_allocations, rows_footprints
from hexconv.analyze.sharing import PredictedAllocation, plain_allocations
from hexconv.analyze.traffic import plain_touched, plain_work
from hexconv.spec import Case, Chain, Plan, nest_of
from hexconv.spec.kernels import Nest
from hexconv.spec.places import MIXED
from hexconv.spec.vectors import vectors_bytes


@dataclass(frozen=True)
class Planned:
    """A chain under a plan; everything else is derived from it, each figure once.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
    """

    chain: Chain
    plan: Plan

    @classmethod
    def of(cls, case: Case) -> "Planned":
        """The chain of a case under the plan that is lowered."""
        return cls(case.chain, case.settled)

    @cached_property
    def nest(self) -> Nest:
        """The nest that the chain is computed in."""
        return nest_of(self.chain, self.plan)

    @cached_property
    def blocks(self) -> PlannedBlocks:
        """What follows for a nest of blocks, that of the plain kernel."""
        return planned_blocks(self.chain, self.plan)

    @cached_property
    def rows(self) -> PlannedRows:
        """What follows for a nest of rows, that of HVX kernels."""
        return planned_rows(self.chain, self.plan)

    @cached_property
    def caches(self) -> tuple[PredictedCache, ...]:
        """Every cache of the kernel that the chain gets, in the order in which they are first written."""
        return rows_footprints(self.rows) if self.nest == "rows" else plain_footprints(self.blocks)

    @cached_property
    def allocations(self) -> tuple[PredictedAllocation, ...]:
        """Every physical allocation of that kernel, in order."""
        return tuple(rows_allocations(self.rows)) if self.nest == "rows" else plain_allocations(self.blocks)

    @cached_property
    def work(self) -> Work:
        """All bytes moved and all MACs done, by the nest; and what a call reads beside: biases, vectors and tables."""
        nest = self.nest_work
        return replace(nest, traffic_bytes=nest.traffic_bytes | vectors_bytes(self.chain))

    @cached_property
    def nest_work(self) -> Work:
        """All bytes that caches move and all MACs; if some caches lie in VTCM, also the traffic of those outside."""
        work = self._copied
        if self.plan.storage not in MIXED:
            return work
        outside = {each.name for each in self.caches if not each.is_in_vtcm(self.plan)}
        touched = rows_touched(self.rows) if self.nest == "rows" else plain_touched(self.blocks)
        there = {name: count for name, count in touched.items() if name in outside}
        return replace(work, traffic_bytes=work.traffic_bytes | there)

    @property
    def _copied(self) -> Work:
        return rows_work(self.rows) if self.nest == "rows" else plain_work(self.blocks)


def cache_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of the kernel that a chain gets under a plan, in the order in which they are first written.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 16, 16, 32), conv=(Conv2d(out_channels=32),))
    >>> [cache.name for cache in cache_footprints(chain, Plan())]
    ['input_cache', 'filter1_cache', 'output_cache']
    """
    return Planned(chain, plan).caches


def shared_allocations(chain: Chain, plan: Plan) -> tuple[PredictedAllocation, ...]:
    """Every physical allocation of the kernel that a chain gets, in order."""
    return Planned(chain, plan).allocations


def planned_work(chain: Chain, plan: Plan) -> Work:
    """All bytes moved and all multiply-accumulates done; if some caches lie in VTCM, also the traffic of those outside.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> [planned_work(chain, plan).macs["conv1"] for plan in (Plan(), Plan(order="h_outer", halo="roll"))]
    [4242014208, 566820864]
    """
    return Planned(chain, plan).work
