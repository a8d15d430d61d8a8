"""Tensors that stay in VTCM between steps: the choice against brute force, and C on both targets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hexconv.cli.app import exit_code
from hexconv.errors import Unsupported
from hexconv.model import import_model
from hexconv.network import Wanted, build_network, built_network, planned_model
from hexconv.network.arena import Life, arena_of
from hexconv.network.built_network import compiled_network, write_compiled
from hexconv.network.call_costs import call_cost
from hexconv.network.called_network import network_object, simulated_network
from hexconv.network.compiled import CallRefused, check_room
from hexconv.network.cuts_beside import FEWER_PACKETS, quickest_cut
from hexconv.network.hand_over import candidates, hand_over
from hexconv.network.planned_model import PlannedModel, _choices, plan, question_of
from hexconv.network.program_run import free_vtcm
from hexconv.network.program_steps import Operand, Operation, Program
from hexconv.network.resident_sets import handed_bytes
from hexconv.network.texts import BuiltNetwork
from hexconv.run.copy_engine import Copies
from hexconv.run.simulator.runner import Simulator
from hexconv.search import Answer, PlannedNetwork
from hexconv.search.planned_chains import Contender, ContenderRun, Race
from hexconv.search.question import value
from hexconv.verify import Asked, verify_network
from tests.deep import DEEP
from tests.network.models import saved
from tests.verify.networks import Network, residual

VTCM = 1 << 16
GRANULE = 2048


def drawn(seed: int) -> Program:
    """Operators that read any of the tensors before them, of a few granules each."""
    random = np.random.default_rng(seed)
    made = [Operand("input", (1, 1, 1, GRANULE), "uint8")]
    steps = []
    for number in range(int(random.integers(3, 7))):
        sources, rows = [made[at] for at in random.integers(0, len(made), 2)], int(random.integers(1, 4))
        if random.random() < 0.6:  # of the extents of the last tensor
            sources = [made[-1], *(each for each in sources if each.extents == made[-1].extents)][:2]
            rows = made[-1].extents[2]
        result = Operand(f"t{number}", (1, 1, rows, GRANULE), "uint8", integers="form")
        steps.append(Operation("add", result.buffer, tuple(sources), result))
        made.append(result)
    return Program(tuple(steps), (), (), {"form": np.zeros(4, np.uint8), "input": np.zeros(1, np.uint8)})


def moved(program: Program, names: set[str]) -> int:
    steps = [step for step in program.steps if isinstance(step, Operation)]
    return sum(sum(program.moved_bytes(step)) - sum(handed_bytes(step, names)) for step in steps)


def test_no_other_tensors_save_more() -> None:
    """Every subset of the tensors, each subset placed as if tensors were water: no address could be better."""
    equal = over = 0
    for seed in range(100):
        program, room = drawn(seed), GRANULE * (2 + seed % 7)
        lives = candidates(program, {}, room, False)
        found = hand_over(program, {}, room, False)
        least: float = inf
        for stays in product((False, True), repeat=len(lives)):
            kept = {name: life for (name, life), stay in zip(lives.items(), stays, strict=True) if stay}
            if max(beside(program, at, kept) for at in range(len(program.steps))) <= room:
                least = min(least, moved(program, set(kept)))
        ours = {each.tensor for each in found.residents}
        assert found.vtcm_bytes <= room
        assert moved(program, set()) - found.operators_bytes == moved(program, ours) >= least, seed
        assert found.is_exact == (moved(program, ours) == least), seed
        equal += found.is_exact
        tops = {(each.offset_bytes, each.bytes) for each in found.residents}
        over += len(found.residents) > len(tops) and arena_of({name: lives[name] for name in ours}).least_bytes > room
        check_room(replace(program, residents=found.residents, vtcm_bytes=found.vtcm_bytes), [])
    assert equal >= 96
    assert over >= 5


def beside(program: Program, at: int, kept: Mapping[str, Life]) -> int:
    """The bytes of all tensors at a step, the sum of an Add in the place of one that nobody reads later."""
    step, living = program.steps[at], {name: life for name, life in kept.items() if life.first <= at <= life.last}
    total, alike = sum(life.bytes for life in living.values()), {each.extents for each in (*step.sources, step.result)}
    if step.result.buffer not in living or len(alike) > 1 or {each.dtype for each in step.sources} != {"uint8"}:
        return total
    ends = [each for each in step.sources if each.buffer in living and living[each.buffer].last == at]
    return total - (living[ends[0].buffer].bytes if ends else 0)


def small(tmp_path: Path) -> Path:
    net, output = residual("qdq", per_channel=True)
    return saved(net, [output], tmp_path / "net.onnx")


def drawn_network(seed: int, path: Path) -> Path:
    """Convs, Adds and pools that read any of the tensors before them, so that chains end where others begin."""
    random, net = np.random.default_rng(seed), Network("qdq", bool(seed % 2), seed)
    made = [net.conv8(net.start(), (16, 3, 3, 3), strides=[2, 2])]
    for how in random.choice(["conv", "wide", "add", "pool"], int(random.integers(3, 6))):
        one, other = (made[at] for at in random.integers(-1, len(made), 2))
        if how == "add":
            made.append(net.added(one, other))
        elif how == "pool":
            pooled = net.node("MaxPool", [net.real(*one)], kernel_shape=[3, 3], pads=[1] * 4)
            made.append((net.quantised(pooled, *one[1:]), *one[1:]))
        else:
            size = 1 if how == "conv" else 3
            made.append(net.conv8(one, (16, 16, size, size), relu=bool(random.integers(2))))
    total = made[0]
    for each in made[1:]:
        total = net.added(total, each)
    return saved(net, [net.classified(total, 16)], path)


@pytest.mark.parametrize("target", ["llvm", pytest.param("hexagon", marks=[DEEP, pytest.mark.simulator])])
def test_what_stays_is_what_runs(target: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicted bytes of VTCM are the bytes in C; what doesn't stay is poison; a wrong address is seen."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
    path, wanted = small(tmp_path), Wanted(VTCM, target, isa="v67")
    planned = plan(import_model(path), wanted.question)
    program = planned.program
    assert program.residents
    compiled = compiled_network(path, program, wanted, 1)
    assert compiled.vtcm_bytes == planned.handed.vtcm_bytes <= VTCM
    assert not compiled.arena.offsets_bytes.keys() & {each.tensor for each in program.residents}
    verdict = verify_network(path, Asked(wanted, workers=1))
    runs = [step.run for step in verdict.steps if step.run]
    assert (verdict.reason, [run for run in runs if not run.holds]) == ("", [])
    places = built_network.texts_of.__globals__["_places"]

    def moved_off(built: BuiltNetwork, compiled: Any) -> Any:
        """Tensors that stay lie at address 0, where the chains' own caches are, or the poison."""
        known = places(built, compiled)
        first = known[program.residents[0].tensor]
        return known | {program.residents[0].tensor: type(first)("VTCM(0)")}

    assert program.residents[0].offset_bytes > 0
    monkeypatch.setitem(built_network.texts_of.__globals__, "_places", moved_off)
    verdict = verify_network(path, Asked(wanted, workers=1))
    assert verdict.reason or any(not step.run.holds for step in verdict.steps if step.run)


