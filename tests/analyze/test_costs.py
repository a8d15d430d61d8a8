"""What other plans cost: the same as each says of itself, and the front as the definition has it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from hexconv.analyze import planned_work, vtcm_fit
from hexconv.analyze.costs import all_costs, pareto_front, plan_cost, split_costs, splits
from hexconv.analyze.documented import documented_elements
from hexconv.spec import Case, Chain, Conv2d, Plan
from tests.strategies import cases

CONV = Conv2d(out_channels=128, kernel=(3, 3))
DOCUMENTED = Chain(input=(1, 64, 64, 128), conv=(CONV, CONV))


def test_the_documented_plan_costs_what_the_document_says() -> None:
    plan = Plan(k_split=2, h_split=2)
    assert plan_cost(DOCUMENTED, plan).footprint_bytes == 4 * sum(documented_elements(DOCUMENTED, plan).values())


@settings(max_examples=25, deadline=None)
@given(cases())
def test_every_plan_of_a_grid_costs_what_it_costs_alone(case: Case) -> None:
    for cost in split_costs(case.chain, case.plan):
        fit = vtcm_fit(case.chain, cost.plan)
        assert (cost.footprint_bytes, cost.fits) == (fit.demand_bytes, fit.fits)
        assert cost.traffic_bytes == sum(planned_work(case.chain, cost.plan).traffic_bytes.values())
        assert replace(cost.plan, k_split=case.plan.k_split, h_split=case.plan.h_split) == case.plan
    assert case.plan in {cost.plan for cost in split_costs(case.chain, case.plan)}


@settings(max_examples=10, deadline=None)
@given(cases())
def test_no_plan_beats_one_of_the_front(case: Case) -> None:
    costs = all_costs(case.chain, case.plan)
    front = pareto_front(costs)
    points = {(cost.footprint_bytes, cost.traffic_bytes) for cost in front}
    assert len(points) == len(front)
    for cost in costs:
        x, y = cost.footprint_bytes, cost.traffic_bytes
        beaten = any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
        assert beaten != ((x, y) in points)


@pytest.mark.parametrize(("blocks", "own"), [(1, 1), (8, 8), (9, 1), (1000, 77)])
def test_splits_hold_the_ends_and_the_plans_own(blocks: int, own: int) -> None:
    found = splits(blocks, own)
    assert {1, own, blocks} <= set(found)
    assert all(1 <= split <= blocks for split in found)
    assert len(found) <= 12
