"""The costs of the plans that the page compares: other splits of a case's plan, and all plans of its chain.

Where a tensor has many blocks, the splits are thinned out to powers of two, the case's own and the largest.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from hexconv.analyze import needed_macs
from hexconv.lower.vtcm import capacity_of
from hexconv.search import Figures, Space, evaluate
from hexconv.search.found import front
from hexconv.search.machine import rates
from hexconv.search.space import ROWS, combinations
from hexconv.spec import Case, Plan, tensor_extents

MOST_SPLITS = 8
"""The most blocks of a tensor for which a heat map shows every split."""

MOST_IN_FRONT = 64


@dataclass(frozen=True)
class PlanCost:
    """One plan and what it costs.

    Attributes:
        plan: the plan.
        footprint_bytes: the bytes of all merged allocations, each rounded up to whole granules of VTCM.
        traffic_bytes: the bytes copied between memory and caches.
        recompute: the MACs done over the MACs needed.
        fits: whether the footprint fits the VTCM of the plan's architecture.
    """

    plan: Plan
    footprint_bytes: int
    traffic_bytes: int
    recompute: float
    fits: bool


def own_cost(case: Case) -> PlanCost:
    """Return the cost of a case's own plan.

    >>> from hexconv.spec import Chain, Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> cost = own_cost(Case("baseline", Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()))
    >>> cost.footprint_bytes, cost.fits, cost.recompute
    (540672, True, 2.5)
    """
    return next(cost for cost in split_costs(case) if cost.plan == case.settled)


def split_costs(case: Case) -> tuple[PlanCost, ...]:
    """The costs of a case's plan with other splits, `k_split` fastest; only `h_split` if the kernel isn't plain."""
    grid = evaluate(case.chain, _space(case, (case.settled,), MOST_SPLITS), rates(case.settled.arch))
    return _costs(case, (grid.figures(number) for number in range(grid.space.size)))


def chain_costs(case: Case) -> tuple[tuple[PlanCost, ...], tuple[PlanCost, ...]]:
    """The costs of all plans of a case's chain, and of those that no other plan beats in both footprint and traffic."""
    is_plain = case.settled.kernel == "plain"
    words = combinations(case.settled) if is_plain else (case.settled,)  # other kernels have no combinations
    grid = evaluate(case.chain, _space(case, words, MOST_IN_FRONT), rates(case.settled.arch))
    every = [grid.figures(number) for number in range(grid.space.size)]
    return _costs(case, every), _costs(case, front(grid))


def _costs(case: Case, plans: Iterable[Figures]) -> tuple[PlanCost, ...]:
    """Return the costs of some plans, beside the MACs that the chain needs and the VTCM of the architecture."""
    needed, capacity = needed_macs(case.chain), capacity_of(case.settled)
    return tuple(
        PlanCost(
            plan=figures.plan,
            footprint_bytes=figures.footprint_bytes,
            traffic_bytes=figures.traffic_bytes,
            recompute=figures.macs / needed,
            fits=figures.footprint_bytes <= capacity,
        )
        for figures in plans
    )


def _space(case: Case, words: tuple[Plan, ...], most: int) -> Space:
    """The space of plans with these settings over the splits of a case, or over `rows` where its plan states `rows`."""
    outputs = tensor_extents(case.chain)[1:]
    h_splits = splits(max(output.row_blocks for output in outputs), case.settled.h_split, most)
    k_splits = splits(max(output.channel_blocks for output in outputs), case.settled.k_split, most)
    if case.settled.kernel != "plain":
        k_splits = (case.settled.k_split,)
    if case.settled.rows:
        heights = tuple(sorted({*ROWS, case.settled.rows}))
        words = tuple(replace(plan, rows=None) for plan in words)
        return Space(words, np.array([], np.int64), np.array(k_splits), heights)
    return Space(words, np.array(h_splits), np.array(k_splits))


def splits(blocks: int, own: int, most: int = MOST_SPLITS) -> tuple[int, ...]:
    """Return the splits of `blocks` blocks to look at: all; of more than `most`, powers of two, the last and `own`.

    >>> splits(4, 2), splits(20, 3)
    ((1, 2, 3, 4), (1, 2, 3, 4, 8, 16, 20))
    """
    if blocks <= most:
        return tuple(range(1, blocks + 1))
    return tuple(sorted({own, blocks, *(1 << power for power in range(blocks.bit_length()))}))
