"""All plans of random chains at once against each alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from hexconv.analyze import planned_work, shared_allocations
from hexconv.analyze.exact import integer_type
from hexconv.errors import InputError
from hexconv.search import Grid, Question, Space, evaluate
from hexconv.search.cuts import piece_of
from hexconv.search.found import quickest
from hexconv.search.machine import known_machines, rates
from hexconv.search.space import LONG
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, nest_of
from hexconv.spec.capacities import MOST_QUEUES, granules_bytes
from hexconv.spec.kernels import KERNELS
from tests.draws import LOWERED
from tests.strategies import chains

THREE = Conv2d(out_channels=128, kernel=(3, 3))
PAIR = Chain(input=(1, 64, 64, 128), conv=(THREE, THREE))


def grid_of(chain: Chain, plan: Plan | None = None) -> Grid:
    return evaluate(chain, Space.of(chain, plan or Plan()), rates("v68"))


def footprint(chain: Chain, plan: Plan) -> int:
    return sum(granules_bytes(memory.bytes) for memory in shared_allocations(chain, plan))


@LOWERED
@given(chains())
def test_every_plan_has_the_figures_of_a_grid_of_one(chain: Chain) -> None:
    grid = grid_of(chain)
    for number in range(grid.space.size):
        figures = grid.figures(number)
        work = planned_work(chain, figures.plan)
        assert figures.footprint_bytes == footprint(chain, figures.plan), figures.plan
        assert figures.traffic_bytes == sum(work.traffic_bytes.values()), figures.plan
        assert figures.macs == sum(work.macs.values()), figures.plan


CHAINS = {
    # Steps and tiles of the first convs alone part its plans: three bits a conv, and 26 of them lie behind.
    "long": Chain(
        input=(1, 40, 8, 32),
        conv=(
            *([replace(THREE, padding=Padding(top=1, bottom=1, left=1, right=1))] * 2),
            *([Conv2d(out_channels=8)] * 26),
        ),
    ),
    # Tall, so that stripes overlap many times; strides that step over slabs; dilations that reach over many.
    "tall": Chain(input=(2, 700, 5, 40), conv=(Conv2d(out_channels=100, kernel=(9, 1), dilation=(3, 1)), THREE)),
    "over": Chain(
        input=(1, 900, 3, 5),
        conv=(Conv2d(out_channels=3, kernel=(5, 1), stride=(2, 1)), Conv2d(out_channels=3, stride=(12, 1))),
    ),
    "one-row": Chain(input=(3, 3, 9, 70), conv=(Conv2d(out_channels=70, kernel=(3, 3)), Conv2d(out_channels=300))),
    "padded": Chain(
        input=(1, 20, 20, 64),
        conv=(replace(THREE, padding=Padding(top=9, bottom=9)), replace(THREE, stride=(3, 2), bias=True), THREE),
    ),
    # With k_outer and one row step, whether the second conv has channel tiles decides who takes over whose memory.
    "tiles": Chain(
        input=(1, 12, 8, 8),
        dtype="float16",
        conv=(
            Conv2d(out_channels=64, kernel=(3, 3)),
            Conv2d(out_channels=96, stride=(2, 1)),
            Conv2d(out_channels=96, bias=True),
        ),
    ),
    "halfwords": Chain(
        input=(1, 30, 9, 40),
        dtype="int16",
        filter_dtype="int8",
        conv=(replace(THREE, requantize=Requantize(multiplier=1 << 24)), Conv2d(out_channels=70)),
    ),
    "quantised": Chain(
        input=(1, 40, 40, 64),
        dtype="int8",
        conv=(replace(THREE, requantize=Requantize(multiplier=1 << 30)), replace(THREE, out_channels=200)),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_grid_is_exact_where_chains_are_large(name: str) -> None:
    chain, random = CHAINS[name], np.random.default_rng(0)
    grid = grid_of(chain)
    for number in random.choice(grid.space.size, min(60, grid.space.size), replace=False):
        figures = grid.figures(int(number))
        work = planned_work(chain, figures.plan)
        found = (figures.footprint_bytes, figures.traffic_bytes, figures.macs)
        known = (footprint(chain, figures.plan), sum(work.traffic_bytes.values()), sum(work.macs.values()))
        assert found == known, figures.plan


def test_every_plan_of_the_space_is_a_case() -> None:
    space = Space.of(PAIR, Plan())
    plans = {space.plan(number) for number in range(space.size)}
    assert len(plans) == space.size == 14 * 8 * 4
    assert {Case("any", PAIR, plan).plan for plan in plans} == plans


def test_long_nests_of_blocks_are_searched_by_powers_of_two() -> None:
    chain = replace(PAIR, conv=(Conv2d(out_channels=400),) * (LONG + 1))
    assert nest_of(chain, Plan()) == "blocks"
    assert Space.of(chain, Plan()).k_splits.tolist() == [1, 2, 4, 8, 13]
    assert Space.of(piece_of(chain, 1, LONG + 1), Plan()).k_splits.tolist() == list(range(1, 14))


def test_chains_of_more_queues_than_a_platform_has_are_not_double_buffered() -> None:
    for kernel in KERNELS:
        small = Conv2d(out_channels=8, requantize=Requantize(multiplier=1 << 30))
        chain = replace(PAIR, dtype="uint8", conv=(small,) * (MOST_QUEUES - 2))
        longer = replace(chain, conv=(*chain.conv, chain.conv[0]))
        both, single = (Space.of(each, Plan(kernel=kernel)).words for each in (chain, longer))
        assert {plan.buffering for plan in both} == {"single", "double"}, kernel
        assert {plan.buffering for plan in single} == {"single"}, kernel


def test_figures_past_64_bits_are_exact() -> None:
    huge = Conv2d(out_channels=2**20, kernel=(3, 3), padding=Padding(top=1, bottom=1))
    chain = Chain(input=(1, 64, 2**20, 2**20), conv=(huge, huge))
    space = Space.of(chain, Plan())
    part = replace(space, h_splits=space.h_splits[:2], k_splits=np.array([1, 1000]))
    grid = evaluate(chain, part, rates("v68"))
    assert grid.macs.max() > 2**63
    for number in range(part.size):
        known = planned_work(chain, part.plan(number))
        assert int(grid.macs[number]) == sum(known.macs.values())
        assert int(grid.traffic_bytes[number]) == sum(known.traffic_bytes.values())
        assert int(grid.footprint_bytes[number]) == footprint(chain, part.plan(number))
    assert integer_type(2**62) is object
    found = quickest(grid, np.arange(part.size), Question(1 << 40, "latency", plan=Plan()))
    assert found[0].latency_packets == grid.latency_packets.min()


def test_merging_equal_steps_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = grid_of(CHAINS["tall"])
    monkeypatch.setattr("hexconv.analyze.block_nest.MERGED_FROM", 0)
    merged = grid_of(CHAINS["tall"])
    assert (apart.traffic_bytes == merged.traffic_bytes).all()
    assert (apart.macs == merged.macs).all()


def test_plans_walked_a_few_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    together = grid_of(PAIR).footprint_bytes
    monkeypatch.setattr("hexconv.analyze.shared_memory.AT_A_TIME", 7)
    assert (grid_of(PAIR).footprint_bytes == together).all()


@pytest.mark.parametrize("name", ["tall", "tiles"])
def test_a_space_in_parts_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = grid_of(CHAINS[name])
    monkeypatch.setattr("hexconv.search.space.PART", 30)
    assert len([*whole.space.parts(CHAINS[name].shapes[-1][1] // 8)]) > 1
    parted = grid_of(CHAINS[name])
    for figure in ("footprint_bytes", "traffic_bytes", "macs", "latency_packets"):
        assert (getattr(whole, figure) == getattr(parted, figure)).all()


def test_the_grid_of_hvx_has_the_figures_of_grids_of_one() -> None:
    plan = Plan(kernel="hvx")
    conv = Conv2d(out_channels=64, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-7))
    chain = Chain(input=(1, 40, 40, 64), dtype="uint8", conv=(conv, conv))
    grid = grid_of(chain, plan)
    plans = [found.plan for found in map(grid.figures, range(grid.space.size))]
    assert plans[0] == plan
    assert len(set(plans)) == 14 * 8 * 2
    for number in range(grid.space.size):
        figures = grid.figures(number)
        work = planned_work(chain, figures.plan)
        found = (figures.footprint_bytes, figures.traffic_bytes, figures.macs)
        assert found == (footprint(chain, figures.plan), sum(work.traffic_bytes.values()), sum(work.macs.values()))


def test_every_architecture_with_vtcm_has_rates_with_a_source() -> None:
    for arch in ("v65", "v66", "v68", "v69", "v73", "v75"):
        assert arch in known_machines()
        assert "measured" in rates(arch).source
    with pytest.raises(InputError, match="v68"):
        rates("v1")
