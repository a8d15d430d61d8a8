"""Lives of caches: what shares memory lives one after the other, and what is read was alive."""

from itertools import pairwise

from hypothesis import given

from hexconv.analyze import Planned, cache_footprints, shared_allocations
from hexconv.report.plots.memory_plots import timeline_of
from hexconv.spec import Case, Chain, Conv2d, Plan
from tests.strategies import cases


@given(cases())
def test_caches_of_one_allocation_take_turns(case: Case) -> None:
    timeline = timeline_of(Planned(case.chain, case.plan))
    lives = {life.cache: life for life in timeline.lives}
    assert sorted(lives) == sorted(cache.name for cache in cache_footprints(case.chain, case.plan))
    for memory in shared_allocations(case.chain, case.plan):
        for one, next_one in pairwise(memory.holds):
            in_place = timeline.statements[lives[one].last].endswith("epilogue")
            assert lives[one].last < lives[next_one].first + in_place


@given(cases())
def test_every_statement_has_what_it_touches(case: Case) -> None:
    timeline = timeline_of(Planned(case.chain, case.plan))
    for at, statement in enumerate(timeline.statements):
        alive = timeline.alive(at)
        if statement == "write output":
            assert "output_cache" in alive
        elif statement.startswith("read filter"):
            assert f"filter{statement.rpartition(' ')[2]}_cache" in alive
        elif statement == "read input":
            assert "input_cache" in alive
        else:
            number = int(statement.split()[1])
            made = f"intermediate{number}" if number < len(case.chain.conv) else "output_cache"
            assert {made, f"accumulator{number}"} & set(alive)


def test_resident_filters_and_rings_live_from_the_start_to_the_end() -> None:
    conv = Conv2d(out_channels=64, kernel=(3, 3))
    chain = Chain(input=(1, 40, 40, 64), conv=(conv, conv))
    timeline = timeline_of(Planned(chain, Plan(kernel="plain", order="h_outer", halo="roll", filters="resident")))
    lives = {life.cache: (life.first, life.last) for life in timeline.lives}
    end = len(timeline.statements) - 1
    # A step that only reads comes before the stripes.
    assert timeline.statements[:4] == ("read filter 1", "read filter 2", "read input", "read input")
    assert lives["filter1_cache"] == (0, end)
    assert lives["input_cache"] == (2, end)
    assert lives["intermediate1"] == (3, end)
