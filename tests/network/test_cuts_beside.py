"""Chains cut anew beside tensors that stay in VTCM: against brute force over cuts and tensors, and against no cuts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import inf
from pathlib import Path

import numpy as np
import pytest

from hexconv.model import import_model
from hexconv.network import Wanted, planned_model
from hexconv.network.arena import Life
from hexconv.network.compiled import check_room
from hexconv.network.cuts_beside import FEWER_BYTES, _needed_bytes, _runs
from hexconv.network.hand_over import candidates
from hexconv.network.plan_choices import PlanChoices
from hexconv.network.planned_model import PlannedModel, _choices, plan, question_of
from hexconv.network.program_steps import Operation, Program
from hexconv.network.resident_sets import Run, addresses, handed_bytes, least_way
from tests.network.models import saved
from tests.network.test_hand_over import runs_as_planned
from tests.verify.networks import Network

KIB = 1024


def drawn(seed: int, path: Path) -> Path:
    """A chain of three to four convs, some with a pool or an Add behind it, whose image is read twice."""
    net = Network("qdq", bool(seed % 2), seed)
    first = net.conv8(net.start(), (16, 3, 3, 3), strides=[2, 2])
    made = first
    for number in range(2 + seed % 2):
        size = 3 if (seed >> number) % 2 else 1
        made = net.conv8(made, (16, 16, size, size), relu=bool(number % 2))
    if seed % 3:
        made = net.added(made, first)
    return saved(net, [net.classified(made, 16)], path)


def cuts_of(run: Run, start: int = 0) -> Iterator[list[tuple[int, int]]]:
    if start == run.count:
        yield []
    for first, end in run.pieces:
        if first == start:
            yield from ([(first, end), *rest] for rest in cuts_of(run, end))


def lines(program: Program, runs: Sequence[Run], cut: Sequence[Sequence[tuple[int, int]]]) -> list[tuple]:
    """What each step reads and writes, and its plans, or what it moves."""
    known, found, at = {run.first: (run, pieces) for run, pieces in zip(runs, cut, strict=True)}, [], 0
    while at < len(program.steps):
        step = program.steps[at]
        if at in known:
            run, pieces = known[at]
            ends = {0: step.sources[0].buffer, run.count: program.steps[run.last].result.buffer}
            for start, end in pieces:
                names = (ends.get(place, run.name(place)) for place in (start, end))
                found.append((*names, run.pieces[start, end]))
            at = run.last + 1
        else:
            found.append((None, step.result.buffer, step))
            at += 1
    return found


def least_of_all(program: Program, runs: Sequence[Run], stay: Mapping[str, Life], room: int) -> float:
    """The least bytes of every cut with every set of tensors, as if these were water."""
    least = inf
    for cut in product(*(list(cuts_of(run)) for run in runs)):
        steps = lines(program, runs, cut)
        sizes = {name: life.bytes for name, life in stay.items()}
        sizes |= {name: size for run in runs for name, size in run.sizes.items()}
        made = [name for name in sizes if any(step[1] == name for step in steps)]
        lives = {name: [at for at, step in enumerate(steps) if touches(step, name)] for name in made}
        for flags in product((False, True), repeat=len(made)):
            kept = {name for name, flag in zip(made, flags, strict=True) if flag}
            least = min(least, cost(program, steps, kept, lives, sizes, room))
    return least


def touches(step: tuple, name: str) -> bool:
    reads = [each.buffer for each in step[2].sources] if isinstance(step[2], Operation) else [step[0]]
    return name in (step[1], *reads)


def cost(
    program: Program,
    steps: Sequence[tuple],
    kept: set[str],
    lives: Mapping[str, Sequence[int]],
    sizes: Mapping[str, int],
    room: int,
) -> float:
    total = 0
    for at, (read, made, what) in enumerate(steps):
        living = {name for name in kept if lives[name][0] <= at <= lives[name][-1]}
        if isinstance(what, Operation) and what.operator == "add" and made in living:  # in the place of an operand
            ends = [each.buffer for each in what.sources if each.buffer in living and lives[each.buffer][-1] == at]
            living -= set(ends[:1])
        left = room - sum(sizes[name] for name in living)
        if left < 0:
            return inf
        if isinstance(what, PlanChoices):
            done = what.best(left, (read in kept, made in kept))
            if done is None:
                return inf
            total += done[0][0]
        else:
            total += sum(program.moved_bytes(what)) - sum(handed_bytes(what, kept))
    return total


def uncut(path: Path, room: int, monkeypatch: pytest.MonkeyPatch) -> PlannedModel:
    with monkeypatch.context() as patched:
        patched.setattr(planned_model, "least_cuts", lambda *_: {})
        return plan(import_model(path), question_of(room, "traffic"))


def test_no_other_cut_with_other_tensors_moves_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    less = 0
    for seed, kib in ((0, 16), (1, 20), (2, 32), (3, 28), (6, 16)):
        room, path = kib * KIB, drawn(seed, tmp_path / "net.onnx")
        before, after = uncut(path, room, monkeypatch), plan(import_model(path), question_of(room, "traffic"))
        program, choices = replace(before.open_program, residents=(), vtcm_bytes=0), dict(_choices(before))
        stay = candidates(program, choices, room, in_vectors=False)
        found = list(_runs(program, before.network.planned, choices))
        runs = sorted((run for _, run in found), key=lambda run: run.first)
        way, is_exact = least_way(program, runs, stay, room)
        least = least_of_all(program, runs, stay, room)
        assert way, seed
        assert (way.cost[0], is_exact) == (least, True), seed
        assert _needed_bytes(program, found, stay) <= least <= after.handed.cost[0] <= before.handed.cost[0], seed
        check_room(after.program, [after.handed.plans[call.node].footprint_bytes for call in after.program.calls])
        less += after.handed.cost[0] < before.handed.cost[0]
    assert less == 5


def drawn_lives(seed: int) -> tuple[dict[str, Life], list[int], int]:
    """Tensors, what the caches of each step take, and no more VTCM than the fullest step needs."""
    random, lives = np.random.default_rng(seed), {}
    for number in range(int(random.integers(4, 9))):
        first = int(random.integers(5))
        last = int(random.integers(first + 1, min(6, first + 4)))
        lives[f"t{number}"] = Life(first, last, int(random.integers(1, 5)))
    taken = [int(size) for size in random.integers(0, 3, 6)]
    return lives, taken, max(size + sum(beside(lives, at)) for at, size in enumerate(taken))


def beside(lives: Mapping[str, Life], at: int) -> list[int]:
    return [life.bytes for life in lives.values() if life.first <= at <= life.last]


def test_addresses_keep_tensors_apart() -> None:
    """No tensor meets another one or caches; fewer than half as many are named as fit nowhere without a second try."""
    unplaced = 0
    for seed in range(300):
        lives, taken_bytes, room = drawn_lives(seed)
        tops = addresses(lives, taken_bytes, room)
        if isinstance(tops, str):
            unplaced += 1
            continue
        for at, taken in enumerate(taken_bytes):
            ends = [
                (tops[name] - life.bytes, tops[name]) for name, life in lives.items() if life.first <= at <= life.last
            ]
            assert all(end <= begin for (_, end), (begin, _) in pairwise([(0, 0), *sorted(ends), (room - taken, room)]))
    assert unplaced < 58


@pytest.mark.simulator
def test_chains_that_are_cut_anew_run_as_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library takes the VTCM that was predicted, and computes the same whenever copies are performed."""
    path, wanted = drawn(3, tmp_path / "net.onnx"), Wanted(28 * KIB, "hexagon", "v67", "traffic")
    before, after = uncut(path, wanted.vtcm_bytes, monkeypatch), plan(import_model(path), wanted.question)
    assert len(after.program.calls) > len(before.program.calls)
    assert any(joint.reason == FEWER_BYTES for answer in after.network.planned for joint in answer.cuts.joints)
    runs_as_planned(path, tmp_path / "out", wanted, after.handed.vtcm_bytes)
