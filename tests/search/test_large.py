"""CP-SAT against looking at every plan: the same objective, and the proof says how it was found."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hexconv.search import Objective, Question, Space, best_plan, evaluate
from hexconv.search import large as large_module
from hexconv.search.found import choose
from hexconv.search.large import search_large
from hexconv.search.machine import rates
from hexconv.search.objective import cost
from hexconv.search.tables import part_tables
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize
from tests.strategies import chains

OBJECTIVES: tuple[Objective, ...] = ("traffic", "latency", "footprint")
MACHINE = rates("v68")


@settings(max_examples=12, deadline=None)
@given(chains(), st.sampled_from(OBJECTIVES), st.floats(0, 1))
def test_it_finds_what_looking_at_all_plans_finds(chain: Chain, objective: Objective, share: float) -> None:
    space = Space.of(chain, Plan())
    assume(space.size <= 150)
    grid = evaluate(chain, space, MACHINE)
    low, high = int(grid.footprint_bytes.min()), int(grid.footprint_bytes.max())
    question = Question(int(low - 2048 + share * (high - low + 4096)), objective)
    every, found = choose(grid, question, None), search_large(chain, question, MACHINE, None)
    assert found.proof.status == "optimal"
    assert (found.best is None) == (every.best is None)
    if found.best and every.best:
        assert cost(found.best, objective)[0] == pytest.approx(cost(every.best, objective)[0])
        assert found.best.footprint_bytes <= question.vtcm_bytes
    else:
        assert found.smallest.footprint_bytes == every.smallest.footprint_bytes


HALVED = Requantize(multiplier=1 << 30, shift=-7)
# One stripe: the resident filter of the first conv is dead where the second runs, and the output takes its memory.
TAKEN_OVER = Chain(
    input=(1, 33, 9, 8),
    dtype="int8",
    conv=(
        Conv2d(out_channels=160, kernel=(3, 3), requantize=HALVED),
        Conv2d(out_channels=8, kernel=(3, 3)),
    ),
)

# The first conv has two steps for the one of the second: a loop around the first alone.
LOOP_OVER_THE_FIRST = Chain(
    input=(1, 12, 8, 8), conv=(Conv2d(out_channels=32, kernel=(3, 3)), Conv2d(out_channels=96, kernel=(3, 3)))
)


def test_resident_filters_of_earlier_convs_count_where_stripes_come_back_to_them() -> None:
    space = Space.of(TAKEN_OVER, Plan())
    words = [plan for plan in space.words if plan.filters == "resident"]
    assert words
    for h_split, live in ((1, [4, 4]), (4, [4, 3])):  # source, filters, target
        for plan in words:
            part = Space((plan,), np.array([h_split]), space.k_splits)
            found = part_tables(TAKEN_OVER, part, Question(1 << 40), MACHINE).together
            assert [len(caches) for caches in found] == live


@settings(max_examples=20, deadline=None)
@given(chains())
@example(TAKEN_OVER)
@example(LOOP_OVER_THE_FIRST)
def test_what_the_solver_knows_is_exact_for_traffic_and_never_above_a_footprint(chain: Chain) -> None:
    space = Space.of(chain, Plan())
    assume(space.size <= 400)
    grid, question = evaluate(chain, space, MACHINE), Question(1 << 40)
    for part in large_module._parts(chain, space):
        tables = part_tables(chain, part, question, MACHINE)
        word = space.words.index(part.words[0])
        for i, h in enumerate(part.h_splits):
            for j, k in enumerate(part.k_splits):
                number = (word * space.shape[1] + int(h) - 1) * space.shape[2] + int(k) - 1
                values = [entry(product.over_h, i) * entry(product.over_k, j) for product in tables.objective[0]]
                assert sum(values) == grid.traffic_bytes[number]
                for caches in tables.together:
                    live = sum(entry(cache.over_h, i) * entry(cache.over_k, j) for cache in caches)
                    assert live <= grid.footprint_bytes[number]


def entry(table, index: int) -> int:
    return int(table[index if len(table) > 1 else 0])


def test_a_space_that_is_too_large_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Conv2d(out_channels=512, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))
    chain = Chain(input=(1, 300, 32, 512), conv=(same, same))
    question = Question(4 << 20)
    every = best_plan(chain, question)
    monkeypatch.setattr("hexconv.search.large.LARGEST_GRID", 1000)
    found = best_plan(chain, replace(question, plan=Plan(arch="v69")))
    assert (every.proof.method, found.proof.method, found.proof.status) == ("exhaustive", "cp-sat", "optimal")
    assert every.best is not None
    assert found.best is not None
    assert found.best.traffic_bytes == every.best.traffic_bytes
    assert found.proof.evaluated < found.proof.plans == every.proof.plans


def test_without_time_the_best_so_far_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hexconv.search.large.SECONDS", 0.0)
    chain = Chain(input=(1, 64, 64, 128), conv=(Conv2d(out_channels=128),) * 2)
    assert search_large(chain, Question(1 << 20), MACHINE, None).proof.status == "feasible"


def test_it_goes_on_until_nothing_better_is_left() -> None:
    """The best plan is a fifth better than any of h_split = 1, which are looked at first."""
    three = Conv2d(out_channels=128, kernel=(3, 3))
    chain, question = Chain(input=(1, 64, 64, 128), conv=(three, three)), Question(2 << 20)
    found = search_large(chain, question, MACHINE, None)
    assert found.best is not None
    assert found.best.traffic_bytes == 10682368
    assert found.proof.status == "optimal"