@pytest.mark.parametrize(
    "target", [pytest.param("llvm", marks=DEEP), pytest.param("hexagon", marks=pytest.mark.simulator)]
)
def test_a_sum_lies_where_an_operand_did(target: Any, tmp_path: Path) -> None:
    """Two branches end in an Add that has no room for a third tensor; on the simulator copies are late, or random."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
    net, output = residual("qdq", per_channel=True, projected=True)
    path = saved(net, [output], tmp_path / "net.onnx")
    whole = plan(import_model(path), question_of(1 << 20, "traffic")).handed
    wanted = Wanted(whole.vtcm_bytes, target, "v67", "traffic", threads=2 if target == "hexagon" else 1)
    planned = plan(import_model(path), wanted.question)
    [add] = [step for step in planned.program.steps if isinstance(step, Operation) and step.operator == "add"]
    offsets = {each.tensor: each.offset_bytes for each in planned.program.residents}
    assert offsets[add.result.buffer] in {offsets[each.buffer] for each in add.sources}
    check_room(planned.program, [0] * len(planned.program.calls))
    apart = replace(add, operator="multiply")
    steps = tuple(apart if step is add else step for step in planned.program.steps)
    with pytest.raises(CallRefused, match="where a tensor that stays begins"):
        check_room(replace(planned.program, steps=steps), [0] * len(planned.program.calls))
    verdict = verify_network(path, Asked(wanted, workers=1))
    assert (verdict.reason, [each for each in verdict.steps if each.run and not each.run.holds]) == ("", [])
    if target == "hexagon":
        runs_as_planned(path, tmp_path / "out", wanted, planned.handed.vtcm_bytes)


def test_a_chain_that_reaches_a_tensor_is_refused(tmp_path: Path) -> None:
    program = plan(import_model(small(tmp_path)), question_of(VTCM, "traffic")).program
    with pytest.raises(CallRefused, match="where a tensor that stays begins"):
        check_room(program, [program.vtcm_bytes + 1] * len(program.calls))


def test_plans_beside_tensors_are_no_slower_at_time_and_latency(tmp_path: Path) -> None:
    imported = import_model(three_convs(tmp_path))
    for objective in ("time", "latency", "footprint"):
        question = question_of(1 << 18, objective, threads=2)
        planned = plan(imported, question)
        for _, choices in _choices(planned) if objective != "footprint" else ():
            own, *others = (value(plan, question.quickness, question) for plan in choices.plans)
            assert all(other <= own for other in others)
            assert objective != "time" or not others
        assert objective != "footprint" or not planned.handed.residents


def three_convs(tmp_path: Path) -> Path:
    net = Network(seed=1)
    last = net.conv8(net.conv8(net.conv8(net.start(), (64, 3, 3, 3), strides=[2, 2]), (64, 64, 3, 3)), (64, 64, 3, 3))
    return saved(net, [net.classified(last, 64)], tmp_path / "net.onnx")


@pytest.mark.parametrize("target", ["llvm", pytest.param("hexagon", marks=[DEEP, pytest.mark.simulator])])
def test_chains_are_cut_where_the_bytes_that_this_costs_stay_in_vtcm(target: Any, tmp_path: Path) -> None:
    """Two threads compute no row twice if the convs are apart: fewer packets, and equally few bytes."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
    path = three_convs(tmp_path)
    wanted = Wanted(1 << 20, "hexagon", "v67", "latency", threads=2)
    found, fused = (plan(import_model(path), wanted.question, decide) for decide in (left_to_the_model, raced))
    [answer] = found.network.planned
    assert [joint.reason for joint in answer.cuts.joints] == [FEWER_PACKETS] * 2
    assert slowness(found) < slowness(fused)
    assert found.account.total.after_bytes == fused.account.total.after_bytes
    assert verify_network(path, Asked(replace(wanted, target=target), workers=1)).answer == "holds"


