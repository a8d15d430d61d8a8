"""Copies that run while a chain computes: right whenever they happen, and each wait and each slot is needed."""

import re
from dataclasses import replace
from functools import lru_cache

import pytest
import tvm
import tvm_ffi
from tvm import tirx

from hexconv.analyze import work_usage
from hexconv.analyze.usage import miscounts
from hexconv.compute import chain_module, reference
from hexconv.errors import RunFailed
from hexconv.kernel import output_layout
from hexconv.lower import lower_case, queues, stages
from hexconv.lower.buffers import drop_annotations
from hexconv.lower.copies import part_of
from hexconv.lower.copy_code import start_copies
from hexconv.lower.lowered import Lowering
from hexconv.lower.pipeline import BLOCK_STAGES, through
from hexconv.run.check import check
from hexconv.run.copy_engine import MOMENTS, Copies
from hexconv.run.host import Host, count
from hexconv.run.measure import run_case
from hexconv.run.measurement import Array
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import output_shape, packed_arguments, random_tensors
from hexconv.schedule import stripe
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.knobs import Halo
from hexconv.tir.parts import WRITE_BACK, convolution
from tests.deep import one_in
from tests.lower import mutants

SEEDS = range(100)
SAME = Conv2d(out_channels=40, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1))
HALVING = replace(SAME, stride=(2, 2), activation="relu")
DILATED = replace(SAME, dilation=(2, 1), out_channels=5)
CHAINS = {
    "1x1": Chain(input=(1, 24, 9, 40), conv=(Conv2d(out_channels=70), Conv2d(out_channels=70))),
    "same": Chain(input=(2, 20, 3, 5), conv=(SAME, SAME)),
    "stride-2": Chain(input=(1, 50, 3, 5), dtype="int8", conv=(replace(SAME, stride=(2, 2)),)),
    "three-convs": Chain(input=(1, 41, 3, 3), conv=(SAME, HALVING, DILATED)),
}
PLANS = {
    "documented": Plan(kernel="plain", buffering="double"),
    "stripes": Plan(kernel="plain", order="h_outer", h_split=2, buffering="double"),
    "rings": Plan(kernel="plain", order="h_outer", halo="roll", buffering="double"),
    "least": Plan(kernel="plain", k_split=2, order="h_outer", halo="roll", filters="resident", buffering="double"),
}


def case_of(chain: str, plan: str) -> Case:
    return Case(f"{chain}-{plan}", CHAINS[chain], PLANS[plan])


@lru_cache
def numpys(chain: Chain) -> Array:
    tensors = random_tensors(chain)
    return reference(chain, *tensors.logical)


@lru_cache
def arguments_of(chain: Chain) -> list[Array]:
    return packed_arguments(chain, random_tensors(chain))


def run(case: Case, module: tvm.IRModule, copies: Copies, *, as_before: bytes | None = None) -> bytes | None:
    """The result's bits if it is numpy's and every promise about copies was kept; `as_before` is known to be."""
    chain = case.chain
    dtype = chain.output_dtype(len(chain.conv) - 1)
    try:
        measured = Host(copies, calls=1).run(module, arguments_of(chain), [(output_shape(chain), dtype)])
    except RunFailed:
        return None
    if (found := measured.outputs[0].tobytes()) == as_before:
        return found
    right = numpys(chain)
    verdict = check(measured.outputs[0], output_layout(chain), right, dtype, 0.0, chain.longest_sum)
    return found if verdict.passed else None


def is_right(case: Case, module: tvm.IRModule) -> bool:
    """Whether the result is numpy's at any moment."""
    return all(run(case, module, Copies(moment)) is not None for moment in MOMENTS)


PAIRS = [*zip(CHAINS, PLANS, strict=True), *zip(CHAINS, [*list(PLANS)[2:], *list(PLANS)[:2]], strict=True)]


@pytest.mark.parametrize(("chain", "plan"), one_in(4, PAIRS))
def test_every_moment_gives_the_right_result(chain: str, plan: str) -> None:
    """As early as possible, as late as possible, and a hundred times at random: one result."""
    case = case_of(chain, plan)
    module = lower_case(case).module
    early = run(case, module, Copies("early"))
    assert early is not None
    moments = [Copies("late"), *(Copies("random", seed) for seed in SEEDS)]
    assert {run(case, module, copies, as_before=early) for copies in moments} == {early}


