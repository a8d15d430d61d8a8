"""Stripes of columns: exact for chains with and without padding, in caches of a strip, each column written once."""

from dataclasses import replace

import pytest

from hexconv.analyze import cache_footprints, cache_usage, needed_work, planned_work, work_usage
from hexconv.errors import InputError
from hexconv.lower import lower_case
from hexconv.run.copies import Copies, Moment
from hexconv.run.count import count
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.strips import strips_of
from hexconv.sweep.verdict import miscounts, short_copies
from tests.deep import one_in

HOW = Requantize(multiplier=1 << 30, shift=-9, zero_point=120)
VALID = Conv2d(out_channels=40, kernel=(3, 3), filter_zero_point=128, requantize=HOW)
"""The zero points lie in the middle: results are codes of all sizes, and not all the largest one."""
SAME = replace(VALID, padding=Padding(top=1, left=1, bottom=1, right=1))
SIGNED = replace(SAME, filter_zero_point=0)
LOPSIDED = replace(VALID, kernel=(1, 4), padding=Padding(left=14, right=1))
STEPPING = replace(VALID, kernel=(1, 1), stride=(1, 19), padding=Padding(left=140, right=190))
IMAGE = Chain(input=(1, 13, 47, 24), dtype="uint8", zero_point=128, output_layout="NHWC", conv=(VALID, VALID, VALID))
CHAINS = {
    "without padding": IMAGE,
    "padded": replace(IMAGE, conv=(SAME, SAME, replace(SAME, out_channels=20))),
    "two images of three channels": replace(IMAGE, input=(2, 13, 47, 3), conv=(SAME, SAME)),
    "a stride between": replace(IMAGE, input=(1, 13, 101, 24), conv=(SAME, replace(SAME, stride=(1, 2)), SAME)),
    "padding wider than a strip": replace(IMAGE, conv=(LOPSIDED, SAME)),
    "blocks of the input": replace(IMAGE, input_layout="NHWC8h8w32c", conv=(SAME, SAME)),
    "blocks of the output": replace(IMAGE, input=(1, 13, 40, 24), output_layout="NHWC8h8w32c", conv=(SAME, SAME)),
    "int8": replace(IMAGE, dtype="int8", zero_point=-7, output_layout="NHCW32c", conv=(SIGNED, SIGNED)),
    "depthwise": replace(IMAGE, input=(1, 13, 47, 40), conv=(replace(SAME, groups=40), SAME)),
    "blocks of four channels": replace(
        IMAGE, conv=(replace(SAME, out_channels=12), replace(SAME, out_channels=12), SAME)
    ),
    "int16": replace(
        IMAGE,
        dtype="int16",
        zero_point=0,
        conv=(replace(SIGNED, filter_l1=30000, requantize=replace(HOW, zero_point=0)),) * 2,
    ),
}
ROLLED = Plan(kernel="hvx", order="h_outer", halo="roll", filters="resident", buffering="double", storage="vtcm")
PLANS = {
    "rows in rings": replace(ROLLED, rows=2, w_split=2),
    "blocks of rows": Plan(kernel="hvx", w_split=1),
    "threads": replace(ROLLED, rows=1, w_split=2, halo="recompute", threads=2),
    "intermediates outside of VTCM": replace(ROLLED, rows=1, w_split=1, storage="input+filters+output"),
}


EACH = [(name, list(PLANS)[(place + 1) % 4]) for place, name in enumerate(CHAINS)]
MOMENTS: tuple[Moment, ...] = ("late", "early")
RUN = [(name, list(PLANS)[place % 3], MOMENTS[place % 2]) for place, name in enumerate(CHAINS)]
"""Each chain under some of the plans, by turns; those with a cache outside of VTCM are counted, not run."""


@pytest.mark.parametrize(("name", "plan"), EACH)
def test_sizes_bytes_and_products_are_those_that_are_predicted(name: str, plan: str) -> None:
    case = Case(name, CHAINS[name], PLANS[plan])
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert list(miscounts(work_usage(case, count(lowered)))) == []


@pytest.mark.simulator
@pytest.mark.parametrize(("name", "plan", "copies"), one_in(3, RUN))
def test_strips_are_exact(name: str, plan: str, copies: Moment) -> None:
    case = Case(name, CHAINS[name], PLANS[plan])
    run = run_case(case, lower_case(case), Simulator(copies=Copies(copies), slots=False))
    assert run.check.passed
    assert list(short_copies(run)) == []


def test_a_strip_holds_its_columns_and_those_that_its_neighbours_share() -> None:
    plan = PLANS["rows in rings"]
    whole, strips = (
        {cache.name: cache.shape for cache in cache_footprints(IMAGE, replace(plan, w_split=width))}
        for width in (None, 2)
    )
    assert (whole["input_cache"][2], strips["input_cache"][2]) == (47, 16 + 6)
    assert whole["filter2_cache"] == strips["filter2_cache"]


def test_what_strips_share_is_read_again_and_nothing_is_written_twice() -> None:
    plan = PLANS["rows in rings"]
    moved = planned_work(IMAGE, plan).traffic_bytes
    needed = needed_work(IMAGE).traffic_bytes
    assert moved["input"] - needed["input"] == 13 * 24 * (3 * 22 - 47)  # three strips of 16 + 6 columns
    assert moved["output"] == needed["output"]


def test_strips_of_a_padded_chain_read_the_image_alone() -> None:
    chain = CHAINS["padded"]
    strips = strips_of(chain, Plan(kernel="hvx", w_split=2))
    assert strips
    assert [strips.valid_columns(0, number) for number in range(strips.count)] == [(3, 22), (0, 22), (0, 19)]


@pytest.mark.parametrize(
    ("chain", "w_split", "why"),
    [
        (IMAGE, 7, "6 blocks of 8 columns"),
        (replace(IMAGE, output_layout="NHWC8h8w32c"), 2, "has 1, and is whole"),
        (replace(IMAGE, input=(1, 13, 1, 24), conv=(STEPPING,)), 1, "nothing but padding"),
    ],
)
def test_what_cannot_be_computed_in_strips_is_refused_with_the_reason(chain: Chain, w_split: int, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Case("c", chain, Plan(kernel="hvx", w_split=w_split))


def test_other_kernels_refuse_strips() -> None:
    with pytest.raises(InputError, match="hvx obeys it"):
        Plan(kernel="plain", w_split=2)
