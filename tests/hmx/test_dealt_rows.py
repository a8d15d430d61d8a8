"""Threads beside the matrix engine: they compute what one thread does, each some rows of tiles, by a lock."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from tvm import tirx

from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.engine_parts import parts_beside_engine
from hexconv.analyze.planned import Planned
from hexconv.build.built_chain import built_chain, platform_files
from hexconv.build.called_library import simulated_chain
from hexconv.errors import RunFailed
from hexconv.kernel.engine_words import LOCK, UNLOCK
from hexconv.lower import dealt_rows, lower_case
from hexconv.run.copy_engine import Copies
from hexconv.run.measure import run_case, runner_of
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import random_tensors
from hexconv.search import Question, best_plan
from hexconv.search.grid import evaluate
from hexconv.search.machine import rates
from hexconv.search.space import Space
from hexconv.spec import Case, Conv2d, Padding, Plan, Requantize
from hexconv.sweep.random_case import random_case
from hexconv.tir import marks
from hexconv.tir.trees import all_of
from tests.deep import one_in
from tests.hmx.test_kernel import CHAIN, CONV, CUT, FAST, HOW, SEED, check, counted_as_predicted

DEALT = {
    "rows": Plan(kernel="hmx", threads=4, k_split=2, h_split=2),
    "rings": Plan(kernel="hmx", threads=3, k_split=2, order="h_outer", halo="roll", filters="resident"),
    "tiles": Plan(kernel="hmx", threads=4, halo="roll", order="h_outer"),
    "overlapped": Plan(kernel="hmx", threads=2, k_split=2, h_split=3, buffering="double"),
}
HOWS = {"exact": (HOW, HOW), "fast": (FAST, CUT)}


def case_of(plan: Plan, hows: tuple[Requantize, Requantize], name: str = "dealt") -> Case:
    """A chain of ragged sizes, pixels at both ends."""
    convs = tuple(replace(CONV, requantize=how) for how in hows)
    return Case(name, replace(CHAIN, output_layout="NHWC", conv=convs), plan)


@pytest.mark.simulator
@pytest.mark.parametrize("hows", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("plan", DEALT.values(), ids=DEALT)
def test_threads_compute_what_one_does(plan: Plan, hows: tuple[Requantize, Requantize]) -> None:
    """The engine's packets are as predicted, and those of one thread."""
    case = case_of(plan, hows)
    check(case)
    alone = replace(case, plan=replace(plan, threads=1))
    assert engine_packets(Planned.of(case).blocks).of_one == engine_packets(Planned.of(alone).blocks).of_one


@pytest.mark.simulator
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_threads_and_copies_will_do(seed: int) -> None:
    case = case_of(DEALT["rings"], HOWS["exact"])
    simulator = Simulator(copies=Copies("random", seed), slots=False)
    run = run_case(case, lower_case(case), simulator)
    assert run.check.passed
    assert run.threads
    assert run.threads.switches > len(run.threads.packets)


FEW_LINES: dict[str, tuple[tuple[int, int, int, int], tuple[Conv2d, ...]]] = {
    "one line": ((1, 1, 7, 3), (replace(CONV, out_channels=96, kernel=(1, 2), padding=Padding(left=1)),)),
    "phases": (
        (1, 7, 2, 5),
        (
            replace(
                CONV, out_channels=48, kernel=(5, 5), stride=(3, 3), padding=Padding(top=2, left=2, bottom=2, right=2)
            ),
        ),
    ),
}
"""Images that are copied pixel by pixel over what was filled, not by the eight lines of rows of tiles."""


@pytest.mark.simulator
@pytest.mark.parametrize("name", FEW_LINES)
def test_pixels_are_copied_over_what_is_filled(name: str) -> None:
    """Whichever thread is first: of these copies none is of a line alone."""
    shape, convs = FEW_LINES[name]
    chain = replace(
        CHAIN, input=shape, output_layout="NHWC", conv=tuple(replace(conv, requantize=HOW) for conv in convs)
    )
    case = Case("few-lines", chain, Plan(kernel="hmx", threads=3))
    lowered = lower_case(case)
    for seed in range(4):
        assert run_case(case, lowered, Simulator(copies=Copies("random", seed), slots=False)).check.passed


@pytest.mark.simulator
def test_packets_of_a_thread_without_the_engine_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealt_rows, "_locked", lambda statement: statement)
    case = case_of(DEALT["rows"], HOWS["exact"])
    with pytest.raises(RunFailed, match="packets to the matrix engine that another thread may hold"):
        run_case(case, lower_case(case), runner_of(case, "hexagon", slots=False))


