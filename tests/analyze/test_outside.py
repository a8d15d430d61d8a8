"""Caches in VTCM and outside of it: predicted, allocated and counted, by hand too; what lies outside takes no VTCM."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given

from hexconv.analyze import cache_footprints, cache_usage, planned_work, vtcm_fit, work_usage
from hexconv.lower import lower_case
from hexconv.run.host import count
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.places import MIXED, STORAGES, Storage
from tests.draws import RUN
from tests.strategies import cases, is_supported

CONV = Conv2d(out_channels=128, requantize=Requantize(multiplier=1 << 30, shift=-8))
CHAIN = Chain(input=(1, 8, 8, 64), dtype="uint8", conv=(CONV, CONV))
HVX = Plan(kernel="hvx", k_split=4)


FEW = replace(CONV, out_channels=64)
SPREAD = replace(FEW, kernel=(1, 2), dilation=(1, 2), padding=Padding(left=30))
"""No tile starts while the tile before it ends: before the padding there is one, and behind it no window is one run."""
APART = Case(
    "apart", replace(CHAIN, input=(1, 4, 12, 64), conv=(FEW, SPREAD)), replace(HVX, k_split=2, storage="output")
)
GROUPS = replace(APART, chain=replace(CHAIN, conv=(replace(FEW, groups=8),)))
"""Words of groups."""
SCALAR = replace(CONV, out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=1))
BANDS = Case(
    "bands",
    replace(CHAIN, input=(1, 10, 6, 32), zero_point=7, conv=(SCALAR, FEW)),
    replace(HVX, k_split=2, storage="output", threads=2),
)
"""Scalar code beside HVX: each thread sums the filter for its source's zero point."""


@RUN
@given(cases(storage=MIXED, kernels=("plain", "hvx")))
@example(APART)
@example(GROUPS)
@example(BANDS)
def test_formula_allocation_and_count_agree_wherever_caches_lie(case: Case) -> None:
    assume(is_supported(case.chain))
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    work = work_usage(case, count(lowered))
    assert work.agrees, [
        (each.name, each.predicted_bytes, each.bytes) for each in work.traffic if each.predicted_bytes != each.bytes
    ]
    predicted = cache_footprints(case.chain, case.settled)
    in_vtcm = {each.name for each in lowered.caches if each.scope == "global.vtcm"}
    assert in_vtcm == {each.name for each in predicted if each.is_in_vtcm(case.settled)}


def test_traffic_outside_is_what_a_1x1_pair_reads_and_writes() -> None:
    """8 rows of 2 tiles of 4 pixels x 4 blocks: words of 16 and of 32 a pixel, each read once; each filter twice."""
    outside = planned_work(CHAIN, replace(HVX, storage="output")).traffic_bytes
    again = 8 * 4 * 2 * 4  # first words of one tile a row more: the next tile's are multiplied while one is narrowed
    assert outside["input_cache"] == 8 * 8 * 64 + again
    assert outside["intermediate1"] == 8 * 8 * 128 + 8 * 8 * 128 + again  # written once, read once
    assert outside["filter1_cache"] == 8 * (2 * 64 * 128 + 2 * 128 * 4)
    assert "output_cache" not in outside


@pytest.mark.parametrize("plan", [HVX, replace(HVX, buffering="double"), Plan(kernel="plain")])
def test_demand_is_that_of_what_lies_in_vtcm(plan: Plan) -> None:
    demands = {storage: vtcm_fit(CHAIN, replace(plan, storage=storage)).demand_bytes for storage in STORAGES}
    assert demands["global"] == demands["vtcm"]  # what it would be
    assert all(demands[storage] > 0 for storage in MIXED)
    if plan.kernel == "hvx":
        apart = demands["input+intermediates"] + demands["filters+output"]
        shared = min(demands["input"], demands["output"]) if plan.buffering == "single" else 0  # these share memory
        assert demands["filters+output"] == demands["filters"] + demands["output"]
        assert demands["vtcm"] == apart - shared
        assert all(demands[storage] < demands["vtcm"] + (shared > 0) for storage in MIXED)


def test_a_plan_says_which_caches_are_outside() -> None:
    plan = replace(HVX, storage="filters+output")
    assert plan.slug == "ks4-hs1-filters+output-v68-hvx"
    case = Case("placed", CHAIN, plan)
    assert Case.parse(case.to_toml(), "placed") == case


@pytest.mark.parametrize("storage", ["vtcm", "input+output"])
def test_a_depthwise_conv_that_makes_nothing_sums_no_filter(storage: Storage) -> None:
    """The last conv reads one row of the second, which sees nothing but padding above the first."""
    how = Requantize(multiplier=1 << 30, shift=-8)
    depthwise = Conv2d(out_channels=32, kernel=(2, 1), groups=32, filter_zero_point=-55, requantize=how)
    between = Conv2d(out_channels=3, padding=Padding(top=10, left=0, bottom=0, right=0), requantize=how)
    last = Conv2d(out_channels=3, stride=(20, 1), requantize=how)
    chain = Chain(input=(1, 9, 8, 32), dtype="int8", zero_point=-57, conv=(depthwise, between, last))
    case = Case("nothing", chain, Plan(kernel="hvx", storage=storage))
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    work = work_usage(case, count(lowered))
    assert work.agrees, work
    assert planned_work(chain, case.settled).macs["conv1"] == 0