@pytest.mark.simulator
def test_the_simulator_says_so_too_and_counts_no_packet_of_the_engine() -> None:
    case = case_of("stride-2", "rings")
    lowered = lower_case(case)
    runs = [run_case(case, lowered, Simulator(copies=Copies(moment, 7), slots=False)) for moment in ("random", "late")]
    assert all(each.check.passed for each in runs)
    assert runs[0].counts == runs[1].counts


FILTERED = Conv2d(
    out_channels=16,
    kernel=(3, 3),
    padding=Padding(top=1, left=2, bottom=1, right=0),
    filter_zero_point=3,
    requantize=Requantize(multiplier=0x5A7B3C1D, shift=-7),
)
"""Its sums have a part of the fringe, too, since its filter has a zero point."""


@pytest.mark.simulator
@pytest.mark.parametrize("halo", ["roll", "recompute"])
@pytest.mark.parametrize("channels", [1, 3, 13, 33])
def test_rows_are_filled_before_copies_write_over_what_they_hold(channels: int, halo: Halo) -> None:
    """A copy that is performed as soon as it starts is not written over, and the fringe holds the zero point."""
    chain = Chain(input=(1, 20, 27, channels), dtype="uint8", zero_point=77, conv=(FILTERED,))
    double = Plan(kernel="hvx", order="h_outer", halo=halo, buffering="double")
    for plan in (double, replace(double, threads=2), replace(double, buffering="single")):
        case = Case("filled", chain, plan)
        lowered = lower_case(case)
        for moment in MOMENTS:
            assert run_case(case, lowered, Simulator(copies=Copies(moment, 7), slots=False)).check.passed


@pytest.mark.parametrize("plan", ["stripes", "rings"])
def test_the_engine_counts_what_the_closed_form_says(plan: str) -> None:
    """A third opinion, from the run itself: bytes of every tensor, and copies under way."""
    case = case_of("three-convs", plan)
    lowered = lower_case(case)
    arguments = packed_arguments(case.chain, random_tensors(case.chain))
    found = Host().run(lowered.module, arguments, [(output_shape(case.chain), "float32")]).copies
    work = work_usage(case, count(lowered))
    assert found is not None
    assert list(found.moved_bytes) == [tensor.predicted_bytes for tensor in work.traffic]
    assert list(found.most_in_flight) == [tensor.predicted_copies_in_flight for tensor in work.traffic]


@pytest.mark.parametrize("plan", ["documented", "least"])
def test_two_slots_change_no_traffic(plan: str) -> None:
    double = case_of("three-convs", plan)
    single = replace(double, plan=replace(double.plan, buffering="single"))
    counts = [count(lower_case(case)) for case in (single, double)]
    assert counts[0].traffic_bytes == counts[1].traffic_bytes
    assert counts[0].macs == counts[1].macs
    assert set(counts[0].copies_in_flight.values()) == {0}


SPREAD = Requantize(multiplier=131072)
"""To results that differ: where all are alike, a wrong one can be right."""

HVX = Chain(
    input=(1, 26, 4, 8),
    dtype="uint8",
    conv=(
        replace(SAME, requantize=SPREAD),
        Conv2d(out_channels=40, requantize=SPREAD),
    ),
)
BREAKABLE = [
    case_of("stride-2", "documented"),
    case_of("1x1", "least"),
    case_of("same", "rings"),
    Case("hvx-rings", HVX, replace(PLANS["rings"], kernel="hvx", storage="vtcm")),
    Case("hvx-stripes", HVX, replace(PLANS["stripes"], kernel="hvx", h_split=1)),
]
"""What is broken below: each of its waits and each of its slots."""

SMALL = Chain(input=(1, 20, 4, 8), dtype="uint8", conv=(Conv2d(out_channels=8, kernel=(3, 1), requantize=SPREAD),))
SMALL_HVX = Case("hvx-small", SMALL, replace(PLANS["rings"], kernel="hvx", storage="vtcm"))
"""The same for HVX in seconds, so that it is never left to the deep tests: a ring of rows, and filters a tile each."""


