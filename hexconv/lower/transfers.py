"""The copies of a nest of rows: from loops to runs of elements side by side, one or many at equal distances.

Loops are split where their guards change, so that each of them copies or fills, and taken apart, since what is copied
and what is filled are different bytes:

    before:  for h: for w: if 1 <= w and w < 15: for c: cache[..] = input[..]
                           else: for c: cache[..] = zero point
    after:   for h: copy 14 * C elements
             for h: for w in range(1): for c: cache[..] = zero point
             for h: for w in range(15, 16): for c: cache[..] = zero point

Who copies is the plan's affair: the copy engine (`start`), or the kernel itself, vector by vector (`move`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower import queues
from hexconv.lower.conv_steps import conjuncts, range_of
from hexconv.lower.copies import part_of
from hexconv.schedule import copies as parts
from hexconv.schedule.block import Block, Number
from hexconv.schedule.hvx import vector
from hexconv.schedule.steps import LOOP_NAME, PART

ZERO, ONE = tirx.const(0, "int32"), tirx.const(1, "int32")
PAIR_BYTES = 8


@dataclass(frozen=True)
class Run:
    """Elements that lie side by side in both buffers, `count` times at equal distances.

    Attributes:
        target: buffer and first element where they go.
        source: the same where they come from.
        elements: how many lie side by side.
        count: how often.
        steps: elements from one time to the next, of target and source.
    """

    target: tuple[tirx.Var, tirx.Expr]
    source: tuple[tirx.Var, tirx.Expr]
    elements: tirx.Expr
    count: tirx.Expr = ONE
    steps: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Fill:
    """Bytes that lie side by side and hold one value.

    Attributes:
        target: buffer and first element.
        value: of each element.
        elements: how many.
    """

    target: tuple[tirx.Var, tirx.Expr]
    value: tirx.IntImm
    elements: int


Copier = Callable[[Run], tirx.Stmt]
Piece = Run | Fill | tirx.Stmt


def start_copies(module: tvm.IRModule) -> tvm.IRModule:
    """Let the engine do what stands in groups (flat buffers)."""

    def grouped(sequence: tirx.SeqStmt) -> tirx.SeqStmt:
        queue: int | None = None
        steps: list[tirx.Stmt] = []
        for step in sequence.seq:
            started, ended = queues.queue_of(step, queues.START), queues.queue_of(step, queues.END)
            queue = started if started is not None else None if ended is not None else queue
            if queue is None or started is not None:
                steps.append(step)
            else:
                steps += transfers(step, lambda run, queue=queue: _started(run, queue))
        return tirx.SeqStmt(steps)

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.SeqStmt, grouped)))})


def move_by_vectors(module: tvm.IRModule) -> tvm.IRModule:
    """Let the kernel itself copy what no engine does (flat buffers, parts named)."""
    main = module["main"]
    convs = sum(argument.name.startswith("filter") for argument in main.params)
    copied = {parts.INPUT_READ, parts.WRITE_BACK, *(parts.filter_read(number + 1) for number in range(convs))}

    def visit(statement: tirx.Stmt) -> tirx.Stmt:
        if (part := part_of(statement)) in copied:
            return tirx.For(
                tirx.Var("copy", "int32"),
                0,
                1,
                tirx.ForKind.SERIAL,
                _one(transfers(statement, _moved)),
                annotations={PART: part, LOOP_NAME: "copy"},
            )
        if isinstance(statement, tirx.For):
            return _around(statement, visit(statement.body))
        if isinstance(statement, tirx.SeqStmt):
            return tirx.SeqStmt([visit(step) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            otherwise = statement.else_case and visit(statement.else_case)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case), otherwise)
        return statement

    return tvm.IRModule({"main": main.with_body(visit(main.body))})


def transfers(statement: tirx.Stmt, copier: Copier) -> list[tirx.Stmt]:
    """What a statement that copies becomes."""
    return [_statement(piece, copier) for piece in _pieces(_hoisted(statement), copier)]


def _statement(piece: Piece, copier: Copier) -> tirx.Stmt:
    """What a piece becomes where it gets no longer."""
    if isinstance(piece, Run):
        return copier(piece)
    return _filled(piece) if isinstance(piece, Fill) else piece


def _hoisted(statement: tirx.Stmt) -> tirx.Stmt:
    """Every condition at the loop that decides it, be it one of several.

    before:  for w: if 2 <= h and 1 <= w: copy          after:   if 2 <= h: for w: if 1 <= w: copy
                    else: fill                                              else: fill
                                                                 else: for w: fill
    """
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([_hoisted(step) for step in statement.seq])
    if isinstance(statement, tirx.IfThenElse):
        otherwise = _hoisted(statement.else_case) if statement.else_case is not None else None
        return tirx.IfThenElse(statement.condition, _hoisted(statement.then_case), otherwise)
    if not isinstance(statement, tirx.For):
        return statement
    loop = _around(statement, _hoisted(statement.body))
    if not isinstance(loop.body, tirx.IfThenElse):
        return loop
    conditions = conjuncts(loop.body.condition)
    others = [condition for condition in conditions if not _uses(condition, loop.loop_var)]
    own = [condition for condition in conditions if _uses(condition, loop.loop_var)]
    if not others:
        return loop
    then, otherwise = loop.body.then_case, loop.body.else_case
    inside = tirx.IfThenElse(tirx.all(*own), then, otherwise) if own else then
    return tirx.IfThenElse(tirx.all(*others), _around(loop, inside), otherwise and _around(loop, otherwise))


def _pieces(statement: tirx.Stmt, copier: Copier) -> list[Piece]:
    """Runs, fills, and what is neither."""
    if isinstance(statement, tirx.For):
        return list(_of_loop(statement, copier))
    if isinstance(statement, tirx.SeqStmt):
        return [piece for step in statement.seq for piece in _pieces(step, copier)]
    if isinstance(statement, tirx.IfThenElse):
        then = _one(transfers(statement.then_case, copier))
        otherwise = _one(transfers(statement.else_case, copier)) if statement.else_case is not None else None
        return [tirx.IfThenElse(statement.condition, then, otherwise)]
    if isinstance(statement, tirx.BufferStore) and isinstance(statement.value, TensorLoad):
        [to], [where] = statement.indices, statement.value.indices
        return [Run((statement.buffer, to), (statement.value.source, where), ONE)]
    if isinstance(statement, tirx.BufferStore) and isinstance(statement.value, tirx.IntImm):
        return [Fill((statement.buffer, statement.indices[0]), statement.value, 1)]
    return [statement]


def _of_loop(loop: tirx.For, copier: Copier) -> Iterator[Piece]:
    """The pieces of a loop: those of its body, each in a loop of its own or as part of a longer run."""
    if isinstance(loop.extent, tirx.IntImm) and int(loop.extent) <= 0:
        return
    if isinstance(loop.body, tirx.IfThenElse) and _uses(loop.body.condition, loop.loop_var):
        for part in _split(loop, loop.body):
            yield from _of_loop(part, copier)
        return
    for piece in _pieces(loop.body, copier):
        if isinstance(piece, Run) and (longer := _longer(piece, loop)) is not None:
            yield longer
        elif isinstance(piece, Fill) and _goes_on(piece, loop):
            yield replace(piece, target=_begin(piece.target, loop.loop_var), elements=piece.elements * int(loop.extent))
        else:
            yield _bound(_around(loop, _statement(piece, copier)))


def _goes_on(fill: Fill, loop: tirx.For) -> bool:
    """Whether a loop fills on where the trip before ended."""
    return isinstance(loop.extent, tirx.IntImm) and _step(fill.target[1], loop.loop_var) == fill.elements


def _filled(fill: Fill) -> tirx.Stmt:
    """Store doublewords, then what is left, element by element.

    LLVM is not told that all bytes are alike: it would call memset, which costs more than short rows.
    """
    block, (target, first) = Block(), fill.target
    pairs, rest = divmod(fill.elements, PAIR_BYTES) if _itemsize(target) == 1 else (0, fill.elements)
    word = vector.concealed(tirx.IntImm("int32", vector.signed((int(fill.value) & 0xFF) * 0x01010101)))
    pair = tirx.reinterpret(f"{target.dtype}x{PAIR_BYTES}", tirx.Broadcast(word, 2))

    def whole(at: Block, index: tirx.Expr) -> None:
        at.store(target, tirx.Ramp(first + index * PAIR_BYTES, 1, PAIR_BYTES), pair)

    def element(at: Block, index: tirx.Expr) -> None:
        at.store(target, first + pairs * PAIR_BYTES + index, fill.value)

    block.loop("pair", pairs, whole)
    block.loop("element", rest, element)
    return block.statement()


def _bound(loop: tirx.For) -> tirx.Stmt:
    """A loop whose extent is a constant or has a name: TVM's parser rewrites the extents of loops that it reads."""
    if isinstance(loop.extent, (tirx.IntImm, tirx.Var)):
        return loop
    trips = tirx.Var("trips", "int32")
    named = tirx.For(loop.loop_var, loop.min, trips, loop.kind, loop.body, annotations=loop.annotations)
    return tirx.SeqStmt([tirx.Bind(trips, loop.extent), named])


