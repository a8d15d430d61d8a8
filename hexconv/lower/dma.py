"""From loops that copy to copies: what stands in a group becomes `dma_copy` of runs that lie side by side.

before:  dma_start_group(q)                            after:  dma_start_group(q)
         for hi, wi: for ci in range(32):                      for hi, wi:
             if c < C: cache[..., ci] = input[c]                   dma_copy(q, cache[...], input[...], min(32, C - c))
             else: cache[..., ci] = 0                              for ci in range(32): if not c < C: cache[..., ci] = 0
         dma_end_group(q)                                      dma_end_group(q)

Loops are one run as far as both sides go on where the loop inside of them ends. What a copy leaves to the program,
zeros of padding and fringe, is written when the copies start: to other bytes than theirs, in a slot that nothing
reads.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower import queues

ZERO = tirx.const(0, "int32")


@dataclass(frozen=True)
class Run:
    """Elements that lie side by side in both buffers.

    Attributes:
        target: the first of them where they go.
        source: the first of them where they come from.
        elements: how many.
    """

    target: tirx.BufferStore
    source: TensorLoad
    elements: tirx.Expr

    def at(self, variable: tirx.Var, value: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        """The index of the first element on both sides, at a value of a loop variable."""
        return _with(self.target.indices[0], variable, value), _with(self.source.indices[0], variable, value)


def copy_by_dma(module: tvm.IRModule) -> tvm.IRModule:
    """Turn the groups of a flat module into copies; a module without groups stays as it is."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.SeqStmt, _grouped)))})


def _grouped(sequence: tirx.SeqStmt) -> tirx.SeqStmt:
    """A sequence whose groups hold copies."""
    queue: int | None = None
    steps: list[tirx.Stmt] = []
    for step in sequence.seq:
        started, ended = queues.queue_of(step, queues.START), queues.queue_of(step, queues.END)
        queue = started if started is not None else None if ended is not None else queue
        inside = queue is not None and started is None
        steps += _copied(step, queue) if inside and queue is not None else [step]
    return tirx.SeqStmt(steps)


def _copied(statement: tirx.Stmt, queue: int) -> list[tirx.Stmt]:
    """What a statement of a group becomes."""
    if run := _run(statement):
        return [_copy(run, queue)]
    if isinstance(statement, tirx.For):
        return list(_loop(statement, queue))
    if isinstance(statement, tirx.IfThenElse):
        otherwise = _one(_copied(statement.else_case, queue)) if statement.else_case is not None else None
        return [tirx.IfThenElse(statement.condition, _one(_copied(statement.then_case, queue)), otherwise)]
    if isinstance(statement, tirx.SeqStmt):
        return [copied for step in statement.seq for copied in _copied(step, queue)]
    return [statement]


def _loop(loop: tirx.For, queue: int) -> Iterator[tirx.Stmt]:
    """A loop around copies; where a guard ends its run, the run up to there and the rest of the loop."""
    body = loop.body
    if isinstance(body, tirx.IfThenElse) and (cut := _cut(loop, body)):
        others, run = cut
        started = _copy(run, queue)
        yield tirx.IfThenElse(tirx.all(*others), started, None) if others else started
        if body.else_case is not None:
            yield _around(loop, tirx.IfThenElse(tirx.Not(body.condition), body.else_case, None))
        return
    yield _around(loop, _one(_copied(body, queue)))


def _cut(loop: tirx.For, guard: tirx.IfThenElse) -> tuple[list[tirx.Expr], Run] | None:
    """The run of a loop that copies while a guard holds, from its start on; and the conditions that are left.

    One condition may depend on the loop, `first + variable < end`: it holds for the first `end - first` iterations.
    """
    whole = _run(_around(loop, guard.then_case))
    conditions = _conjuncts(guard.condition)
    own = [condition for condition in conditions if _uses(condition, loop.loop_var)]
    if whole is None or len(own) != 1 or not isinstance(own[0], tirx.LT):
        return None
    first = _with(own[0].a, loop.loop_var, ZERO)
    moves_on = _is(_with(own[0].a, loop.loop_var, loop.loop_var + 1) - own[0].a, 1)
    if not moves_on or _uses(own[0].b, loop.loop_var) or not _is(whole.elements, int(loop.extent)):
        return None
    count = Analyzer().simplify(tirx.max(tirx.min(loop.extent, own[0].b - first), ZERO))
    return [condition for condition in conditions if condition is not own[0]], Run(whole.target, whole.source, count)


def _run(statement: tirx.Stmt) -> Run | None:
    """What a statement copies, if that is one run."""
    if isinstance(statement, tirx.BufferStore):
        value = statement.value
        return Run(statement, value, tirx.const(1, "int32")) if isinstance(value, TensorLoad) else None
    if not isinstance(statement, tirx.For) or (inner := _run(statement.body)) is None:
        return None
    here, there = (inner.at(statement.loop_var, step) for step in (statement.loop_var, statement.loop_var + 1))
    if any(not _is(after - before - inner.elements, 0) for before, after in zip(here, there, strict=True)):
        return None
    target, source = inner.at(statement.loop_var, ZERO)
    store = tirx.BufferStore(inner.target.buffer, inner.target.value, [target])
    return Run(store, tirx.BufferLoad(inner.source.source, [source]), inner.elements * statement.extent)


def _copy(run: Run, queue: int) -> tirx.Stmt:
    """Start one copy."""
    size_bytes = run.elements * tvm.DataType(run.target.buffer.dtype).itemsize
    target = _address(run.target.buffer, run.target.indices[0])
    return queues.copy(
        queue, target, _address(run.source.source, run.source.indices[0]), Analyzer().simplify(size_bytes)
    )


def _address(buffer: tirx.Var, index: tirx.Expr) -> tirx.Expr:
    return Call("tirx.address_of", [tirx.BufferLoad(buffer, [Analyzer().simplify(index)])], ret_ty=buffer.data.ty)


def _conjuncts(condition: tirx.Expr) -> list[tirx.Expr]:
    """The conditions that a conjunction is made of."""
    return [*_conjuncts(condition.a), *_conjuncts(condition.b)] if isinstance(condition, tirx.And) else [condition]


def _with(expression: tirx.Expr, variable: tirx.Var, value: tirx.Expr) -> tirx.Expr:
    """An expression at a value of a variable."""
    return tvm_ffi.structural_map(expression, (tirx.Var, lambda found: value if found.same_as(variable) else found))


def _is(expression: tirx.Expr, value: int) -> bool:
    """Whether an expression is provably a number."""
    simple = Analyzer().simplify(expression)
    return isinstance(simple, tirx.IntImm) and int(simple) == value


def _uses(expression: tirx.Expr, variable: tirx.Var) -> bool:
    return any(free.same_as(variable) for free in tirx.analysis.undefined_vars(expression, []))


def _around(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, annotations=loop.annotations)


def _one(statements: list[tirx.Stmt]) -> tirx.Stmt:
    return tirx.SeqStmt(statements) if len(statements) > 1 else statements[0]
