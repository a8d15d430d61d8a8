"""Take a part of a nest that copies apart into copies and fills.

Loops are split where their guards change, so that each of them either copies or fills. Then copies and fills are taken
apart, since they write different bytes:

    before:  for h: for w: if 1 <= w and w < 15: for c: cache[..] = input[..]
                           else: for c: cache[..] = zero point
    after:   for h: copy 14 * C elements
             for h: for w in range(1): for c: cache[..] = zero point
             for h: for w in range(15, 16): for c: cache[..] = zero point

The plan decides who copies and who fills; a `Mover` carries that decision.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.ranges import range_of
from hexconv.lower.transfers.clamps import unclamped
from hexconv.lower.transfers.in_blocks import in_blocks
from hexconv.lower.transfers.mover import Mover, Piece
from hexconv.lower.transfers.repeated import repeated
from hexconv.lower.transfers.run import ONE, ZERO, Fill, Run
from hexconv.schedule.trees import all_of, around, as_one, conjuncts, uses, with_values


def ranges_of(body: tirx.Stmt, others: Mapping[tirx.Var, Range]) -> Analyzer:
    """Return an analyzer that knows the ranges of all loop variables of a statement, and of other variables."""
    analyzer = Analyzer()
    for variable, within in others.items():
        analyzer.bind(variable, within)
    for loop in all_of(body, tirx.For):
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return analyzer


def taken_apart(statement: tirx.Stmt, mover: Mover) -> list[tirx.Stmt]:
    """Split a statement that copies into copies and fills."""
    return [mover.statement(piece) for piece in _pieces(_hoisted(statement), mover)]


def _hoisted(statement: tirx.Stmt) -> tirx.Stmt:
    """Move every condition to the loop that decides it; a condition may be one of several.

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
    loop = around(statement, _hoisted(statement.body))
    if not isinstance(loop.body, tirx.IfThenElse):
        return loop
    guard = _in_one(loop.body, loop.loop_var)
    conditions = conjuncts(guard.condition)
    others = [condition for condition in conditions if not uses(condition, loop.loop_var)]
    own = [condition for condition in conditions if uses(condition, loop.loop_var)]
    if not others:
        return loop
    then, otherwise = guard.then_case, guard.else_case
    inside = tirx.IfThenElse(tirx.all(*own), then, otherwise) if own else then
    return tirx.IfThenElse(tirx.all(*others), around(loop, inside), otherwise and around(loop, otherwise))


def _in_one(guard: tirx.IfThenElse, variable: tirx.Var) -> tirx.IfThenElse:
    """Join a guard and the guard right in it where a condition of the inner one belongs to another loop."""
    inner = guard.then_case
    if guard.else_case is not None or not isinstance(inner, tirx.IfThenElse) or inner.else_case is not None:
        return guard
    if all(uses(condition, variable) for condition in conjuncts(inner.condition)):
        return guard
    return tirx.IfThenElse(tirx.all(guard.condition, inner.condition), inner.then_case, None)


def _pieces(statement: tirx.Stmt, mover: Mover) -> list[Piece]:
    """Return the runs and fills of a statement, and the statements that are neither."""
    if isinstance(statement, tirx.For):
        return list(_of_loop(statement, mover))
    if isinstance(statement, tirx.SeqStmt):
        return [piece for step in statement.seq for piece in _pieces(step, mover)]
    if isinstance(statement, tirx.IfThenElse):
        then = as_one(taken_apart(statement.then_case, mover))
        otherwise = as_one(taken_apart(statement.else_case, mover)) if statement.else_case is not None else None
        return [tirx.IfThenElse(statement.condition, then, otherwise)]
    if isinstance(statement, tirx.BufferStore) and isinstance(statement.value, TensorLoad):
        [to], [where] = statement.indices, statement.value.indices
        return [Run((statement.buffer, to), (statement.value.source, where), ONE)]
    if isinstance(statement, tirx.BufferStore) and isinstance(statement.value, tirx.IntImm):
        return [Fill((statement.buffer, statement.indices[0]), statement.value, 1)]
    return [statement]


def _of_loop(loop: tirx.For, mover: Mover) -> Iterator[Piece]:
    """Yield the pieces of a loop: those of its body, each in a loop of its own or joined into a longer one."""
    if isinstance(loop.extent, tirx.IntImm) and int(loop.extent) <= 0:
        return
    if isinstance(loop.body, tirx.IfThenElse) and uses(loop.body.condition, loop.loop_var):
        for part in _split(loop, loop.body, mover.ranges):
            yield from _pieces(_hoisted(part), mover)  # a condition inside of this loop may belong to another loop
        return
    if parts := in_blocks(loop):
        for part in parts:
            yield from _pieces(part, mover)
        return
    pieces = _pieces(loop.body, mover)
    if ends := _ends_that_meet(pieces, loop):
        begin, last = ends[0], int(loop.extent) - 1
        pieces = [piece for piece in pieces if not any(piece is end for end in ends)]
        yield from (end.at(loop.loop_var, trip) for end, trip in zip(ends, (0, last), strict=True))
        shorter = tirx.For(loop.loop_var, 0, last, loop.kind, loop.body, annotations=loop.annotations)
        yield from repeated(replace(ends[1], elements=ends[1].elements + begin.elements), shorter, mover)
    for piece in pieces:
        yield from repeated(piece, loop, mover)


def _ends_that_meet(pieces: Sequence[Piece], loop: tirx.For) -> tuple[Fill, Fill] | None:
    """Return the first and last fill of a loop's body if each trip's last one ends where the next trip begins.

    So the padding right of a row and that left of the next one are one fill.
    """
    fills = [piece for piece in pieces if isinstance(piece, Fill)]
    if len(fills) < 2 or not isinstance(loop.extent, tirx.IntImm) or int(loop.extent) < 2:
        return None
    first, last = fills[0], fills[-1]
    return (first, last) if last.goes_on_with(first, loop.loop_var) else None


def _split(loop: tirx.For, guard: tirx.IfThenElse, ranges: Analyzer) -> Iterator[tirx.For]:
    """Yield the trips of a loop for which a guard holds, the trips before them and those after."""
    begin, end = range_of([guard.condition], loop.loop_var, loop.extent)
    then = unclamped(guard.then_case, loop.loop_var, begin, end, ranges)
    end = Analyzer().simplify(tirx.max(begin, end))
    yield _shifted(loop, then, begin, end)
    if guard.else_case is not None:
        before = begin if ranges.can_prove(begin <= loop.extent) else tirx.min(begin, loop.extent)
        yield from (_shifted(loop, guard.else_case, *trips) for trips in ((ZERO, before), (end, loop.extent)))


def _shifted(loop: tirx.For, body: tirx.Stmt, begin: tirx.Expr, end: tirx.Expr) -> tirx.For:
    """Return some trips of a loop as a loop from 0 on, around another body."""
    variable = tirx.Var(loop.loop_var.name, "int32")
    moved = with_values(body, {loop.loop_var: variable + begin})
    return tirx.For(variable, 0, Analyzer().simplify(end - begin), loop.kind, moved)