def _split(loop: tirx.For, guard: tirx.IfThenElse) -> Iterator[tirx.For]:
    """The trips of a loop for which a guard holds, those before and those after."""
    begin, end = range_of([guard.condition], loop.loop_var, loop.extent)
    end = Analyzer().simplify(tirx.max(begin, end))
    yield _shifted(loop, guard.then_case, begin, end)
    if guard.else_case is not None:
        yield from (_shifted(loop, guard.else_case, *trips) for trips in ((ZERO, begin), (end, loop.extent)))


def _shifted(loop: tirx.For, body: tirx.Stmt, begin: tirx.Expr, end: tirx.Expr) -> tirx.For:
    """Some trips of a loop as a loop from 0 on, around another body."""
    variable = tirx.Var(loop.loop_var.name, "int32")
    moved = _with(body, loop.loop_var, variable + begin)
    return tirx.For(variable, 0, Analyzer().simplify(end - begin), loop.kind, moved)


def _longer(run: Run, loop: tirx.For) -> Run | None:
    """A run and the loop around it as one run, if they are one."""
    target, source = (_step(place[1], loop.loop_var) for place in (run.target, run.source))
    if target is None or source is None:
        return None
    places = {"target": _begin(run.target, loop.loop_var), "source": _begin(run.source, loop.loop_var)}
    is_dense = isinstance(run.elements, tirx.IntImm) and int(run.elements) == target == source
    if is_dense and _is_one(run.count):
        return replace(run, **places, elements=Analyzer().simplify(run.elements * loop.extent))
    if is_dense and isinstance(loop.extent, tirx.IntImm):
        return _joined(replace(run, **places, elements=run.elements * int(loop.extent)))
    if _is_one(run.count):
        return replace(run, **places, count=loop.extent, steps=(target, source))
    times = run.count if isinstance(run.count, tirx.IntImm) else None
    goes_on = times is not None and (target, source) == tuple(int(times) * step for step in run.steps)
    return replace(run, **places, count=run.count * loop.extent) if goes_on else None


