"""The plan that loads every byte once and multiplies every pair once, in the cases that it was asked for, and the rest.

The count is of the lowered loops (`hexconv.run.count`); nothing in it knows the closed form.
"""

from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import cache_usage, needed_work, planned_work, work_usage
from hexconv.analyze.caches import DTYPE_BYTES
from hexconv.analyze.needed import macs_per_output
from hexconv.compute import reference
from hexconv.run.host import Host, count
from hexconv.run.measure import run_case
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from tests.deep import DEEP
from tests.draws import LOWERED
from tests.lowered import lower_case
from tests.strategies import chains, convs_alone

LEAST = Plan(kernel="plain", k_split=4, h_split=1, order="h_outer", halo="roll", filters="resident")
CAPACITY_BYTES = 4 << 20
POINTWISE = Conv2d(out_channels=128)
THREE = Conv2d(out_channels=128, kernel=(3, 3))
SAME = Conv2d(out_channels=128, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))
HALVING = replace(SAME, stride=(2, 2))


def square(*convs: Conv2d) -> Chain:
    """64x64x128, float32."""
    return Chain(input=(1, 64, 64, 128), conv=convs)


ASKED = {
    "1x1": square(POINTWISE, POINTWISE),
    "3x3": square(THREE, THREE),
    "stride-2": square(HALVING, SAME),
    "stride-2-last": square(SAME, HALVING),
    "same": square(SAME, SAME),
    "three-convs": square(THREE, THREE, THREE),
    "bottleneck": square(POINTWISE, SAME, POINTWISE),
}


@pytest.mark.parametrize("name", ASKED)
def test_nothing_is_moved_or_multiplied_twice(name: str) -> None:
    case = Case(name, ASKED[name], LEAST)
    lowered = lower_case(case)
    usage, work = cache_usage(case, lowered), work_usage(case, count(lowered))
    assert usage.agrees
    assert work.agrees
    assert work.macs == work.needed_macs
    assert work.traffic_bytes == work.needed_traffic_bytes
    assert usage.peak_bytes <= CAPACITY_BYTES


@pytest.mark.parametrize("name", ["stride-2", "three-convs"])
def test_its_result_is_right(name: str) -> None:
    chain = ASKED[name]
    small = replace(chain, input=(2, 37, 21, 40), conv=tuple(replace(conv, out_channels=40) for conv in chain.conv))
    case = Case(name, small, replace(LEAST, k_split=2))
    assert run_case(case, lower_case(case), Host(calls=1)).check.passed


TALL = Conv2d(out_channels=3, kernel=(5, 1))


@pytest.mark.parametrize("filters", ["per_tile", "resident"])
@pytest.mark.parametrize("h_split", [2, pytest.param(3, marks=DEEP)])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_rest_of_a_stripe_takes_nothing_that_a_later_step_takes_again(
    stride: int, h_split: int, filters: Literal["per_tile", "resident"]
) -> None:
    """Stripes of h_split + 1 slabs, made in steps of h_split: the second step of each is a rest."""
    chain = Chain(input=(1, 130, 2, 3), conv=(replace(TALL, stride=(stride, 1)), TALL, TALL))
    case = Case("rest", chain, Plan(kernel="plain", h_split=h_split, order="h_outer", halo="roll", filters=filters))
    lowered = lower_case(case)
    work, needed = work_usage(case, count(lowered)), needed_work(chain)
    assert work.agrees
    assert work.macs == work.needed_macs
    assert {t.name: t.bytes for t in work.traffic}["input"] == needed.traffic_bytes["input"]
    assert run_case(case, lowered, Host(calls=1)).check.passed


# Slabs between the stripes that nothing reads: what came before a stripe is then not all that lies below it.
STEPS_OVER = (
    Chain(
        input=(1, 900, 3, 5),
        conv=(
            Conv2d(out_channels=3, kernel=(5, 1), stride=(2, 1)),
            Conv2d(out_channels=3, stride=(12, 1)),
            Conv2d(out_channels=3),
        ),
    ),
    Chain(
        input=(2, 1200, 1, 3),
        conv=(
            Conv2d(out_channels=3, kernel=(3, 1), padding=Padding(top=3)),
            Conv2d(out_channels=2, kernel=(2, 1), stride=(17, 1)),
            Conv2d(out_channels=2, kernel=(3, 1)),
        ),
    ),
)


