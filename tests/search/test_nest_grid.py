"""All plans of a nest at once against the closed form of each: sizes, traffic, multiplications and packets."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import Planned, planned_work
from hexconv.analyze.exact import Integers
from hexconv.analyze.fit import vtcm_terms
from hexconv.analyze.nest_packets import nest_parts
from hexconv.analyze.row_nest import planned_rows
from hexconv.search import Space, evaluate
from hexconv.search.machine import Prices, rates
from hexconv.search.row_grid import nest_footprint, nest_grid
from hexconv.search.space import Strip, kinds_of_strips
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize, kernel_of, tensor_extents
from hexconv.spec.places import STORAGES, Storage
from hexconv.spec.vectors import vectors_bytes
from tests.draws import LOWERED, RUN
from tests.strategies import chains, is_supported

MOST_PLANS = 400
HOW = Requantize(multiplier=1 << 30, shift=-9)


@RUN
@given(
    chains(dtypes=("uint8", "int8", "int16")),
    st.sets(st.sampled_from(STORAGES), min_size=1, max_size=3),
    st.integers(1, 3),
)
def test_every_plan_has_the_figures_of_its_closed_form(chain: Chain, places: set[Storage], threads: int) -> None:
    storages = sorted(places)
    plan, prices = Plan(kernel="hvx", threads=threads), rates("v68").nest
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    space = Space.of(chain, plan, storages)
    assume(space.size <= MOST_PLANS)
    for part in space.parts(tensor_extents(chain)[-1].row_blocks):
        columns = nest_grid(chain, part, prices.packets)
        _check(chain, part, columns, prices)
        assert (nest_footprint(chain, part) == columns[0]).all()


@LOWERED
@given(chains(dtypes=("uint8", "int8", "int16")), st.sampled_from(STORAGES), st.integers(1, 3), st.randoms())
def test_plans_in_strips_have_the_figures_of_their_closed_form(
    chain: Chain, storage: Storage, threads: int, random: Random
) -> None:
    plan, prices = Plan(kernel="hvx", threads=threads), rates("v68").nest
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    strips = (None, *kinds_of_strips(chain, plan))
    grid = evaluate(chain, replace(Space.of(chain, plan, (storage,)), strips=strips), rates("v68"))
    for number in random.sample(range(grid.space.size), min(grid.space.size, 20)):
        found = grid.figures(number)
        _check_one(chain, found.plan, (found.footprint_bytes, found.traffic_bytes, found.macs))
        packets = prices.packets(nest_parts(planned_rows(chain, found.plan)))
        assert np.isclose(found.latency_packets, packets, rtol=1e-9), found.plan.slug


def _check(chain: Chain, space: Space, columns: tuple[Integers, ...], prices: Prices) -> None:
    for number, found in enumerate(zip(*columns, strict=True)):
        one = space.plan(number)
        traffic = found[1] + sum(vectors_bytes(chain).values())
        _check_one(chain, one, (found[0], traffic, found[2]))
        assert np.isclose(found[3], prices.packets(nest_parts(planned_rows(chain, one))), rtol=1e-9), one.slug


def _check_one(chain: Chain, plan: Plan, found: tuple[Any, ...]) -> None:
    work = planned_work(chain, plan)
    footprint = sum(term.vtcm_bytes for term in vtcm_terms(Planned(chain, plan)))
    assert found == (footprint, sum(work.traffic_bytes.values()), sum(work.macs.values())), plan.slug


STEPPED_OVER = Chain(
    input=(1, 13, 97, 1),
    dtype="uint8",
    conv=(
        Conv2d(out_channels=32, kernel=(5, 3), stride=(2, 2), requantize=HOW),
        Conv2d(out_channels=1, kernel=(1, 7), requantize=HOW),
        Conv2d(out_channels=1, kernel=(5, 4), stride=(3, 1), requantize=HOW),
        Conv2d(out_channels=32, stride=(3, 3), padding=Padding(top=1, bottom=2), requantize=HOW),
    ),
)
"""In stripes of one row, no stripe makes a row of the third conv; in stripes of two, one does."""


def test_a_conv_of_which_some_stripes_make_no_row_has_its_products_in_others() -> None:
    space, prices = Space.of(STEPPED_OVER, Plan(kernel="hvx")), rates("v68").nest
    for part in space.parts(tensor_extents(STEPPED_OVER)[-1].row_blocks):
        _check(STEPPED_OVER, part, nest_grid(STEPPED_OVER, part, prices.packets), prices)


DENSE_OR_PIXELS = Chain(
    input=(1, 47, 40, 3),
    dtype="int8",
    output_layout="NHWC",
    conv=(Conv2d(out_channels=200, kernel=(2, 7), padding=Padding(top=1, left=1, right=1), bias=True, requantize=HOW),),
)
"""Whether scalar loads read its filter depends on k_split; each thread has a cache of either kind of its own."""


def test_a_cache_that_only_some_k_splits_have_is_counted_for_every_thread() -> None:
    plan = Plan(kernel="hvx", threads=2)
    space = replace(Space.of(DENSE_OR_PIXELS, plan), strips=(None, Strip(2, "keep")))
    grid = evaluate(DENSE_OR_PIXELS, space, rates("v68"))
    for number in range(0, space.size, 5):
        found = grid.figures(number)
        _check_one(DENSE_OR_PIXELS, found.plan, (found.footprint_bytes, found.traffic_bytes, found.macs))


@pytest.mark.parametrize("layout", ["NHWC", "NHWC8h8w32c"])
def test_a_space_of_a_nest_of_rows_in_parts_is_the_same(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = replace(DENSE_OR_PIXELS, output_layout=layout)
    space = Space.of(chain, Plan(kernel="hvx"))
    whole = evaluate(chain, space, rates("v68"))
    monkeypatch.setattr("hexconv.search.space.PART", 30)
    mixes = layout == "NHWC"
    assert len([*space.parts(tensor_extents(chain)[-1].row_blocks, mixes)]) > 1 + (not mixes)
    parted = evaluate(chain, space, rates("v68"))
    for figure in ("footprint_bytes", "traffic_bytes", "macs", "latency_packets"):
        assert (getattr(whole, figure) == getattr(parted, figure)).all()