@pytest.mark.simulator
def test_the_slowest_thread_has_its_share() -> None:
    """Four rows of tiles a step, four threads: two fifths at most of what one thread takes."""
    wide = replace(CHAIN, input=(1, 32, 40, 64), output_layout="NHWC", conv=(replace(CONV, out_channels=64),) * 2)
    plan = replace(DEALT["rows"], halo="roll", order="h_outer", filters="resident")
    taken: list[int] = []
    for threads in (1, 4):
        case = Case("shared", wide, replace(plan, threads=threads))
        run = run_case(case, lower_case(case), runner_of(case, "hexagon", slots=False))
        assert run.counts
        of_threads = run.threads.packets if run.threads else (0,)
        taken.append(run.counts.packets - sum(of_threads) + max(of_threads))
    assert taken[1] < 0.4 * taken[0]


def locked(statement: tirx.Stmt, is_held: bool = False) -> Iterator[bool]:
    """Yield for each packet of the engine, in program order, whether it stands between lock and unlock."""
    for each in all_of(statement, tirx.Evaluate):
        name = next((name for name in (LOCK, UNLOCK) if marks.is_named(each.value, name)), "")
        is_held = name == LOCK if name else is_held
        if "hexconv_hmx_" in str(each.value):
            yield is_held


@pytest.mark.parametrize("number", one_in(8, range(48)))
def test_drawn_cases_hold_the_engine_and_are_counted_as_predicted(number: int) -> None:
    """Any plan, on 1 to 4 threads; one thread needs no lock."""
    drawn = random_case(SEED, number, "hmx")
    if drawn.kernels[0].used != "hmx":
        return
    case = replace(drawn, plan=replace(drawn.plan, threads=1 + number % 4))
    lowered = lower_case(case)
    assert counted_as_predicted(case, lowered) == []
    body = lowered.module["main"].body
    assert set(locked(body)) == {case.plan.threads > 1}
    assert {int(loop.extent) for loop in all_of(body, tirx.For) if loop.kind == tirx.ForKind.PARALLEL} <= {
        case.plan.threads
    }


@pytest.mark.simulator
@pytest.mark.parametrize("engine", ["exact", "fast"])
def test_a_library_runs_on_threads(tmp_path: Path, engine: str) -> None:
    """Its tasks take what loops around them count from memory, and the engine from the platform."""
    case = case_of(replace(DEALT["rows"], storage="vtcm"), HOWS[engine], "library")
    simulator = Simulator(copies=Copies("random", 1), slots=False)
    tensors = random_tensors(case.chain, SEED)
    made = built_chain(case, tensors, "library", "hexagon", simulator.isa or find_qemu().isa)
    assert made.built.threads == 4
    for name, content in {**made.files, **platform_files()}.items():
        (tmp_path / name).write_bytes(content)
    ran = simulated_chain(tmp_path, made.built, tensors.image, simulator)
    assert ran.engine
    assert ran.engine.packets == engine_packets(Planned.of(case).blocks).of_one
    assert ran.outputs[0].tobytes() == made.files["library.output.bin"]


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_the_slowest_thread_is_counted_between_a_share_and_all(threads: int) -> None:
    """Of every plan of a space, part by part."""
    space = Space.of(CHAIN, Plan(kernel="hmx", threads=threads))
    for number in np.random.default_rng(threads).integers(0, space.size, 24).tolist():
        axes = Planned(CHAIN, space.plan(number)).blocks
        every, slowest = parts_beside_engine(axes), parts_beside_engine(axes, threads)
        for part in every.keys() - {"fork"}:
            whole, share = (np.asarray(parts[part]).item() for parts in (every, slowest))
            assert whole / threads - 1e-6 <= share <= whole


def test_a_plan_of_threads_is_weighed_by_its_slowest_thread() -> None:
    """Rows of tiles that four threads can share: the best plan has as many, and takes less time than one thread."""
    chain = replace(CHAIN, input=(1, 56, 56, 64), conv=(replace(CONV, out_channels=64),) * 2)
    plans = [Plan(kernel="hmx", threads=threads) for threads in (1, 4)]
    alone, four = (best_plan(chain, Question(8 << 20, "time", plan, "hexagon")).best for plan in plans)
    assert alone
    assert four
    assert four.plan.threads == 4
    assert four.time_packets(1e6) < alone.time_packets(1e6)
    axes = Planned(chain, four.plan).blocks
    rows = prod(int(np.asarray(each).max()) for each in (axes.staged(0), axes.rows(lambda made: made.step_slabs[0])))
    assert rows % 4 == 0
    grid = evaluate(chain, Space.of(chain, plans[1]), rates("v68"))
    assert (grid.time_packets(1e9) <= grid.latency_packets + 1e-6).all()
