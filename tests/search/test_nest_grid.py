"""All plans of a nest at once against each alone: sizes, traffic, multiplications and packets."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import Planned
from hexconv.analyze.fit import vtcm_terms
from hexconv.search import Space, evaluate
from hexconv.search.grid import figures_of
from hexconv.search.machine import rates
from hexconv.search.space import Strip, kinds_of_strips
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize, kernel_of, tensor_extents
from hexconv.spec.places import STORAGES, Storage
from tests.draws import LOWERED, RUN
from tests.strategies import chains, is_supported

MOST_PLANS = 400
SPEED = 8.0
HOW = Requantize(multiplier=1 << 30, shift=-9)


@RUN
@given(
    chains(dtypes=("uint8", "int8", "int16")),
    st.sets(st.sampled_from(STORAGES), min_size=1, max_size=3),
    st.integers(1, 3),
)
def test_every_plan_has_the_figures_of_a_grid_of_one(chain: Chain, places: set[Storage], threads: int) -> None:
    plan = Plan(kernel="hvx", threads=threads)
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    space = Space.of(chain, plan, sorted(places))
    assume(space.size <= MOST_PLANS)
    check(chain, space, range(space.size))


@LOWERED
@given(chains(dtypes=("uint8", "int8", "int16")), st.sampled_from(STORAGES), st.integers(1, 3), st.randoms())
def test_plans_in_strips_have_the_figures_of_a_grid_of_one(
    chain: Chain, storage: Storage, threads: int, random: Random
) -> None:
    plan = Plan(kernel="hvx", threads=threads)
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    space = replace(Space.of(chain, plan, (storage,)), strips=(None, *kinds_of_strips(chain, plan.kernel)))
    check(chain, space, random.sample(range(space.size), min(space.size, 20)))


def check(chain: Chain, space: Space, numbers: Iterable[int]) -> None:
    """Hold the figures of some plans of a space against those of each alone."""
    grid = evaluate(chain, space, rates("v68"))
    times = grid.time_packets(SPEED)
    for number in numbers:
        found = grid.figures(number)
        planned = Planned(chain, found.plan)
        footprint = sum(term.vtcm_bytes for term in vtcm_terms(planned))
        known = (footprint, sum(planned.work.traffic_bytes.values()), sum(planned.work.macs.values()))
        assert (found.footprint_bytes, found.traffic_bytes, found.macs) == known, found.plan.slug
        assert np.isclose(found.latency_packets, rates("v68").packets(planned), rtol=1e-9), found.plan.slug
        alone = figures_of(chain, found.plan, rates("v68")).time_packets(SPEED)
        assert np.isclose(times[number], alone, rtol=1e-9), found.plan.slug


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
    space = Space.of(STEPPED_OVER, Plan(kernel="hvx"))
    check(STEPPED_OVER, space, range(space.size))


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
    check(DENSE_OR_PIXELS, space, range(0, space.size, 5))


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
