"""The matrix engine by its own words, which trap on QEMU 11: results, counts and refusals are those of calls."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tvm

from hexconv.analyze import Planned
from hexconv.analyze.block_grid import engine_packets_of
from hexconv.cli.app import exit_code
from hexconv.errors import RunFailed, ToolMissing
from hexconv.kernel.engine_words import CLEAR, trapping_functions
from hexconv.lower import lower_case
from hexconv.run.measure import Run, run_case
from hexconv.run.simulator import qemu, runner
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Padding, Plan
from hexconv.sweep.random_case import random_case
from tests.deep import one_in
from tests.hmx.test_kernel import CHAIN, CONV, CONVERTED, FAST, GROUPED, PLANS, STRIDED
from tests.hmx.test_padding_in_slabs import IN_TWO_SLABS, in_two_slabs

SCHEDULES = sorted((Path(__file__).parents[2] / "schedules" / "hmx").glob("*.toml"))


@pytest.fixture
def words() -> None:
    """QEMU 11 or newer."""
    try:
        found = find_qemu()
    except ToolMissing:
        pytest.skip("there is no QEMU")
    if not found.lets_words_trap:
        pytest.skip(f"QEMU {found.version} ends on the words")


def run(case: Case, engine_words: bool, slots: bool = False) -> Run:
    """Run a case, and hold its result against numpy."""
    plan = case.settled
    simulator = Simulator(plan.arch, plan.vtcm_bytes, 600.0, slots=slots, vtcm_loads=False, engine_words=engine_words)
    found = run_case(case, lower_case(case), simulator)
    assert found.check.passed
    assert found.check.max_abs_error == 0
    return found


def check(case: Case) -> tuple[Run, Run]:
    """Run a case by calls and by words, and compare everything that is counted of the engine, of memory and of HVX."""
    called, by_words = run(case, False), run(case, True)
    assert called.engine
    assert by_words.engine == called.engine
    assert by_words.vtcm_bytes == called.vtcm_bytes
    assert by_words.copies == called.copies
    assert called.counts
    assert by_words.counts
    assert by_words.counts.hvx_instructions == called.counts.hvx_instructions
    return called, by_words


def two_convs(first: int, second: int) -> Chain:
    """Two convs of so many columns, exact and converted, both without padding."""
    sizes = (first, replace(CONV, padding=Padding())), (second, replace(CONV, requantize=FAST, padding=Padding()))
    return replace(CHAIN, conv=tuple(replace(conv, kernel=(1, columns)) for columns, conv in sizes))


CASES = {
    **{name: Case(name, CHAIN, plan) for name, plan in PLANS.items()},
    "converted": Case("converted", CONVERTED, PLANS["rings, overlapped"]),
    **{f"above, {columns}": in_two_slabs(columns) for columns in IN_TWO_SLABS},
    **{
        name: Case(name, replace(CHAIN, input=size, conv=convs), replace(PLANS["documented"], k_split=1, h_split=1))
        for name, (size, convs) in {**STRIDED, **GROUPED}.items()
    },
    "dilated": Case(
        "dilated",
        replace(CHAIN, conv=(replace(CONV, dilation=(2, 3)), CONV)),
        Plan(kernel="hmx"),
    ),
}


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("name", one_in(3, CASES))
def test_words_do_what_calls_do(name: str) -> None:
    """Strides, groups, dilations, rings, both requantisations: every kind of packet, and all that is checked of it."""
    check(CASES[name])


@pytest.mark.simulator
@pytest.mark.deep
@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in SCHEDULES])
def test_the_documents_cases_are_the_same_by_words(path: Path) -> None:
    check(Case.load(path, "hexagon"))


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("number", one_in(6, range(24)))
def test_drawn_cases_are_the_same_by_words(number: int) -> None:
    case = random_case(9, number, "hmx")
    if case.kernels[0].used == "hmx":
        check(case)


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("columns", [(1, 1), (2, 3)])
def test_packets_differ_by_what_a_call_saves(columns: tuple[int, int]) -> None:
    """By words: call, registers, packet, return. A call saves and restores as many registers as the model takes."""
    case = Case("packets", two_convs(*columns), PLANS["documented"])
    called, by_words = check(case)
    assert called.engine
    assert called.counts
    assert by_words.counts
    did, alone = called.engine.packets, engine_packets_of(Planned.of(case).blocks, 1).of_one.table_loads
    more = did.clears + alone + 2 * did.stores - 2 * did.multiplies
    assert by_words.counts.packets - called.counts.packets == more


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
def test_stalls_are_those_of_calls() -> None:
    """The trace leaves the handler out, and has as many packets as the counters, which it leaves as they were."""
    case = Case("slots", replace(CHAIN, input=(1, 9, 9, 32)), PLANS["rings, overlapped"])
    called, by_words = (run(case, engine_words, slots=True).slots for engine_words in (False, True))
    assert called
    assert by_words
    assert by_words.stalls == called.stalls
    assert by_words.vector_loads == called.vector_loads


MISPLACED = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(source: T.Buffer((64,), "int32"), target: T.Buffer((64,), "int32")):
        T.evaluate(T.call_extern("int32", "hexconv_hmx_clear"))
        T.evaluate(T.call_extern("int32", "hexconv_hmx_bias", T.address_of(source[1])))
        target[0] = source[0]
"""


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("engine_words", [False, True])
def test_a_misplaced_operand_is_refused(engine_words: bool) -> None:
    """A table in the heap."""
    simulator = Simulator(slots=False, engine_words=engine_words)
    with pytest.raises(RunFailed, match=r"^1 operands of the matrix engine lie outside of VTCM"):
        simulator.run(tvm.script.from_source(MISPLACED), [np.zeros(64, np.int32)], [((64,), "int32")])


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("word", [CLEAR + 3, 0xA6E0C119])
def test_other_words_are_faults(word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the engine that no kernel issues: mxswapacc, and a store of what was converted."""
    others = trapping_functions().replace(f"{CLEAR:#010x}", f"{word:#010x}")
    monkeypatch.setattr(runner, "trapping_functions", lambda: others)
    with pytest.raises(RunFailed, match="trapped: SIGILL"):
        run(Case("other", replace(CHAIN, input=(1, 8, 8, 32)), PLANS["documented"]), True)


def test_an_older_simulator_is_said_to_end_on_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text(Case("case", CHAIN, PLANS["documented"]).to_toml())
    monkeypatch.setattr(qemu, "_version", lambda _path: "10.0.2")
    qemu._probed.cache_clear()
    asked = ["run", str(path), "--target", "hexagon", "--engine-words"]
    assert exit_code(asked) == 2
    told = capsys.readouterr().err
    assert "the matrix engine's own words trap on QEMU 11 or newer, this is 10.0.2; " in told
    assert "trixie-backports" in told
    qemu._probed.cache_clear()
    assert exit_code(["run", str(path), "--engine-words"]) == 2
    assert "--engine-words is for --target hexagon, and the target is llvm" in capsys.readouterr().err


@pytest.mark.simulator
@pytest.mark.usefixtures("words")
def test_the_command_runs_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.toml"
    path.write_text(Case("case", replace(CHAIN, input=(1, 8, 8, 32)), PLANS["documented"]).to_toml())
    assert exit_code(["run", str(path), "--target", "hexagon", "--engine-words", "--no-slots", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["passed"]
    assert row["engine_words"]
    assert row["engine_packets"]["clears"] > 0
