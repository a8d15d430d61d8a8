"""Turn a lowered module into one that counts instead of computing: bytes moved and multiply-accumulates.

before:  for ...: if ...: input_cache[...] = input[...]
after:   for ...: if ...: counts[0] = counts[0] + 4

Every guard stays, and every loop that one of them depends on, with what extents and conditions are computed from; other
loops multiply what they would repeat (`hexconv.lower.repeated`). So running the result gives exact figures, whatever
decides them. What a statement moves or multiplies stands in the statement itself
(`hexconv.lower.meaning`); statements in a row run equally often and are added up before. Loops run one trip after the
other, and so do threads. Of asynchronous copies the bytes are counted, and the groups that are under way in each queue:
a start adds one, a wait leaves as many as it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import tirx
from tvm.ir import Call

from hexconv.lower import queues
from hexconv.lower.buffers import held_by
from hexconv.lower.copies import is_over_bands
from hexconv.lower.deciding import deciding
from hexconv.lower.hvx import vector
from hexconv.lower.lowered import Lowered
from hexconv.lower.meaning import Meaning, Work, outside_of
from hexconv.lower.repeated import repeated
from hexconv.schedule.trees import as_one, steps_of, with_values
from hexconv.spec.names import conv_name


@dataclass(frozen=True)
class Counts:
    """The counts of one run of a module.

    Attributes:
        traffic_bytes: for each argument, the bytes that were loaded from it or stored to it; where some caches lie in
            VTCM, for each other cache the bytes that kernels loaded from it and stored to it.
        macs: for each conv (`conv1`, ...), its multiply-accumulates.
        copies_in_flight: for each argument, the most groups of asynchronous copies that were under way at once.
    """

    traffic_bytes: dict[str, int]
    macs: dict[str, int]
    copies_in_flight: dict[str, int]


NOTHING = tirx.Evaluate(tirx.const(0, "int32"))
QUEUE_COUNTS = ("bytes", "under way", "most under way")
"""The counts that each queue has."""


def counting_module(lowered: Lowered) -> tvm.IRModule:
    """Build a module whose `main` counts into an int64 vector: bytes, MACs, then what each queue does."""
    main, tensors = lowered.unmerged["main"], _tensors(lowered)
    names = [*tensors, *_convs(tensors), *_outside(lowered)]
    counts = tirx.decl_buffer((len(names) + len(QUEUE_COUNTS) * len(tensors),), "int64", "counts")
    revealed = vector.revealed(main.body)
    counting = _Counting(counts, tuple(names), Meaning.of(main.with_body(revealed)), deciding(revealed))
    body = _one(counting.of(revealed)) or NOTHING
    func = tirx.PrimFunc([counts], body).with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    return tirx.transform.ConvertSSA()(tvm.IRModule({"main": func}))


def counts_of(lowered: Lowered, counted: Sequence[int]) -> Counts:
    """Name the numbers that a counting module counted."""
    tensors = _tensors(lowered)
    convs, outside = _convs(tensors), _outside(lowered)
    named = dict(zip((*tensors, *convs, *outside), counted, strict=False))
    by_queue = np.reshape(counted[len(named) :], (len(tensors), len(QUEUE_COUNTS)))
    moved = {name: named[name] + int(row[0]) for name, row in zip(tensors, by_queue, strict=True)}
    moved |= {name: named[name] for name in outside}
    in_flight = {name: int(row[2]) for name, row in zip(tensors, by_queue, strict=True)}
    return Counts(moved, {name: named[name] for name in convs}, in_flight)


def _tensors(lowered: Lowered) -> list[str]:
    """List the arguments that are copied, in the order of their queues."""
    return [argument.name for argument in lowered.unmerged["main"].params if held_by(argument).is_copied]


def _outside(lowered: Lowered) -> list[str]:
    """List the caches outside of VTCM, where other caches lie in VTCM."""
    return list(outside_of(lowered.unmerged["main"]).values())


def _convs(tensors: Sequence[str]) -> list[str]:
    """Name the convs that have a filter among these tensors."""
    return [conv_name(number) for number in range(1, len(tensors) - 1)]


@dataclass(frozen=True)
class _Counting:
    """Rewrites statements so that they count.

    Attributes:
        counts: the buffer that holds the counts.
        names: the names of the first counts in it.
        meaning: says what a statement moves and multiplies.
        deciding: variables that loops and guards depend on.
    """

    counts: tirx.Var
    names: tuple[str, ...]
    meaning: Meaning
    deciding: frozenset[tirx.Var]

    def of(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """Return the statements that count for one statement; none where it neither counts nor decides."""
        if isinstance(statement, tirx.For):
            body = _one(self.of(statement.body))
            if body and is_over_bands(statement):
                return [_in_band(statement, band, body) for band in range(int(statement.extent))]
            return [repeated(statement, body)] if body else []
        if isinstance(statement, tirx.IfThenElse):
            branches = (statement.then_case, statement.else_case)
            then, otherwise = (_one(self.of(branch)) if branch else None for branch in branches)
            return [tirx.IfThenElse(statement.condition, then or NOTHING, otherwise)] if then or otherwise else []
        return self._in_a_row(steps_of(statement))

    def _in_a_row(self, steps: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
        """Among statements that run equally often, keep those that decide; behind them, add up what all of them do."""
        kept, work = [], Work()
        for step in steps:
            if isinstance(step, (tirx.BufferStore, tirx.Bind)):
                work.update(self.meaning.work(step))
            if isinstance(step, (tirx.For, tirx.IfThenElse, tirx.SeqStmt)):
                kept += self.of(step)
            elif isinstance(step, tirx.Evaluate):
                kept += self._followed(step)
            elif _defined(step) in self.deciding:
                kept.append(step)
        return kept + [self._added(self.names.index(name), tirx.const(more, "int64")) for name, more in work.items()]

    def _followed(self, node: tirx.Evaluate) -> list[tirx.Stmt]:
        """Count what an operation on a queue does; these counts stand behind the others."""
        call = node.value
        if not isinstance(call, Call) or call.op not in (queues.COPY, queues.START, queues.END, queues.WAIT):
            return [node]
        first = len(self.names) + int(call.args[0]) * len(QUEUE_COUNTS)
        moved, current, most = range(first, first + len(QUEUE_COUNTS))
        if call.op.same_as(queues.COPY):
            rows, *_steps = [*queues.rows_of(call), tirx.const(1, "int32")]
            return [self._added(moved, call.args[3].astype("int64") * rows.astype("int64"))]
        if call.op.same_as(queues.START):
            larger = tirx.max(self._count(current), self._count(most))
            return [self._added(current, tirx.const(1, "int64")), tirx.BufferStore(self.counts, larger, [most])]
        if call.op.same_as(queues.WAIT):
            left = tirx.min(self._count(current), call.args[1].astype("int64"))
            return [tirx.BufferStore(self.counts, left, [current])]
        return []

    def _count(self, place: int) -> tirx.Expr:
        return tirx.BufferLoad(self.counts, [place])

    def _added(self, place: int, more: tirx.Expr) -> tirx.Stmt:
        """Add to one count."""
        return tirx.BufferStore(self.counts, self._count(place) + more, [place])


def _defined(statement: tirx.Stmt) -> tirx.Var | None:
    """Return the variable or buffer to which a statement gives a value, or memory."""
    if isinstance(statement, tirx.Bind):
        return statement.var
    return statement.buffer if isinstance(statement, (tirx.AllocBuffer, tirx.BufferStore)) else None


def _in_band(loop: tirx.For, band: int, body: tirx.Stmt) -> tirx.Stmt:
    """Return the statements of one thread: with its number as a constant, TVM has far less to look at."""
    return with_values(body, {loop.loop_var: tirx.const(band, "int32")})


def _one(statements: Sequence[tirx.Stmt]) -> tirx.Stmt | None:
    """Join statements into one, if there are any."""
    return as_one(statements) if statements else None
