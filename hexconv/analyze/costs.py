"""What other plans of a chain would cost, by the closed forms alone: memory, traffic, work, and which are best.

Nothing is lowered for it. Where a tensor has many blocks the splits are thinned out to powers of two, the plan's own
and the largest: costs are monotone enough between them to see where a chain stops fitting.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from hexconv.analyze.needed import needed_macs
from hexconv.analyze.predicted import predicted_allocations
from hexconv.analyze.traffic import planned_work
from hexconv.lower.vtcm import capacity_bytes, granules_bytes
from hexconv.spec import Chain, Plan, kernel_of, tensor_extents

MOST_SPLITS = 8
"""Up to so many blocks every split is looked at."""

FRONT_SPLITS = 6


@dataclass(frozen=True)
class PlanCost:
    """One plan and what it costs.

    Attributes:
        plan: the knobs.
        footprint_bytes: of the merged allocations together, each in whole granules of VTCM.
        traffic_bytes: copied between memory and caches; None for HVX kernels, whose copies have no closed form yet.
        recompute: MACs done over MACs needed; None for HVX kernels.
        fits: whether the footprint fits the VTCM of the plan's architecture.
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int | None
    recompute: float | None
    fits: bool


def plan_cost(chain: Chain, plan: Plan) -> PlanCost:
    """What one plan costs.

    Raises:
        InputError: TVM has no VTCM capacity for the plan's architecture.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> cost = plan_cost(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> cost.footprint_bytes, cost.fits, cost.recompute
    (540672, True, 2.5)
    """
    return _cost(chain, plan, capacity_bytes(plan.arch), needed_macs(chain))


def _cost(chain: Chain, plan: Plan, capacity_bytes: int, needed_macs: int) -> PlanCost:
    """What one plan costs; what all plans of a chain have in common comes in."""
    footprint = sum(granules_bytes(memory.bytes) for memory in predicted_allocations(chain, plan))
    fits = footprint <= capacity_bytes
    if kernel_of(chain, plan) == "hvx":
        return PlanCost(plan, footprint, None, None, fits)
    work = planned_work(chain, plan)
    recompute = sum(work.macs.values()) / needed_macs
    return PlanCost(plan, footprint, sum(work.traffic_bytes.values()), recompute, fits)


def _costs(chain: Chain, plans: Iterable[Plan], arch: str) -> tuple[PlanCost, ...]:
    """What many plans for one architecture cost."""
    capacity, needed = capacity_bytes(arch), needed_macs(chain)
    return tuple(_cost(chain, plan, capacity, needed) for plan in plans)


def split_costs(chain: Chain, plan: Plan) -> tuple[PlanCost, ...]:
    """The costs of a plan under other splits, `k_split` varying slowest; HVX kernels have no `k_split`."""
    outputs = tensor_extents(chain)[1:]
    h_splits = splits(max(output.row_blocks for output in outputs), plan.h_split)
    k_splits = splits(max(output.channel_blocks for output in outputs), plan.k_split)
    if kernel_of(chain, plan) == "hvx":
        k_splits = (plan.k_split,)
    plans = (replace(plan, k_split=k, h_split=h) for k, h in product(k_splits, h_splits))
    return _costs(chain, plans, plan.arch)


def splits(blocks: int, own: int, most: int = MOST_SPLITS) -> tuple[int, ...]:
    """The splits of `blocks` blocks to look at: all, or where there are many powers of two, the last and `own`.

    >>> splits(4, 2), splits(20, 3)
    ((1, 2, 3, 4), (1, 2, 3, 4, 8, 16, 20))
    """
    if blocks <= most:
        return tuple(range(1, blocks + 1))
    return tuple(sorted({own, blocks, *(1 << power for power in range(blocks.bit_length()))}))


def all_costs(chain: Chain, plan: Plan) -> tuple[PlanCost, ...]:
    """The costs of every order, halo and filter staging under every split; none for HVX kernels."""
    if kernel_of(chain, plan) == "hvx":
        return ()
    return _costs(chain, _plans(chain, plan), plan.arch)


def _plans(chain: Chain, plan: Plan) -> Iterator[Plan]:
    """All plans that `all_costs` looks at, the given one among them."""
    outputs = tensor_extents(chain)[1:]
    h_splits = splits(max(output.row_blocks for output in outputs), plan.h_split, FRONT_SPLITS)
    k_splits = splits(max(output.channel_blocks for output in outputs), plan.k_split, FRONT_SPLITS)
    orders = (("k_outer", "recompute"), ("h_outer", "recompute"), ("h_outer", "roll"))
    for (order, halo), filters in product(orders, ("per_tile", "resident")):
        for k, h in product(k_splits, h_splits):
            yield replace(plan, k_split=k, h_split=h, order=order, halo=halo, filters=filters)


def pareto_front(costs: Iterable[PlanCost]) -> tuple[PlanCost, ...]:
    """The plans that no other beats in both footprint and traffic, by rising footprint; one plan for each point."""
    front: list[PlanCost] = []
    for cost in sorted(costs, key=lambda cost: (cost.footprint_bytes, cost.traffic_bytes or 0)):
        if cost.traffic_bytes is not None and (not front or cost.traffic_bytes < (front[-1].traffic_bytes or 0)):
            front.append(cost)
    return tuple(front)
