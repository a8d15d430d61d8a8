"""Schedules that break a promise about copies, whatever kernel computes: what a run has to notice, and name."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest
import tvm
import tvm_ffi
from tvm import tirx

from hexconv.errors import RunFailed
from hexconv.lower import Lowered, lower_case, overlap, queues
from hexconv.lower.buffers import cache_name
from hexconv.lower.copies import Copy
from hexconv.run.copy_engine import Copies
from hexconv.run.host import Host
from hexconv.run.measure import run_case
from hexconv.run.measurement import Runner
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case

WRONG = "another result than numpy's"
"""What a run says of a kernel that read what wasn't there yet: it read poison."""


def runner(case: Case, copies: Copies) -> Runner:
    """Where the kernel of a case runs."""
    return Simulator(copies=copies, slots=False) if case.settled.kernel == "hvx" else Host(copies, calls=1)


def verdict(case: Case, lowered: Lowered, copies: Copies) -> str:
    """What is wrong with a run; nothing where all is right."""
    try:
        run = run_case(case, lowered, runner(case, copies))
    except RunFailed as failed:
        return str(failed)
    return "" if run.check.passed else WRONG


def verdicts(case: Case, lowered: Lowered) -> str:
    """What is wrong with a run whose copies happen early, or else late."""
    return verdict(case, lowered, Copies("late")) or verdict(case, lowered, Copies("early"))


def waits(lowered: Lowered) -> int:
    """How many waits there are in a module's text."""
    found: list[tirx.Evaluate] = []
    tvm_ffi.structural_walk(lowered.module["main"].body, (tirx.Evaluate, found.append))
    return sum(queues.queue_of(node, queues.WAIT) is not None for node in found)


def without_wait(lowered: Lowered, number: int) -> Lowered:
    """A module without one of its waits."""
    return _with_wait(lowered, number, lambda _: tirx.Evaluate(tirx.const(0, "int32")))


def one_early(lowered: Lowered, number: int) -> Lowered:
    """A module one of whose waits leaves a group more: a row, a tile or an output is used one early."""
    return _with_wait(lowered, number, lambda wait: queues.wait(int(wait.value.args[0]), wait.value.args[1] + 1))


def _with_wait(lowered: Lowered, number: int, changed: Callable[[tirx.Evaluate], tirx.Stmt]) -> Lowered:
    places = iter(range(waits(lowered)))

    def change(node: tirx.Evaluate) -> tirx.Stmt:
        is_wait = queues.queue_of(node, queues.WAIT) is not None
        return changed(node) if is_wait and next(places) == number else node

    main = lowered.module["main"]
    body = tvm_ffi.structural_map(main.body, (tirx.Evaluate, change))
    return replace(lowered, module=tvm.IRModule({"main": main.with_body(body)}))


def doubled(case: Case, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The caches of a case that have two slots."""
    found: list[str] = []
    real = overlap.with_slots

    def with_slots(body: tirx.Stmt, copies: Iterable[Copy]) -> tirx.Stmt:
        kept = list(copies)
        found.extend(cache_name(copy.cache) for copy in kept)
        return real(body, kept)

    with monkeypatch.context() as spied:
        spied.setattr(overlap, "with_slots", with_slots)
        lower_case(case)
    return found


def with_one_slot(case: Case, cache: str, monkeypatch: pytest.MonkeyPatch) -> Lowered:
    """A case one of whose caches uses the first of its two slots in every step."""
    real, at_step = overlap.with_slots, overlap._at
    first = tirx.const(0, "int32")

    def with_slots(body: tirx.Stmt, copies: Iterable[Copy]) -> tirx.Stmt:
        kept = list(copies)
        body = real(body, [copy for copy in kept if cache_name(copy.cache) != cache])
        with monkeypatch.context() as one_slot:
            one_slot.setattr(overlap, "slot_of", lambda _step: first)
            return real(body, [copy for copy in kept if cache_name(copy.cache) == cache])

    def at(copy: Copy, statement: tirx.Stmt, values: Sequence[tirx.Expr], slot: tirx.Expr) -> tirx.Stmt:
        return at_step(copy, statement, values, first if cache_name(copy.cache) == cache else slot)

    with monkeypatch.context() as broken:
        broken.setattr(overlap, "with_slots", with_slots)
        broken.setattr(overlap, "_at", at)
        return lower_case(case)
