"""What other plans cost: the same as each says of itself, and the front as the definition has it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import needed_macs, planned_work, vtcm_fit
from hexconv.report.costs import chain_costs, own_cost, split_costs, splits
from hexconv.report.page.case_view import Measured, case_view
from hexconv.report.plots.cost_plots import CLOUD_HEIGHT, CLOUD_WIDTH, points_apart
from hexconv.spec import Case, Chain, Conv2d, Plan, kernel_of
from tests.draws import LOWERED, RUN
from tests.strategies import cases

SCHEDULES = Path(__file__).parents[2] / "schedules"


def test_the_documented_plan_costs_what_the_document_says() -> None:
    case = Case.load(SCHEDULES / "split-3x3.toml")
    assert own_cost(case).footprint_bytes == 4 * sum(dict(case.documented).values())


@LOWERED
@given(cases(kernels=("plain", "hvx")))
def test_every_plan_of_a_heat_map_costs_what_it_says_of_itself(case: Case) -> None:
    costs = split_costs(case)
    needed = needed_macs(case.chain)
    for cost in costs:
        fit, work = vtcm_fit(case.chain, cost.plan), planned_work(case.chain, cost.plan)
        assert (cost.footprint_bytes, cost.fits) == (fit.demand_bytes, fit.fits)
        assert cost.traffic_bytes == sum(work.traffic_bytes.values())
        assert cost.recompute == (sum(work.macs.values()) / needed if needed else 1.0)
        own = case.settled
        assert replace(cost.plan, k_split=own.k_split, h_split=own.h_split, rows=own.rows) == own
    assert own_cost(case) in costs
    assert len({cost.plan for cost in costs}) == len(costs)


@RUN
@given(cases(kernels=("plain", "hvx")))
def test_no_plan_beats_one_of_the_front(case: Case) -> None:
    costs, front = chain_costs(case)
    points = {(cost.footprint_bytes, cost.traffic_bytes) for cost in front}
    assert len(points) == len(front)
    for cost in (*costs, *([] if case.settled.w_split else [own_cost(case)])):
        x, y = cost.footprint_bytes, cost.traffic_bytes
        beaten = any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)
        assert beaten != ((x, y) in points)


@pytest.mark.parametrize(("blocks", "own"), [(1, 1), (8, 8), (9, 1), (1000, 77)])
def test_splits_hold_the_ends_and_the_plans_own(blocks: int, own: int) -> None:
    found = splits(blocks, own)
    assert {1, own, blocks} <= set(found)
    assert all(1 <= split <= blocks for split in found)
    assert len(found) <= 12


def test_hvx_costs_what_it_says_under_every_plan_looked_at() -> None:
    from hexconv.docs.mkdocs.knob_pages import INTEGER

    case = Case("other", INTEGER, Plan(kernel="hvx", h_split=2))
    assert kernel_of(case.chain, case.plan) == "hvx"
    costs, front = chain_costs(case)
    for cost in (own_cost(case), *split_costs(case), *costs):
        fit, work = vtcm_fit(case.chain, cost.plan), planned_work(case.chain, cost.plan)
        assert (cost.footprint_bytes, cost.traffic_bytes) == (fit.demand_bytes, sum(work.traffic_bytes.values()))
        assert cost.recompute == sum(work.macs.values()) / needed_macs(case.chain)
    assert all(replace(cost.plan, h_split=2, k_split=1) == case.plan for cost in split_costs(case))
    assert {cost.plan for cost in front} < {cost.plan for cost in costs}
    names = [plot.name for plot in case_view(case, Measured(None, {}, None, ())).plots]
    assert names == [f"other-{what}" for what in ("vtcm", "footprint", "traffic", "recompute", "front")]


def test_a_plot_that_says_nothing_is_not_drawn() -> None:
    """Of a plan that moves and computes what is needed, whatever its splits, one figure stands in the facts."""
    conv = Conv2d(out_channels=64)
    for plan, what in (
        (Plan(), ("vtcm", "lifetimes", "footprint", "traffic", "recompute", "front")),
        (Plan(order="h_outer", halo="roll", filters="resident"), ("vtcm", "lifetimes", "footprint", "front")),
    ):
        case = Case("one", Chain(input=(1, 32, 32, 32), conv=(conv, conv)), plan)
        assert [plot.name for plot in case_view(case, Measured(None, {}, None, ())).plots] == [f"one-{w}" for w in what]


SIZES = st.floats(1, 1e6)


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1))
def test_every_plan_lies_under_a_dot(points: list[tuple[float, float]]) -> None:
    dots = points_apart(points)
    assert set(dots) <= set(points)
    across, up = max(x for x, _ in points) / CLOUD_WIDTH, max(y for _, y in points) / CLOUD_HEIGHT
    for x, y in points:
        assert any(abs(x - a) <= 3.01 * across and abs(y - b) <= 3.01 * up for a, b in dots)


def test_dots_that_others_hide_are_left_out() -> None:
    near = [(1000 + step / 1000, 1000.0) for step in range(1000)]
    assert len(points_apart([(1e5, 1e5), *near])) == 2
