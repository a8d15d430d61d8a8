"""Strips of columns in the search: its grid against single plans, its answer against every width."""

from dataclasses import replace
from itertools import islice
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import Planned, planned_work
from hexconv.analyze.fit import vtcm_terms
from hexconv.search import Question, Space, best_plan, evaluate
from hexconv.search.grid import Grid
from hexconv.search.machine import rates
from hexconv.search.space import Strip, kinds_of_strips, least_bytes
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.knobs import ColumnHalo
from hexconv.spec.strips import strip_count, why_no_strips
from tests.draws import RUN

HOW = Requantize(multiplier=1 << 30, shift=-9, zero_point=3)
VALID = Conv2d(out_channels=8, kernel=(3, 3), requantize=HOW)
SAME = replace(VALID, padding=Padding(top=1, left=1, bottom=1, right=1))
HVX = Plan(kernel="hvx", storage="vtcm")
HALOS: tuple[ColumnHalo, ...] = get_args(ColumnHalo)
CHAINS = {
    "valid": Chain(input=(1, 40, 70, 8), dtype="uint8", output_layout="NHWC", conv=(VALID, VALID, VALID)),
    "same": Chain(input=(2, 24, 60, 8), dtype="uint8", output_layout="NHWC", conv=(SAME, SAME)),
    "stride": Chain(
        input=(1, 24, 90, 8), dtype="uint8", output_layout="NHWC", conv=(SAME, replace(SAME, stride=(2, 2)))
    ),
}


def whole_grid(chain: Chain) -> Grid:
    """Every plan in whole rows and in strips of every width and kind."""
    blocks = -(-chain.shapes[-1][2] // 8)
    every = [Strip(width, halo) for width in range(1, blocks + 1) for halo in HALOS]
    strips = tuple(strip for strip in every if not why_no_strips(chain, strip.w_split, strip.column_halo))
    return evaluate(chain, replace(Space.of(chain, HVX), strips=(None, *strips)), rates("v68"))


@pytest.mark.parametrize("storage", ["vtcm", "filters+output"])
@pytest.mark.parametrize("name", CHAINS)
def test_the_grid_has_the_figures_of_single_plans(name: str, storage: str) -> None:
    chain = CHAINS[name]
    strips = (None, Strip(2), Strip(2, "keep"), Strip(3), Strip(1, "keep"))
    space = replace(Space.of(chain, HVX, (storage,)), strips=strips)  # pyright: ignore[reportArgumentType]
    grid = evaluate(chain, space, rates("v68"))
    for number in np.random.default_rng(1).integers(space.size, size=12):
        figures = grid.figures(int(number))
        work = planned_work(chain, figures.plan)
        assert figures.traffic_bytes == sum(work.traffic_bytes.values()), figures.plan
        assert figures.macs == sum(work.macs.values())
        assert figures.footprint_bytes == sum(term.vtcm_bytes for term in vtcm_terms(Planned(chain, figures.plan)))


@pytest.mark.parametrize("name", CHAINS)
@RUN
@given(st.integers(10, 20), st.sampled_from((0, 2048, 6144)))
def test_no_plan_of_any_width_moves_less(name: str, log_limit: int, more: int) -> None:
    chain, limit = CHAINS[name], (1 << log_limit) + more
    every = whole_grid(chain)
    fitting = every.traffic_bytes[every.footprint_bytes <= limit]
    found = best_plan(chain, Question(limit, plan=HVX, target="hexagon"))
    assert (found.best is None) == (not len(fitting))
    if found.best:
        assert found.best.traffic_bytes == fitting.min()
        assert sum(each.plans for each in found.proof.excluded) == found.proof.plans - 1


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("halo", HALOS)
def test_of_all_widths_with_as_many_strips_the_least_is_looked_at(name: str, halo: ColumnHalo) -> None:
    chain = CHAINS[name]
    widths = [width for width in range(1, chain.shapes[-1][2] // 8 + 2) if not why_no_strips(chain, width, halo)]
    of_lanes = [width for width in widths if width % 4 == 0]
    least = [{strip_count(chain, width, halo): width for width in reversed(some)} for some in (widths, of_lanes)]
    looked_at = [strip.w_split for strip in kinds_of_strips(chain, HVX.kernel) if strip.column_halo == halo]
    wanted = {width for each in least for count, width in each.items() if count > 1}
    assert looked_at == sorted(wanted, reverse=True)


@pytest.mark.parametrize("name", CHAINS)
def test_no_plan_in_strips_moves_less_than_their_bound(name: str) -> None:
    chain = CHAINS[name]
    for strip in islice(kinds_of_strips(chain, HVX.kernel), 8):
        space = replace(Space.of(chain, HVX), strips=(strip,))
        assert evaluate(chain, space, rates("v68")).traffic_bytes.min() >= least_bytes(chain, strip)


def test_strips_fit_where_whole_rows_do_not() -> None:
    chain = CHAINS["valid"]
    whole = evaluate(chain, Space.of(chain, HVX), rates("v68"))
    limit = int(whole.footprint_bytes.min()) - 1
    found = best_plan(chain, Question(limit, plan=HVX, target="hexagon"))
    assert found.best
    assert found.best.plan.w_split


@pytest.mark.parametrize("name", CHAINS)
def test_the_least_footprint_is_the_least_of_whole_rows_and_of_all_strips(name: str) -> None:
    chain = CHAINS[name]
    found = best_plan(chain, Question(1 << 20, "footprint", HVX, target="hexagon"))
    assert found.best
    assert found.best.footprint_bytes == whole_grid(chain).footprint_bytes.min()