@pytest.mark.parametrize("h_split", [2, *(pytest.param(slabs, marks=DEEP) for slabs in (1, 3))])
@pytest.mark.parametrize("chain", STEPS_OVER, ids=lambda chain: chain.slug)
def test_rings_serve_strides_that_step_over_slabs(chain: Chain, h_split: int) -> None:
    case = Case("over", chain, Plan(kernel="plain", h_split=h_split, order="h_outer", halo="roll"))
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    assert run_case(case, lowered, Host(calls=1)).check.passed


def test_an_accumulator_sums_nothing_that_its_epilogue_leaves() -> None:
    """A stripe of 3 slabs in steps of 2: TVM itself would sum for the 4th too."""
    tall = Conv2d(out_channels=1, kernel=(2, 1), dilation=(2, 1))
    chain = Chain(input=(1, 29, 5, 1), conv=(Conv2d(out_channels=1, activation="relu"), tall, tall))
    case = Case("relu", chain, Plan(kernel="plain", h_split=2))
    work = work_usage(case, count(lower_case(case)))
    assert work.agrees


MOST_PIXELS = 2000
"""An image of each pixel alone: 32 MB."""


@LOWERED
@given(chains(("float32",)).filter(convs_alone))
def test_needed_traffic_is_what_the_result_depends_on(chain: Chain) -> None:
    """One pixel at a time is not zero, and no tap cancels another: the result shows it, or nothing depends on it."""
    rows, columns = chain.input[1:3]
    assume(rows * columns <= MOST_PIXELS)
    pixels = np.eye(rows * columns).reshape(rows * columns, rows, columns, 1)
    plain = {"activation": "none", "activation_slope": None, "activation_offset": None, "bias": False}
    thin = tuple(replace(conv, out_channels=1, groups=1, **plain) for conv in chain.conv)
    filters = [np.ones((1, 1, *conv.kernel)) for conv in thin]
    shown = reference(replace(chain, input=pixels.shape, conv=thin), pixels, filters, [None] * len(thin))
    reached = int(shown.any(axis=(1, 2, 3)).sum())
    assert needed_work(chain).traffic_bytes["input"] == chain.input[0] * reached * chain.input[3] * 4


@given(chains(), st.integers(1, 3), st.integers(1, 3))
def test_rings_and_resident_filters_never_cost_more(chain: Chain, k_split: int, h_split: int) -> None:
    """Every knob, turned alone, moves and multiplies no more than before; all together compute no output twice.

    A ring may load rows that a stripe of padding alone steps over, but none twice. A ring that keeps rows for an Add
    may take a step more of each image to fill, with the filter once more.
    """
    once = {"input": prod(chain.input) * DTYPE_BYTES[chain.dtype]}
    adds = any(conv.add for conv in chain.conv)
    plans = [
        Plan(kernel="plain", k_split=k_split, h_split=h_split),
        Plan(kernel="plain", k_split=k_split, h_split=h_split, order="h_outer"),
        Plan(kernel="plain", k_split=k_split, h_split=h_split, order="h_outer", halo="roll"),
        Plan(kernel="plain", k_split=k_split, h_split=h_split, order="h_outer", halo="roll", filters="resident"),
    ]
    works = [planned_work(chain, plan) for plan in plans]
    for before, after in pairwise(works):
        for name, moved_bytes in after.traffic_bytes.items():
            more = chain.input[0] * works[-1].traffic_bytes[name] if adds and name.startswith("filter") else 0
            assert moved_bytes <= max(before.traffic_bytes[name] + more, once.get(name, 0))
        assert all(after.macs[name] <= before.macs[name] for name in after.macs)
    for index, shape in enumerate(chain.shapes[1:]):
        assert works[-1].macs[f"conv{index + 1}"] <= prod(shape) * macs_per_output(chain, index)


def test_the_documented_cases_do_what_their_listings_say() -> None:
    """Slabs of the 3x3 listing: 76 loads of 8, 22 of 8 computed by conv #1 (of 62 rows, the last slab holds 6)."""
    work = planned_work(square(THREE, THREE), Plan(kernel="plain", k_split=2, h_split=2))
    needed = needed_work(square(THREE, THREE))
    assert work.traffic_bytes["input"] / needed.traffic_bytes["input"] == 76 / 8
    # 22 slabs, 2 of them the last one with 6 rows: 172 of 62 rows; in slabs 22 / 8 = 2.75.
    assert work.macs["conv1"] / needed.macs["conv1"] == 172 / 62
    baseline = planned_work(square(POINTWISE, POINTWISE), Plan(kernel="plain"))
    assert baseline.macs["conv1"] == 4 * needed_work(square(POINTWISE, POINTWISE)).macs["conv1"]
