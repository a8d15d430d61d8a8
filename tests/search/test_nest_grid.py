"""All plans of a nest at once against the closed form of each: sizes, traffic, multiplications and packets."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hexconv.analyze import Planned, planned_work
from hexconv.analyze.exact import Integers
from hexconv.analyze.fit import vtcm_terms
from hexconv.analyze.nest_packets import nest_parts
from hexconv.analyze.rows import planned_rows
from hexconv.search import Space
from hexconv.search.machine import Prices, rates
from hexconv.search.nest_grid import nest_grid
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize, kernel_of, tensor_extents
from hexconv.spec.places import STORAGES, Storage
from tests.strategies import chains, is_supported

MOST_PLANS = 400
HOW = Requantize(multiplier=1 << 30, shift=-9)


@settings(max_examples=8, deadline=None)
@given(chains(dtypes=("uint8", "int8", "int16")), st.sets(st.sampled_from(STORAGES), min_size=1, max_size=3))
def test_every_plan_has_the_figures_of_its_closed_form(chain: Chain, places: set[Storage]) -> None:
    storages = sorted(places)
    plan, prices = Plan(kernel="hvx"), rates("v68").nest
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    space = Space.of(chain, plan, storages)
    assume(space.size <= MOST_PLANS)
    for part in space.parts(tensor_extents(chain)[-1].row_blocks):
        columns = nest_grid(chain, part, prices.packets)
        _check(chain, part, columns, prices)


def _check(chain: Chain, space: Space, columns: tuple[Integers, ...], prices: Prices) -> None:
    for number, found in enumerate(zip(*columns, strict=True)):
        one = space.plan(number)
        work = planned_work(chain, one)
        footprint = sum(term.vtcm_bytes for term in vtcm_terms(Planned(chain, one)))
        assert found[:3] == (footprint, sum(work.traffic_bytes.values()), sum(work.macs.values())), one.slug
        assert np.isclose(found[3], prices.packets(nest_parts(planned_rows(chain, one))), rtol=1e-9), one.slug


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
