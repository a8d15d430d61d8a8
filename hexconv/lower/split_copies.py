"""Split a copy nest into runs and fills: without clamps, repeated over loops, whole rows before shorter ones.

Loops are split where their guards change, so that each of them either copies or fills. Then copies and fills are taken
apart, since they write different bytes, or those that copies write once more come first:

    before:  for h: for w: if 1 <= w and w < 15: for c: cache[..] = input[..]
                           else: for c: cache[..] = zero point
    after:   for h: copy 14 * C elements
             for h: for w in range(1): for c: cache[..] = zero point
             for h: for w in range(15, 16): for c: cache[..] = zero point

The plan decides who copies and who fills; a `Mover` carries that decision.

Trips that copy as much as any other are apart from those that copy less:

    before:  for block in range(4): copy max(0, min(32, 100 - 32 * block)) elements
    after:   for block in range(3): copy 32 elements
             for block in range(1): copy max(0, min(32, 4 - 32 * block)) elements
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.compute.stored import FIRST_BIT
from hexconv.lower.block_edges import across_blocks, in_blocks, in_parts_of_a_ring
from hexconv.lower.copy_runs import ONE, ZERO, Either, Fill, Mover, Piece, Place, Run, is_one, itemsize, joined
from hexconv.tir.guards import range_of, rooms_of
from hexconv.tir.loops import LOOP_NAME
from hexconv.tir.trees import all_of, around, as_one, bound, conjuncts, uses, with_values


def unclamped(statement: tirx.Stmt, ranges: Analyzer) -> tirx.Stmt:
    """Take away each `min(index, c)` and `max(index, c)` of an index that a guard around it keeps from passing c.

    before:  if row < 97: cache[..] = input[min(row // 8, 12), ..]
    after:   if row < 97: cache[..] = input[row // 8, ..]

    Args:
        statement: the statement.
        ranges: the ranges of the variables in it.
    """

    def kept(guard: tirx.IfThenElse) -> tirx.IfThenElse:
        rooms = [room for condition in conjuncts(guard.condition) for room in rooms_of(condition)]

        def plain(node: tirx.Min | tirx.Max) -> tirx.Expr:
            index, clamp = node.a, node.b
            if not isinstance(clamp, tirx.IntImm):
                return node
            for element, size in ((index, 1), *_elements_of_blocks(index)):
                first = int(clamp) * size
                left = first + size - 1 - element if isinstance(node, tirx.Min) else element - first
                if any(ranges.can_prove(left - room * _times(left, room) >= 0) for room in rooms):
                    return index
            return node

        then = tvm_ffi.structural_map(guard.then_case, [(tirx.Min, plain), (tirx.Max, plain)])
        return tirx.IfThenElse(guard.condition, then, guard.else_case)

    return tvm_ffi.structural_map(statement, (tirx.IfThenElse, kept))


def _times(left: tirx.Expr, room: tirx.Expr) -> int:
    """Return how often `room` fits into `left`, by the growth of both with a variable of `room`; 0 if neither tells."""
    for variable in all_of(room, tirx.Var):
        of_left, of_room = (_growth(value, variable) for value in (left, room))
        if of_left and of_room:
            return max(0, of_left // of_room)
    return 0


def _growth(value: tirx.Expr, variable: tirx.Var) -> int | None:
    """Return by how much a value grows with a variable; None if that changes."""
    growth = Analyzer().simplify(with_values(value, {variable: variable + 1}) - value)
    return int(growth) if isinstance(growth, tirx.IntImm) else None


def _elements_of_blocks(index: tirx.Expr) -> Iterator[tuple[tirx.Expr, int]]:
    """Yield the element that an index divides to find its block, and the size of a block.

    before:  first * 3 + (row - 16) // 8        after:   first * 24 + row - 16, and 8
    """
    for quotient in all_of(index, tirx.FloorDiv):
        if isinstance(quotient.b, tirx.IntImm):
            size = int(quotient.b)
            yield (index - quotient) * size + quotient.a, size


def of_one_length(
    run: Run, loop: tirx.For, of_rows: bool = False
) -> tuple[tuple[Run, tirx.Expr], tuple[Run, tirx.Expr]] | None:
    """Return the run of a loop's whole trips and their number, and the run of the others from trip 0 on and theirs.

    Where a trip loses a whole length, one shorter trip is left, or none: its run then has no elements.

    None unless the length of its rows is the same number until it shrinks from trip to trip, and the run is one row or
    becomes one where its rows have that number; `of_rows` takes other runs, too.
    """
    if (found := _most_and_left(run.elements)) is None:
        return None
    most, left = found
    longest = joined(replace(run, elements=most))
    if not is_one(longest.count) and not of_rows:
        return None
    first = with_values(left, {loop.loop_var: ZERO})
    shrinks = Analyzer().simplify(left - with_values(left, {loop.loop_var: loop.loop_var + ONE}))
    if not isinstance(shrinks, tirx.IntImm) or int(shrinks) <= 0:
        return None
    trips = tirx.floordiv(first - most, shrinks) + 1
    whole = Analyzer().simplify(tirx.max(tirx.min(trips, loop.extent), 0))
    shorter, left_over = _from_trip(run, loop.loop_var, whole), Analyzer().simplify(loop.extent - whole)
    if isinstance(left_over, tirx.IntImm) or int(shrinks) < int(most):
        return (longest, whole), (shorter, left_over)
    once = shorter.at(loop.loop_var, ZERO)
    return (longest, whole), (replace(once, elements=tirx.min(once.elements, left_over * most)), ONE)


def in_one_row(run: Run) -> tuple[tirx.Expr, Run] | None:
    """Return when the rows of a run lie side by side, and the one row that they are then; None if they never do.

    before:  copy 8 rows of max(0, min(32, left)) elements, 32 apart        then:   copy 256 elements, where left >= 32
    """
    if (found := _most_and_left(run.elements)) is None or run.steps != (int(found[0]), int(found[0])):
        return None
    most, left = found
    return left >= most, joined(replace(run, elements=most))


def _most_and_left(elements: tirx.Expr) -> tuple[tirx.IntImm, tirx.Expr] | None:
    """Return what `max(0, min(most, left))` has for `most`, a number, and for `left`; None for anything else."""
    inner = _other(elements, tirx.Max, is_zero=True)
    if inner is None or not isinstance(inner, tirx.Min) or (left := _other(inner, tirx.Min)) is None:
        return None
    return (inner.a if left.same_as(inner.b) else inner.b), left


def _other(node: tirx.Expr, kind: type, is_zero: bool = False) -> tirx.Expr | None:
    """Return the side of an extreme of a kind that is beside a number, or beside 0."""
    if not isinstance(node, kind):
        return None
    sides = ((node.a, node.b), (node.b, node.a))
    known = (other for number, other in sides if isinstance(number, tirx.IntImm) and (not is_zero or int(number) == 0))
    return next(known, None)


def _from_trip(run: Run, variable: tirx.Var, trip: tirx.Expr) -> Run:
    """Return a run in the trips of a loop from some trip on, counted from there."""

    def moved(place: Place) -> Place:
        return place[0], with_values(place[1], {variable: variable + trip})

    elements = Analyzer().simplify(with_values(run.elements, {variable: variable + trip}))
    return replace(run, target=moved(run.target), source=moved(run.source), elements=elements)


SHORT_BYTES = 128
"""Rows below this waste bursts of a DMA engine."""


def repeated(piece: Piece, loop: tirx.For, mover: Mover) -> Iterator[Piece]:
    """Yield a piece of a loop's body over all trips: joined into a longer piece, or in a loop of its own."""
    if isinstance(piece, (Run, Fill)) and (longer := piece.in_loop(loop)):
        yield longer
    elif isinstance(piece, Run):
        yield from _unlike(piece, loop, mover)
    elif isinstance(piece, Either) and not uses(piece.condition, loop.loop_var):
        yield _either_in_loop(piece, loop, mover)
    else:
        yield bound(around(loop, mover.statement(piece)))


def _unlike(run: Run, loop: tirx.For, mover: Mover) -> Iterator[Piece]:
    """Yield a run over the trips of a loop that are not all alike: some of them joined, or all of them row by row."""
    # A kernel that copies by itself does so in loops of a known number of trips; an engine takes as many starts.
    if found := of_one_length(run, loop, of_rows=not mover.has_alternatives):
        (whole, trips), (shorter, left_over) = found
        yield from repeated(whole, _trips(loop, trips), mover)
        yield _once_or_repeated(shorter, _trips(loop, left_over), mover)
    elif _may_be_one_short_row(run, mover) and (found := in_parts_of_a_ring(run, loop)):
        part, inside, blocks = found
        yield bound(around(blocks, as_one([mover.statement(piece) for piece in repeated(part, inside, mover)])))
    elif mover.has_alternatives and (found := in_one_row(run)) and not uses(found[0], loop.loop_var):
        side_by_side, row = found
        yield Either(side_by_side, tuple(repeated(row, loop, mover)), tuple(_unlike_rows(run, loop, mover)))
    else:
        yield from _unlike_rows(run, loop, mover)


def _unlike_rows(run: Run, loop: tirx.For, mover: Mover) -> Iterator[Piece]:
    """Yield rows apart over the trips of a loop that are not all alike."""
    if mover.has_alternatives and _may_be_one_short_row(run, mover) and _may_stay_one(run, loop):
        single = replace(run, count=ONE, steps=(0, 0))
        others = _by_rows_or_trips(run, loop, mover)
        yield Either(tirx.EQ(run.count, 1), tuple(repeated(single, loop, mover)), (others,))
    else:
        yield _by_rows_or_trips(run, loop, mover)


def _may_stay_one(run: Run, loop: tirx.For) -> bool:
    """Whether a run of rows, perhaps one, may be copied trip by trip: its trips aren't alike, or there may be one."""
    if isinstance(run.count, tirx.IntImm) or uses(run.count, loop.loop_var):
        return False
    return _row_in_loop(run, loop) is None or not isinstance(loop.extent, tirx.IntImm)


def _either_in_loop(either: Either, loop: tirx.For, mover: Mover) -> Either:
    """Repeat both alternatives over the trips of a loop that doesn't decide between them."""
    then, otherwise = (
        tuple(longer for piece in pieces for longer in repeated(piece, loop, mover))
        for pieces in (either.then, either.otherwise)
    )
    return Either(either.condition, then, otherwise)


def _once_or_repeated(run: Run, loop: tirx.For, mover: Mover) -> Piece:
    """Return a run in a loop's one trip, which loops around it may still join; or a loop of such copies."""
    return run.at(loop.loop_var, ZERO) if is_one(loop.extent) else bound(around(loop, mover.statement(run)))


def _may_be_one_short_row(run: Run, mover: Mover) -> bool:
    rows, elements = (mover.ranges.const_int_bound(number).min_value for number in (run.count, run.elements))
    return rows <= 1 and elements * itemsize(run.target[0]) < SHORT_BYTES


def _trips(loop: tirx.For, trips: tirx.Expr) -> tirx.For:
    """Return a loop with another number of trips; its body is not looked at."""
    extent = Analyzer().simplify(trips)
    return tirx.For(loop.loop_var, loop.min, extent, loop.kind, loop.body, annotations=loop.annotations)


def _by_rows_or_trips(run: Run, loop: tirx.For, mover: Mover) -> tirx.Stmt:
    """Copy all rows of a run trip by trip, or a row in all trips at once: the way that takes fewer copies.

    Where bounds don't tell which of them are fewer, the device chooses. It doesn't where both vary and a copy holds two
    rows or more in any case: a second way would make the nest longer for little.

    before:  for w in range(14): copy 4 rows        after:   for row in range(4): copy 14 rows
    """
    by_trips = bound(around(loop, mover.statement(run)))
    if (longer := _row_in_loop(run, loop)) is None:
        return by_trips
    row, piece = longer
    by_rows = bound(tirx.For(row, 0, run.count, tirx.ForKind.SERIAL, mover.copy(piece)))
    fewer = mover.ranges.simplify(tirx.LT(run.count, loop.extent))
    if isinstance(fewer, tirx.IntImm):
        return by_rows if int(fewer) else by_trips
    if not isinstance(run.count, tirx.IntImm) and mover.ranges.const_int_bound(run.count).min_value > 1:
        return by_trips
    return tirx.IfThenElse(fewer, by_rows, by_trips)


def _row_in_loop(run: Run, loop: tirx.For) -> tuple[tirx.Var, Run] | None:
    """Return a row of a run in all trips of a loop, and the row's number; None unless all trips are alike."""
    if uses(run.count, loop.loop_var):
        return None
    row = tirx.Var("row", "int32")
    places = ((buffer, first + row * step) for (buffer, first), step in zip(run.places, run.steps, strict=True))
    target, source = places
    longer = replace(run, target=target, source=source, count=ONE, steps=(0, 0)).in_loop(loop)
    return longer and (row, longer)


def ranges_of(body: tirx.Stmt, others: Mapping[tirx.Var, Range]) -> Analyzer:
    """Return an analyzer that knows the ranges of all loop variables of a statement, and of other variables."""
    analyzer = Analyzer()
    for variable, within in others.items():
        analyzer.bind(variable, within)
    for loop in all_of(body, tirx.For):
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
    return analyzer


def split_into_runs(statement: tirx.Stmt, mover: Mover) -> list[tirx.Stmt]:
    """Split a statement that copies into copies and fills."""
    return _in_runs(across_blocks(unclamped(statement, mover.ranges)), mover)


def _in_runs(statement: tirx.Stmt, mover: Mover) -> list[tirx.Stmt]:
    """Split a statement of simple indices."""
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
        then = as_one(_in_runs(statement.then_case, mover))
        otherwise = as_one(_in_runs(statement.else_case, mover)) if statement.else_case is not None else None
        return [tirx.IfThenElse(statement.condition, then, otherwise)]
    if isinstance(statement, tirx.BufferStore) and isinstance(statement.value, TensorLoad):
        [to], [where] = statement.indices, statement.value.indices
        return [Run((statement.buffer, to), (statement.value.source, where), ONE)]
    if isinstance(statement, tirx.BufferStore) and (load := _flipped(statement.value)) is not None:
        [to], [where] = statement.indices, load.indices
        return [Run((statement.buffer, to), (load.source, where), ONE, flips=True)]
    if isinstance(statement, tirx.BufferStore) and isinstance(statement.value, tirx.IntImm):
        return [Fill((statement.buffer, statement.indices[0]), statement.value, 1)]
    return [statement]


def _flipped(value: tirx.Expr) -> TensorLoad | None:
    """Return the load of an int8 element whose first bit is flipped; None for anything else."""
    if not isinstance(value, tirx.BitwiseXor):
        return None
    load, bits = value.a, value.b
    is_flipped = isinstance(load, TensorLoad) and isinstance(bits, tirx.IntImm) and int(bits) == FIRST_BIT
    return load if is_flipped else None


def _of_loop(loop: tirx.For, mover: Mover) -> Iterator[Piece]:
    """Yield the pieces of a loop: those of its body, each in a loop of its own or joined into a longer one."""
    if isinstance(loop.extent, tirx.IntImm) and int(loop.extent) <= 0:
        return
    if isinstance(loop.body, tirx.IfThenElse) and uses(loop.body.condition, loop.loop_var):
        # A condition inside of this loop may belong to another loop.
        parts = _split(loop, loop.body, mover.ranges)
        yield from _fills_joined([piece for part in parts for piece in _pieces(_hoisted(part), mover)])
        return
    if parts := in_blocks(loop) or (_last_apart(loop) if mover.fills_ahead else []):
        for part in parts:
            yield from _pieces(part, mover)
        return
    pieces = _pieces(loop.body, mover)
    if mover.fills_ahead and (under := _fill_under(pieces, loop)):
        yield from (under, *repeated(next(piece for piece in pieces if isinstance(piece, Run)), loop, mover))
        return
    if ends := _ends_that_meet(pieces, loop):
        begin, last = ends[0], int(loop.extent) - 1
        pieces = [piece for piece in pieces if not any(piece is end for end in ends)]
        yield from (end.at(loop.loop_var, trip) for end, trip in zip(ends, (0, last), strict=True))
        shorter = tirx.For(loop.loop_var, 0, last, loop.kind, loop.body, annotations=loop.annotations)
        yield from repeated(replace(ends[1], elements=ends[1].elements + begin.elements), shorter, mover)
    for piece in pieces:
        yield from repeated(piece, loop, mover)


def _fill_under(pieces: Sequence[Piece], loop: tirx.For) -> Fill | None:
    """Return a fill of all trips of a loop that runs then write over, if each trip fills what lies behind its run.

    So the fringe of pixels with few channels takes as many stores as their row has vectors.

    before:  for w: copy 3 elements; fill 1 element     after:   fill 4 * W elements; for w: copy 3 elements
    """
    match pieces:
        case (Run() as run, Fill() as fill) | (Fill() as fill, Run() as run):
            pass
        case _:
            return None
    (buffer, first), (filled, behind) = run.target, fill.target
    if not (isinstance(run.elements, tirx.IntImm) and is_one(run.count) and buffer.same_as(filled)):
        return None
    begins_behind = Analyzer().simplify(behind - first - run.elements)
    whole = replace(fill, target=run.target, elements=int(run.elements) + fill.elements)
    return whole.in_loop(loop) if isinstance(begins_behind, tirx.IntImm) and int(begins_behind) == 0 else None


def _fills_joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join fills that lie side by side, in place of the first of them: so padding and the fringe in a row are one."""
    found: list[Piece] = []
    for piece in pieces:
        for place, other in enumerate(found):
            if isinstance(piece, Fill) and isinstance(other, Fill) and (longer := other.beside(piece)):
                found[place] = longer
                break
        else:
            found.append(piece)
    return found


def _ends_that_meet(pieces: Sequence[Piece], loop: tirx.For) -> tuple[Fill, Fill] | None:
    """Return the first and last fill of a loop's body if each trip's last one ends where the next trip begins.

    So the padding right of a row and that left of the next one are one fill.
    """
    fills = [piece for piece in pieces if isinstance(piece, Fill)]
    if len(fills) < 2 or not isinstance(loop.extent, tirx.IntImm) or int(loop.extent) < 2:
        return None
    first, last = fills[0], fills[-1]
    return (first, last) if last.goes_on_with(first, loop.loop_var) else None


PLANES = "co"
"""The loop over planes of channels."""


def _last_apart(loop: tirx.For) -> list[tirx.Stmt]:
    """Return the trips of a loop over planes that only copy, and its last one, if that alone fills something.

    So runs and fills of channels that are no multiple of a plane's have lengths that are numbers.

    before:  for co in range(2): for c in range(32): if co * 32 + c < 44: copy   else: fill
    after:   for co in range(1): for c in range(32): copy
             for c in range(32): if c < 12: copy   else: fill
    """
    trips = int(loop.extent) if isinstance(loop.extent, tirx.IntImm) else 1
    if trips < 2 or loop.annotations.get(LOOP_NAME) != PLANES:
        return []
    inner = [each.loop_var for each in all_of(loop.body, tirx.For)]
    ranges = ranges_of(loop.body, {loop.loop_var: Range(0, trips - 1)})
    guards = [guard for guard in all_of(loop.body, tirx.IfThenElse) if guard.else_case is not None]
    conditions = [each for guard in guards for each in conjuncts(guard.condition)]
    shared = [each for each in conditions if uses(each, loop.loop_var) and uses(each, *inner)]
    if not any(map(ranges.can_prove, shared)):
        return []

    def decided(guard: tirx.IfThenElse) -> tirx.Stmt:
        left = [each for each in conjuncts(guard.condition) if not ranges.can_prove(each)]
        return tirx.IfThenElse(tirx.all(*left), guard.then_case, guard.else_case) if left else guard.then_case

    whole = around(loop, tvm_ffi.structural_map(loop.body, (tirx.IfThenElse, decided)))
    number = tirx.const(trips - 1, "int32")
    return [_trips(whole, number), with_values(loop.body, {loop.loop_var: number})]


def _split(loop: tirx.For, guard: tirx.IfThenElse, ranges: Analyzer) -> Iterator[tirx.For]:
    """Yield the trips of a loop for which a guard holds, the trips before them and those after."""
    begin, end = range_of([guard.condition], loop.loop_var, loop.extent)
    end = Analyzer().simplify(tirx.max(begin, end))
    yield _shifted(loop, guard.then_case, begin, end)
    if guard.else_case is not None:
        before = begin if ranges.can_prove(begin <= loop.extent) else tirx.min(begin, loop.extent)
        yield from (_shifted(loop, guard.else_case, *trips) for trips in ((ZERO, before), (end, loop.extent)))


def _shifted(loop: tirx.For, body: tirx.Stmt, begin: tirx.Expr, end: tirx.Expr) -> tirx.For:
    """Return some trips of a loop as a loop from 0 on, around another body."""
    variable = tirx.Var(loop.loop_var.name, "int32")
    moved = with_values(body, {loop.loop_var: variable + begin})
    return tirx.For(variable, 0, Analyzer().simplify(end - begin), loop.kind, moved)