def _joined(run: Run) -> Run:
    """Rows that lie side by side as one."""
    elements = int(Analyzer().simplify(run.elements))
    if run.steps != (elements, elements):
        return replace(run, elements=tirx.const(elements, "int32"))
    return replace(run, elements=Analyzer().simplify(elements * run.count), count=ONE, steps=(0, 0))


def _begin(place: tuple[tirx.Var, tirx.Expr], variable: tirx.Var) -> tuple[tirx.Var, tirx.Expr]:
    return place[0], Analyzer().simplify(_with(place[1], variable, ZERO))


def _step(index: tirx.Expr, variable: tirx.Var) -> int | None:
    """By how much an index grows from trip to trip of a loop, if always by as much."""
    simple = Analyzer().simplify(_with(index, variable, variable + 1) - index)
    return int(simple) if isinstance(simple, tirx.IntImm) else None


def _started(run: Run, queue: int) -> tirx.Stmt:
    """Start one copy, of one row or of many."""
    target, source = (_address(*place) for place in (run.target, run.source))
    itemsize = _itemsize(run.target[0])
    size_bytes = Analyzer().simplify(run.elements * itemsize)
    if _is_one(run.count):
        return queues.copy(queue, target, source, size_bytes)
    return queues.copy(queue, target, source, size_bytes, run.count, *(step * itemsize for step in run.steps))


def _moved(run: Run) -> tirx.Stmt:
    """Copy whole vectors, then what is left, element by element."""
    (target, to), (source, where), lanes = run.target, run.source, vector.BYTES // _itemsize(run.target[0])
    block = Block()

    def row(at: Block, number: tirx.Expr) -> None:
        first = to + number * run.steps[0]
        begin = where + number * run.steps[1]
        vectors, rest = _parts(run.elements, lanes)

        def whole(inner: Block, index: tirx.Expr) -> None:
            loaded = tirx.BufferLoad(source, [tirx.Ramp(begin + index * lanes, 1, lanes)])
            moved = vector.moved(tirx.reinterpret(vector.VECTOR, loaded))
            typed = tirx.reinterpret(f"{target.dtype}x{lanes}", moved)
            inner.store(target, tirx.Ramp(first + index * lanes, 1, lanes), typed)

        def element(inner: Block, index: tirx.Expr) -> None:
            place = index + vectors * lanes
            inner.store(target, first + place, tirx.BufferLoad(source, [begin + place]))

        at.loop("vector", vectors, whole)
        at.loop("element", rest, element)

    block.loop("row", int(run.count) if isinstance(run.count, tirx.IntImm) else run.count, row)
    return block.statement()


def _parts(elements: tirx.Expr, lanes: int) -> tuple[Number, Number]:
    """Whole vectors, and elements that are left."""
    if isinstance(elements, tirx.IntImm):
        return divmod(int(elements), lanes)
    vectors = Analyzer().simplify(tirx.floordiv(elements, lanes))
    return vectors, Analyzer().simplify(elements - vectors * lanes)


def _itemsize(buffer: tirx.Var) -> int:
    return tvm.DataType(buffer.dtype).itemsize


def _address(buffer: tirx.Var, index: tirx.Expr) -> tirx.Expr:
    return Call("tirx.address_of", [tirx.BufferLoad(buffer, [Analyzer().simplify(index)])], ret_ty=buffer.data.ty)


def _is_one(value: Any) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == 1


def _with(node: Any, variable: tirx.Var, value: tirx.Expr) -> Any:
    """A statement or an expression at a value of a variable."""
    return tvm_ffi.structural_map(node, (tirx.Var, lambda found: value if found.same_as(variable) else found))


def _uses(expression: tirx.Expr, variable: tirx.Var) -> bool:
    return any(free.same_as(variable) for free in tirx.analysis.undefined_vars(expression, []))


def _around(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, annotations=loop.annotations)


def _one(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    return tirx.SeqStmt(list(statements)) if len(statements) > 1 else statements[0]