def raced(network: PlannedNetwork) -> PlannedNetwork:
    """Answers that a run of their own plans decided for."""

    def counted(answer: Answer) -> Answer:
        assert answer.cuts.best
        contender = Contender("plan", answer.cases(answer.cuts.best), answer.cuts.best)
        return replace(answer, race=Race((ContenderRun(contender, 1),)))

    return replace(network, planned=tuple(map(counted, network.planned)))


def left_to_the_model(network: PlannedNetwork) -> PlannedNetwork:
    return replace(network, planned=tuple(replace(answer, race=Race(())) for answer in network.planned))


def test_plans_that_runs_decided_for_stay(tmp_path: Path) -> None:
    planned = plan(import_model(small(tmp_path)), question_of(VTCM, "latency"), raced)
    assert all(len(choices.plans) == 1 for _, choices in _choices(planned))
    assert not any(quickest_cut(answer) for answer in planned.network.planned)


def test_vtcm_is_smaller_than_all_traffic_or_equal(tmp_path: Path) -> None:
    """A call moves no more with tensors that stay; the total says by how much it moves less."""
    planned = plan(import_model(small(tmp_path)), question_of(VTCM, "traffic"))
    total = planned.account.total
    assert total.handed_bytes == planned.handed.chains_bytes + planned.handed.operators_bytes > 0
    assert total.after_bytes == (total.chains_after_bytes or 0) + total.operators_after_bytes
    assert total.before_bytes is not None
    assert total.saved_bytes == total.before_bytes - (total.after_bytes or 0)


def test_the_page_tells_which_tensors_stay(tmp_path: Path) -> None:
    path, page = small(tmp_path), tmp_path / "page.html"
    assert exit_code(["report", str(path), "--vtcm", "64KiB", "-o", str(page)]) == 0
    table = page.read_text().partition('id="residents"')[2].partition("</table>")[0]
    residents = plan(import_model(path), question_of(VTCM)).program.residents
    assert table.count('scope="row"') == len(residents) > 0
    for each in residents:
        cells = f"<td>{each.first} to {each.last}</td><td>{each.offset_bytes:,}</td>"
        assert f'<tr><th scope="row">{each.tensor}</th>{cells}' in table


