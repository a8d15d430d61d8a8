"""The best plan: found again one plan at a time by the scalar forms, and every other plan accounted for."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hexconv.analyze import Planned, planned_work
from hexconv.analyze.block_grid import blocks_doubled
from hexconv.analyze.fit import vtcm_terms
from hexconv.errors import Unsupported
from hexconv.search import Objective, Question, Space, best_plan, placed, plan_all
from hexconv.search.machine import rates
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.capacities import capacity_bytes
from hexconv.spec.kernels import Kernel
from tests.draws import LOWERED, RUN
from tests.strategies import chains, is_supported

THREE = Conv2d(out_channels=128, kernel=(3, 3))
PAIR = Chain(input=(1, 64, 64, 128), conv=(THREE, THREE))
QUANTISED = Chain(
    input=(1, 40, 40, 64),
    dtype="uint8",
    conv=(Conv2d(out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-7)),) * 2,
)
OBJECTIVES: tuple[Objective, ...] = ("traffic", "latency", "footprint")


def plans_of(chain: Chain, plan: Plan) -> list[Plan]:
    """All of a space."""
    space = Space.of(chain, plan)
    return [space.plan(number) for number in range(space.size)]


def one_by_one(chain: Chain, plan: Plan) -> dict[str, float]:
    """The figures of one plan by the scalar forms."""
    work = planned_work(chain, plan)
    traffic, macs = sum(work.traffic_bytes.values()), sum(work.macs.values())
    rate = rates("v68").kernels[chain.dtype]
    compute, copy = macs / rate.macs_per_packet, traffic / rate.copied_bytes_per_packet
    return {
        "footprint": sum(term.vtcm_bytes for term in vtcm_terms(Planned(chain, plan))),
        "traffic": traffic,
        "latency": max(compute, copy) if blocks_doubled(Planned(chain, plan).blocks) else compute + copy,
    }


PLAIN = Plan(kernel="plain")


FOUND = Requantize(multiplier=1 << 30, shift=-9)
DEPTHWISE = Conv2d(out_channels=16, kernel=(5, 5), padding=2, groups=16, requantize=FOUND)  # pyright: ignore[reportArgumentType]
NARROW = Chain(
    input=(2, 12, 40, 16),
    dtype="uint8",
    filter_dtype="int8",
    input_layout="NHCW32c",
    conv=(replace(DEPTHWISE, groups=1, stride=(2, 2)), DEPTHWISE),
)


def test_the_plain_kernel_has_no_plan_without_scalar_loads() -> None:
    with pytest.raises(Unsupported, match=r"^the plain kernel reads every cache by scalar loads"):
        best_plan(PAIR, Question(1 << 22, caches="no-vtcm-scalar-loads"))


@pytest.mark.parametrize(("asked", "used"), [(None, "plain"), ("hvx", "hvx")])
def test_a_kernel_that_is_asked_for_takes_the_place_of_the_cases_own(asked: Kernel | None, used: Kernel) -> None:
    chain = replace(QUANTISED, input=(1, 8, 8, 64))
    [planned] = plan_all([Case("small", chain, PLAIN)], Question(1 << 20), kernel=asked).planned
    assert planned.fused
    assert planned.fused.case.plan.kernel == used


@RUN
@given(chains(), st.integers(0, 3))
@example(NARROW, 0)
def test_a_question_that_states_no_plan_counts_as_the_command_line_does(chain: Chain, above: int) -> None:
    """At the least memory that something fits, and a little above: some kernels keep buffers that never lie in VTCM."""
    assume(is_supported(chain))
    least = best_plan(chain, Question(1, target="hexagon")).smallest.footprint_bytes
    question = Question(least + 128 * above, target="hexagon")
    [planned] = plan_all([Case("drawn", chain, Plan(), target="hexagon")], question).planned
    alone = best_plan(chain, question)
    assert alone.best is not None
    assert (alone.best, alone.smallest) == (planned.found.best, planned.found.smallest)


@LOWERED
@given(chains(), st.sampled_from(OBJECTIVES), st.floats(0, 1))
def test_no_plan_that_fits_is_better(chain: Chain, objective: Objective, share: float) -> None:
    assume(is_supported(chain))
    space = Space.of(chain, PLAIN)
    assume(space.size <= 150)
    plans = [one_by_one(chain, space.plan(number)) for number in range(space.size)]
    sizes = sorted(plan["footprint"] for plan in plans)
    limit = int(sizes[0] - 2048 + share * (sizes[-1] - sizes[0] + 4096))
    found = best_plan(chain, Question(max(limit, 1), objective, plan=PLAIN))
    fitting = [plan for plan in plans if plan["footprint"] <= limit]
    assert found.proof.fitting == len(fitting)
    assert found.smallest.footprint_bytes == sizes[0]
    assert (found.best is None) == (not fitting)
    if not found.best:
        return
    best = one_by_one(chain, found.best.plan)
    least = min(plan[objective] for plan in fitting)
    slack = Question(1, objective).slack
    if objective == "latency":  # of those as quick, the one that moves least
        assert best["traffic"] == min(plan["traffic"] for plan in fitting if plan["latency"] <= least * (1 + slack))
        assert best["latency"] <= least * (1 + slack)
    else:
        assert best[objective] == pytest.approx(least)
    assert best["footprint"] == found.best.footprint_bytes <= limit
    assert sum(excluded.plans for excluded in found.proof.excluded) + 1 == space.size
    better = [plan["footprint"] for plan in plans if plan[objective] < least * (1 - 1e-12)]
    assert found.proof.better_plans == len(better)
    if better:
        assert found.proof.least_better is not None
        assert found.proof.least_better.footprint_bytes == min(better)
        assert found.proof.over_bytes == min(better) - limit > 0


@LOWERED
@given(chains())
def test_the_front_is_every_plan_that_none_beats(chain: Chain) -> None:
    assume(is_supported(chain))
    space = Space.of(chain, PLAIN)
    assume(space.size <= 100)
    figures = [one_by_one(chain, space.plan(number)) for number in range(space.size)]
    pairs = {(plan["footprint"], plan["traffic"]) for plan in figures}
    front = {
        (size, traffic)
        for size, traffic in pairs
        if not any(s <= size and t <= traffic and (s, t) != (size, traffic) for s, t in pairs)
    }
    found = best_plan(chain, Question(1 << 40, plan=PLAIN)).front
    assert {(one.footprint_bytes, one.traffic_bytes) for one in found} == front
    assert len(found) == len(front)


def test_of_equal_plans_the_one_nearest_to_the_documented_schedule_is_the_answer() -> None:
    """One conv, one block: no knob matters."""
    chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),))
    found = best_plan(chain, Question(1 << 20))
    assert found.best is not None
    assert found.best.plan == Plan(kernel="plain", storage="vtcm")
    assert found.runner_up is None
    assert [excluded.plans for excluded in found.proof.excluded] == [0, 0, 0, 13]


def test_the_needed_traffic_bounds_the_answer_and_is_reached() -> None:
    found = best_plan(PAIR, Question(4 << 20))
    assert found.best is not None
    assert found.best.traffic_bytes == found.proof.lower_bound == 5373952
    assert found.proof.better_plans == 0
    assert found.proof.least_better is None


def test_the_latency_weighs_recomputing_against_reloading() -> None:
    wider = Chain(input=(1, 64, 64, 64), conv=(THREE, THREE))
    least_traffic, quickest = (best_plan(wider, Question(1376256, what)).best for what in ("traffic", "latency"))
    assert least_traffic is not None
    assert quickest is not None
    assert quickest.macs < least_traffic.macs
    assert quickest.latency_packets < least_traffic.latency_packets


def test_hvx_kernels_are_planned_by_all_that_plain_ones_are() -> None:
    plan = Plan(kernel="hvx", storage="vtcm")
    pointwise = Conv2d(out_channels=64, requantize=Requantize(multiplier=1 << 30, shift=-7))
    chain = replace(QUANTISED, conv=(pointwise, replace(pointwise, out_channels=128)))
    least = {objective: best_plan(chain, Question(4 << 20, objective, plan)).best for objective in OBJECTIVES}
    moved = {plan: sum(planned_work(chain, plan).traffic_bytes.values()) for plan in plans_of(chain, plan)}
    assert least["traffic"]
    assert least["traffic"].traffic_bytes == min(moved.values())
    assert least["footprint"]
    assert least["footprint"].plan.h_split == 1
    assert least["latency"]


def test_a_plan_is_placed_where_it_fits() -> None:
    plan = placed(Plan(), capacity_bytes("v68"))
    assert (plan.storage, plan.arch) == ("vtcm", "v68")
    assert placed(Plan(), capacity_bytes("v68") + 1).arch == "v69"
    assert placed(replace(plan, arch="v75"), 1).arch == "v75"
    assert placed(Plan(), 1 << 40).storage == "global"


def test_the_whole_space_of_a_wide_pair_is_looked_at() -> None:
    wide = Conv2d(out_channels=512, kernel=(3, 3))
    proof = best_plan(Chain(input=(1, 512, 224, 512), conv=(wide, wide)), Question(4 << 20)).proof
    assert proof.plans == 14 * 20 * 16