def test_a_stripe_that_makes_nothing_waits_for_what_it_has_read() -> None:
    """All rows of the image fit into its ring: none is read ahead. A guard leaves out convs of padding alone."""
    first = Conv2d(out_channels=40, kernel=(5, 1), padding=Padding(top=14, left=0, bottom=6, right=0))
    last = Conv2d(out_channels=40, stride=(2, 1), padding=Padding(top=18, left=0, bottom=0, right=0))
    convs = tuple(replace(conv, requantize=SPREAD) for conv in (first, last))
    plan = replace(PLANS["rings"], kernel="hvx", rows=1, filters="resident", threads=2, storage="vtcm")
    case = Case("padding", Chain(input=(2, 8, 4, 5), dtype="uint8", conv=convs), plan)
    assert list(miscounts(work_usage(case, count(lower_case(case))))) == []


def breakable(case: Case) -> object:
    """A case as a parameter; HVX kernels need the simulator."""
    marks = [pytest.mark.simulator] if case.settled.kernel == "hvx" else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [*one_in(4, map(breakable, BREAKABLE[:-1])), breakable(SMALL_HVX)])
def test_a_wait_that_is_missing_or_one_early_has_a_name(case: Case) -> None:
    lowered = lower_case(case)
    assert mutants.verdicts(case, lowered) == ""
    assert mutants.waits(lowered) >= 5
    for number in range(mutants.waits(lowered)):
        for broken in (mutants.without_wait(lowered, number), mutants.one_early(lowered, number)):
            assert re.search(r"under way|another result", mutants.verdicts(case, broken)), number


@pytest.mark.parametrize("case", [*one_in(5, map(breakable, BREAKABLE)), breakable(SMALL_HVX)])
def test_a_slot_that_is_used_again_too_soon_has_a_name(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = mutants.doubled(case, monkeypatch)
    assert len(doubled) >= 1 + ("stripes" in case.name)
    for cache in doubled:
        assert re.search(r"under way", mutants.verdicts(case, mutants.with_one_slot(case, cache, monkeypatch))), cache


def with_asynchronous_write_back(case: Case, share: bool) -> tvm.IRModule:
    """A documented schedule whose output is copied out while the next step reads its input.

    Its output cache has one slot, and waits before the next output is computed. `share` lets TVM's StorageRewrite
    choose the memory, as the document does; else every cache has its own for the whole run.
    """

    def change(loop: tirx.For) -> tirx.Stmt:
        part = part_of(loop)
        if part == WRITE_BACK:
            return tirx.SeqStmt([queues.start_group(3), loop, queues.end_group(3)])
        return tirx.SeqStmt([queues.wait(3, 0), loop]) if part == convolution(2) else loop

    scheduled = stripe(chain_module(case.chain), case.chain, case.plan)
    shaped = through(BLOCK_STAGES[: BLOCK_STAGES.index(stages.name_loops)], Lowering(scheduled.module, scheduled))
    body = tvm_ffi.structural_map(shaped.main.body, (tirx.For, change))
    steps = [*(body.seq if isinstance(body, tirx.SeqStmt) else [body]), queues.wait(3, 0)]
    flat = stages.flatten(shaped.to(shaped.main.with_body(tirx.SeqStmt(steps))))
    merged = stages.merge_caches(stages.name_caches(flat)).module if share else with_caches_outside(flat.module)
    return drop_annotations(start_copies(merged))


def with_caches_outside(module: tvm.IRModule) -> tvm.IRModule:
    """Every cache allocated before all loops."""
    allocated: list[tirx.AllocBuffer] = []

    def without(sequence: tirx.SeqStmt) -> tirx.Stmt:
        kept = [step for step in sequence.seq if not isinstance(step, tirx.AllocBuffer)]
        return tirx.SeqStmt(kept) if len(kept) > 1 else kept[0]

    main = module["main"]
    tvm_ffi.structural_walk(main.body, (tirx.AllocBuffer, allocated.append))
    body = tvm_ffi.structural_map(main.body, (tirx.SeqStmt, without))
    return tvm.IRModule({"main": main.with_body(tirx.SeqStmt([*allocated, body]))})


def test_sharing_memory_as_in_the_document_breaks_asynchronous_copies() -> None:
    """Seed document 003 lets the output live in the input cache's memory; the next input lands there too early."""
    square = Conv2d(out_channels=64)
    case = Case("documented", Chain(input=(1, 24, 9, 64), conv=(square, square)), Plan(kernel="plain"))
    assert ("input_cache", "output_cache") in [memory.holds for memory in lower_case(case).allocations]
    assert is_right(case, with_asynchronous_write_back(case, share=False))
    assert run(case, with_asynchronous_write_back(case, share=True), Copies("late")) is None