def test_free_stretches_are_all_that_does_not_stay(tmp_path: Path) -> None:
    path, wanted = small(tmp_path), Wanted(VTCM, "llvm")
    program = plan(import_model(path), wanted.question).program
    compiled = compiled_network(path, program, wanted, 1)
    built = write_compiled(path, compiled, {}, tmp_path / "out", wanted)
    for number in range(1, len(program.steps) + 1):
        taken = np.zeros(built.vtcm_bytes, int)
        for step, start, end in free_vtcm(built):
            taken[start:end] += step == number
        for each in built.residents:
            taken[each.offset_bytes : each.offset_bytes + each.bytes] += each.first <= number < each.last
        assert (taken == 1).all()


def drawn_wanted(seed: int, target: Any) -> Wanted:
    """Little VTCM, 1, 2 or 4 threads, and double buffering where that takes the fewest packets."""
    objective: Any = ("latency", "traffic", "time")[seed % 3]
    least = 32 if target == "hexagon" else 56
    return Wanted(1024 * (least + 8 * (seed % 4)), target, "v67", objective, threads=(4, 1, 2)[seed // 3 % 3])


def slowness(planned: PlannedModel) -> float:
    """Packets or times of all chains by the model, to the digits that a search compares."""
    question, winners = planned.question, [each for answer in planned.network.planned for each in answer.winners]
    return round(sum(value(winner.figures, question.quickness, question) for winner in winners), 3)


def test_drawn_networks_cost_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes; and at other objectives than traffic packets or times of chains, by the model."""
    saved_bytes = 0
    for seed in range(6):
        imported = import_model(drawn_network(seed, tmp_path / "net.onnx"))
        question = drawn_wanted(seed, "hexagon").question
        found = plan(imported, question)
        with monkeypatch.context() as patched:
            patched.setattr(planned_model, "handed_over", lambda planned: planned)
            alone = plan(imported, question)
        one, other = call_cost(found), call_cost(alone)
        less = [before.after_bytes - after.after_bytes for before, after in zip(other.parts, one.parts, strict=True)]
        assert sum(less) == (alone.account.total.after_bytes or 0) - (found.account.total.after_bytes or 0) >= 0, seed
        assert one.vtcm_bytes <= question.vtcm_bytes
        if question.objective != "traffic":
            assert min(less) >= 0
            assert slowness(found) <= slowness(alone)
        saved_bytes += sum(less) > 0
    assert saved_bytes >= 4


@pytest.mark.parametrize(
    ("target", "seeds"),
    [
        pytest.param("hexagon", (9,), marks=pytest.mark.simulator),
        pytest.param("llvm", range(20, 26), marks=pytest.mark.deep),
        pytest.param("hexagon", range(42, 47), marks=[pytest.mark.deep, pytest.mark.simulator]),
    ],
)
def test_drawn_networks_run_as_planned(target: Any, seeds: Sequence[int], tmp_path: Path) -> None:
    """Each step on what it read; on the simulator also as copies are performed late or at random."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")
    read = 0
    for seed in seeds:
        path, wanted = drawn_network(seed, tmp_path / f"net{seed}.onnx"), drawn_wanted(seed, target)
        try:
            planned = plan(import_model(path), wanted.question)
            program = planned.program
        except Unsupported:  # too little VTCM for a chain alone
            continue
        verdict = verify_network(path, Asked(wanted, workers=1))
        assert (verdict.reason, [each for each in verdict.steps if each.run and not each.run.holds]) == ("", []), seed
        names = {each.tensor for each in program.residents}
        read += sum(call.sources[0].buffer in names for call in program.calls)
        if target == "hexagon":
            runs_as_planned(path, tmp_path / f"out{seed}", wanted, planned.handed.vtcm_bytes)
    assert read > 0


def runs_as_planned(path: Path, folder: Path, wanted: Wanted, vtcm_bytes: int) -> None:
    """The VTCM that is taken is what was predicted, and copies may be performed at any moment."""
    built = build_network(path, folder, wanted)
    kernel = network_object(folder, built)
    [image], [output] = ([port for port in built.ports if port.way == way] for way in ("input", "output"))
    given, right = (np.fromfile(folder / f"network.{port.name}.bin", port.dtype) for port in (image, output))
    for copies in (Copies("late"), Copies("random", 1)):
        simulator = Simulator(copies=copies, slots=False, isa=built.isa)
        run = simulated_network(folder, built, kernel, [given.reshape(image.shape)], simulator)
        assert np.array_equal(run.outputs[0].reshape(-1), right)
        assert run.vtcm_bytes == built.vtcm_bytes == vtcm_bytes > 0
