"""A chain under a plan, and its closed forms: caches, shared memory, traffic, MACs, copies in flight.

A copy is what is started and waited for as one: the part of a tensor that a step copies, or one slab that is read into
a ring buffer.

With `buffering = "single"` no copy is under way: each is waited for at once. With `"double"`,
these are under way between their start and their wait:

- for a cache of two slots, the copy that a step needs and the next one, or the copies of the last two outputs;
- for a cache of one slot, one copy;
- for a ring buffer that is read ahead, the slabs that are read before the first step waits, or those that a step reads
  beside the ones read ahead of it;
- for any other ring buffer, one copy for each step that only reads, and the one after these.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from hexconv.analyze.block_grid import (
    BlockAxes,
    blocks_doubled,
    blocks_footprints,
    blocks_in_flight,
    blocks_macs,
    blocks_of_plan,
    blocks_traffic,
)
from hexconv.analyze.caches import PredictedAllocation, PredictedCache
from hexconv.analyze.needed import Work
from hexconv.analyze.row_axes import NestAxes
from hexconv.analyze.row_grid import (
    rows_allocations,
    rows_doubled,
    rows_footprints,
    rows_in_flight,
    rows_macs,
    rows_of_plan,
    rows_traffic,
)
from hexconv.analyze.row_nest import PlannedRows, planned_rows
from hexconv.analyze.shared_memory import blocks_allocations
from hexconv.spec import Case, Chain, Plan, nest_of
from hexconv.spec.kernels import Nest
from hexconv.spec.names import INPUT, OUTPUT, copied_arguments, copied_caches, filter_name
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
    def blocks(self) -> BlockAxes:
        """The plan as a grid of one, for a nest of blocks, that of the plain kernel."""
        return blocks_of_plan(self.chain, self.plan)

    @cached_property
    def rows(self) -> PlannedRows:
        """What follows for a nest of rows, that of HVX kernels."""
        return planned_rows(self.chain, self.plan)

    @cached_property
    def axes(self) -> NestAxes:
        """The plan as a grid of one, for a nest of rows."""
        return rows_of_plan(self.chain, self.plan)

    @cached_property
    def caches(self) -> tuple[PredictedCache, ...]:
        """Every cache of the kernel that the chain gets, in the order in which they are first written."""
        return rows_footprints(self.axes) if self.nest == "rows" else blocks_footprints(self.blocks)

    @cached_property
    def allocations(self) -> tuple[PredictedAllocation, ...]:
        """Every physical allocation of that kernel, in order."""
        return tuple(rows_allocations(self.axes)) if self.nest == "rows" else blocks_allocations(self.blocks)

    @cached_property
    def work(self) -> Work:
        """All bytes moved and all MACs done, by the nest; and what a call reads beside: biases, vectors and tables."""
        nest = self.nest_work
        return replace(nest, traffic_bytes=nest.traffic_bytes | vectors_bytes(self.chain))

    @cached_property
    def nest_work(self) -> Work:
        """All bytes that caches move and all MACs; if some caches lie in VTCM, also the traffic of those outside."""
        if self.nest == "rows":
            found = rows_traffic(self.axes), rows_macs(self.axes)
        else:
            found = blocks_traffic(self.blocks), blocks_macs(self.blocks)
        return Work(*({name: int(each.item()) for name, each in figures.items()} for figures in found))


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


def copies_in_flight(planned: Planned) -> dict[str, int]:
    """The largest number of copies of each tensor that have started and that nothing has waited for yet.

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> copies_in_flight(Planned(chain, Plan(filters="resident", buffering="double")))
    {'input': 2, 'filter1': 1, 'filter2': 1, 'output': 2}
    """
    convs = len(planned.chain.conv)
    tensors, caches = copied_arguments(convs), copied_caches(convs)
    if planned.plan.buffering == "single":
        return dict.fromkeys(tensors, 0)
    in_rows = planned.nest == "rows"
    two = rows_doubled(planned.axes) if in_rows else blocks_doubled(planned.blocks)
    copied = {INPUT, *map(filter_name, planned.chain.filters), OUTPUT}
    there = [each for each in zip(tensors, caches, strict=True) if each[0] in copied]
    in_flight = {name: 2 if cache in two else 1 for name, cache in there}
    return {**in_flight, "input": rows_in_flight(planned.axes) if in_rows else blocks_in_flight(planned.blocks)}
