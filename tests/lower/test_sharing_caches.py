"""Caches that share memory: no two are live at a time, wherever loops repeat them, and no run is different for it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import tvm_ffi
from hypothesis import assume, given
from hypothesis import strategies as st
from tvm import tirx

from hexconv.analyze import cache_usage
from hexconv.analyze.planned import Planned
from hexconv.lower import Lowered, lower_case
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.sweep.judging import judge
from tests.draws import JUDGED, SAME_LOWERED
from tests.strategies import cases

HOW = Requantize(multiplier=1518025757, shift=-8)
WIDE = Conv2d(out_channels=64, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=HOW)
NARROW = Conv2d(out_channels=32, requantize=HOW)
FOUR = Chain(
    input=(1, 13, 13, 64), dtype="uint8", filter_dtype="int8", output_layout="NHWC", conv=(NARROW, WIDE, NARROW, WIDE)
)
WHOLE = Plan(kernel="hvx", rows=13, k_split=1, storage="vtcm")


@st.composite
def sharing_caches(draw: st.DrawFn) -> Case:
    """Cases of HVX whose caches share memory: several convs, and nothing handed on from stripe to stripe."""
    case = draw(cases(dtypes=("uint8", "int8", "int16"), kernels=("hvx",)))
    words = {"buffering": draw(st.sampled_from(("single", "single", "double"))), "halo": "recompute"}
    case = replace(case, plan=replace(case.plan, **words, column_halo="recompute"))
    planned = Planned.of(case)
    assume(planned.nest == "rows" and any(len(memory.holds) > 1 for memory in planned.allocations))
    return case


def leaves(statement: tirx.Stmt, loops: tuple[tirx.For, ...] = ()) -> Iterator[tuple[tirx.Stmt, tuple[tirx.For, ...]]]:
    """Yield the statements that hold no others, in program order, with the loops around each."""
    if isinstance(statement, tirx.SeqStmt):
        for step in statement.seq:
            yield from leaves(step, loops)
    elif isinstance(statement, tirx.For):
        yield from leaves(statement.body, (*loops, statement))
    elif isinstance(statement, tirx.IfThenElse):
        for part in (statement.then_case, statement.else_case):
            yield from leaves(part, loops) if part is not None else ()
    elif not isinstance(statement, (tirx.AllocBuffer, tirx.DeclBuffer)):
        yield statement, loops


def touched(statement: tirx.Stmt, names: tuple[str, ...]) -> set[str]:
    """Return which of some caches a statement names."""
    found: set[str] = set()
    tvm_ffi.structural_walk(statement, (tirx.Var, lambda each: found.add(each.name)))
    return found & set(names)


def check_turns(lowered: Lowered, names: tuple[str, ...]) -> None:
    """In program order each cache has one run of touches; a loop that touches several holds all touches of each."""
    inside: dict[tirx.For, list[str]] = {}
    order: list[str] = []
    for statement, loops in leaves(lowered.labelled["main"].body):
        here = touched(statement, names)
        assert len(here) <= 1, f"{here} in one statement"
        order += here
        for loop in loops:
            inside.setdefault(loop, []).extend(here)
    changes = [name for name, before in zip(order, [None, *order[:-1]], strict=True) if name != before]
    assert changes == [name for name in names if name in order]
    for of_loop in inside.values():
        if len(several := set(of_loop)) > 1:
            assert all(of_loop.count(name) == order.count(name) for name in several)


@SAME_LOWERED
@given(sharing_caches())
def test_no_two_caches_of_a_memory_are_live_at_a_time(case: Case) -> None:
    lowered = lower_case(case)
    usage = cache_usage(case, lowered)
    assert usage.forms_agree
    for memory in lowered.allocations:
        if len(memory.holds) > 1:
            check_turns(lowered, memory.holds)


@pytest.mark.simulator
@JUDGED
@given(sharing_caches())
def test_runs_are_right(case: Case) -> None:
    verdict = judge(case)
    assert verdict.outcome == "agrees", verdict.reasons


@pytest.mark.parametrize(
    ("plan", "shared"),
    [
        (WHOLE, {("input_cache", "intermediate2", "output_cache"), ("intermediate1", "intermediate3")}),
        (replace(WHOLE, buffering="double"), {("intermediate1", "intermediate3")}),
        (replace(WHOLE, filters="resident", rows=4, halo="roll", order="h_outer"), set()),
    ],
    ids=("single", "double", "rings"),
)
def test_the_memories_of_four_convs(plan: Plan, shared: set[tuple[str, ...]]) -> None:
    memories = {memory.holds for memory in Planned(FOUR, plan).allocations if len(memory.holds) > 1}
    assert {holds for holds in memories if not holds[0].startswith("filter")} == shared


def test_kept_columns_keep_the_memory_of_what_they_are_restored_into() -> None:
    plan = replace(WHOLE, rows=1, w_split=3, halo="roll", order="h_outer", column_halo="keep")
    assert all(len(memory.holds) == 1 for memory in Planned(FOUR, plan).allocations)


def test_each_memory_is_as_large_as_the_largest_cache_in_it() -> None:
    planned = Planned(FOUR, WHOLE)
    sizes = {cache.name: cache.bytes for cache in planned.caches}
    assert all(memory.bytes == max(sizes[name] for name in memory.holds) for memory in planned.allocations)
    assert {name for memory in planned.allocations for name in memory.holds} == set(sizes)
