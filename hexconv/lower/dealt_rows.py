"""Deal the rows of tiles of a step of the matrix engine, and the rows of copies, to threads: fork, and join at its end.

before:  for ko_inner, ho_inner:                        after:  for thread in parallel(4):
             for wo: EngineSums(sums)                               for ko_inner, ho_inner:
             for wo: EngineResults(sums, target)                        if (ko_inner + ho_inner * 2) % 4 == thread:
                                                                            lock
                                                                            for wo: EngineSums(sums of the thread)
                                                                            unlock
                                                                            for wo: EngineResults(sums of the thread)

before:  for hi in range(8): CroutonRow(...)            after:  for thread in parallel(4):
                                                                    for hi in range(2): CroutonRow(hi * 4 + thread)

A step with fewer rows of tiles than there are threads is made in two parts: its rows are summed, each in sums of its
own, and then its tiles are dealt, whatever their rows.

There is one engine, which holds the sums of a row of tiles between its packets: one thread at a time issues to it, row
by row, by a lock. What HVX does beside it has none. Copies by the copy engine are started and waited for outside of
threads, and what HVX fills beside them is dealt. A row of tiles is never cut: the next tile's sums begin in the one
before it.

It runs on flat buffers, where marks still stand for the packets and for rows of copies.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad

from hexconv.kernel.engine_words import LOCK, UNLOCK
from hexconv.lower import queues
from hexconv.lower.copies import part_of
from hexconv.lower.crouton_rows import FRINGE
from hexconv.lower.engine_packets import RESULTS, SUMS, ZERO, EngineResults, EngineSums
from hexconv.lower.rows_of_pixels import loop_name
from hexconv.spec.extents import ROW_BLOCK
from hexconv.tir import marks
from hexconv.tir.loops import LOOP_NAME
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of, around, as_one, steps_of, with_values

_OF_STEP, _TILES = ("ko_inner", "ho_inner"), "wo"
"""The loops over the rows of tiles of a step, and that over the tiles of a row."""
_CHANNELS, _LINES = "co", "hi"
"""The loops of a copy over blocks of channels, and over the eight lines of a row of tiles."""


def deal_rows(main: tirx.PrimFunc, threads: int) -> tirx.PrimFunc:
    """Deal what a nest does to threads, part by part; one thread is left as it is (flat buffers, marks)."""
    if threads == 1:
        return main

    def visit(statement: tirx.Stmt) -> tirx.Stmt:
        if isinstance(statement, tirx.For):
            if loop_name(statement) in _OF_STEP and _has(statement, SUMS):
                return _step(statement, threads)
            if loop_name(statement) == _TILES and _has(statement, SUMS):
                return _locked(statement)
            if loop_name(statement) == _TILES and _has(statement, RESULTS, FRINGE):
                return _in_parallel(threads, lambda thread: _tiles(statement, ZERO, thread, threads))
            if (part := part_of(statement)) and part.copies:
                return _copied(statement, threads)
            return around(statement, visit(statement.body))
        if isinstance(statement, tirx.SeqStmt):
            return as_one([visit(step) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            other = statement.else_case and visit(statement.else_case)
            return tirx.IfThenElse(statement.condition, visit(statement.then_case), other)
        return _locked(statement) if _is_mark(statement, SUMS) else statement

    return main.with_body(visit(main.body))


def _in_parallel(threads: int, body: Callable[[tirx.Var], tirx.Stmt]) -> tirx.For:
    thread = tirx.Var("thread", "int32")
    return tirx.For(thread, 0, threads, tirx.ForKind.PARALLEL, body(thread), annotations={LOOP_NAME: "thread"})


Row = Callable[[tirx.Stmt, tirx.Expr], tirx.Stmt]
"""Returns what stands for the statements of a row of tiles of a step, from its number."""


def _step(step: tirx.For, threads: int) -> tirx.Stmt:
    """Deal the rows of tiles of a step; where there are fewer than threads, their results are dealt tile by tile."""

    def own(body: tirx.Stmt, row: tirx.Expr, thread: tirx.Var, sums: tirx.Expr) -> tirx.Stmt:
        steps = steps_of(_with_sums(body, sums, threads))
        made = as_one([_locked(each) if _has(each, SUMS) else each for each in steps])
        return tirx.IfThenElse(tirx.EQ(tirx.floormod(row, threads), thread), made, None)

    if rows_of(step) >= threads or not _results(step):
        return _in_parallel(threads, lambda thread: _rows(step, lambda body, row: own(body, row, thread, thread)))

    def summed(body: tirx.Stmt, row: tirx.Expr, thread: tirx.Var) -> tirx.Stmt:
        sums = [each for each in steps_of(body) if _has(each, SUMS) or isinstance(each, tirx.DeclBuffer)]
        return own(as_one(sums), row, thread, row)

    def finished(body: tirx.Stmt, row: tirx.Expr, thread: tirx.Var) -> tirx.Stmt:
        others = [each for each in steps_of(_with_sums(body, row, threads)) if not _has(each, SUMS)]
        return as_one([_tiles(each, row, thread, threads) for each in others])

    parts = summed, finished
    return as_one(
        [
            _in_parallel(threads, lambda thread, of=of: _rows(step, lambda body, row: of(body, row, thread)))
            for of in parts
        ]
    )


def rows_of(step: tirx.For) -> int:
    """Count the rows of tiles of a step, those that the last one doesn't have, too."""
    return prod(int(loop.extent) for loop in all_of(step, tirx.For) if loop_name(loop) in _OF_STEP)


def _results(step: tirx.For) -> list[tirx.For]:
    """Return the loops over the tiles of a row that make results."""
    return [loop for loop in all_of(step, tirx.For) if loop_name(loop) == _TILES and not _has(loop, SUMS)]


def _rows(statement: tirx.Stmt, of_row: Row, row: tirx.Expr = ZERO, so_far: int = 1) -> tirx.Stmt:
    """Rewrite the statements of each row of tiles inside of the loops of a step, from its number.

    Inner loops count in the larger steps: those over slabs, of which some have no rows.

    Args:
        statement: the loops.
        of_row: rewrites the statements.
        row: the number as far as outer loops count it.
        so_far: how many rows these have.
    """
    if isinstance(statement, tirx.For) and loop_name(statement) in _OF_STEP:
        own = tirx.Var(statement.loop_var.name, "int32")  # each part of the step has loops of its own
        inside = with_values(statement.body, {statement.loop_var: own})
        body = _rows(inside, of_row, row + own * so_far, so_far * int(statement.extent))
        return tirx.For(own, 0, statement.extent, statement.kind, body, annotations=statement.annotations)
    if isinstance(statement, tirx.IfThenElse) and statement.else_case is None:
        return tirx.IfThenElse(statement.condition, _rows(statement.then_case, of_row, row, so_far), None)
    return of_row(statement, row)


def _tiles(statement: tirx.Stmt, row: tirx.Expr, thread: tirx.Var, threads: int) -> tirx.Stmt:
    """Let a thread finish its own tiles of a row: of those of all rows, every so many."""

    def visit(loop: tirx.For) -> tirx.Stmt:
        if loop_name(loop) != _TILES:
            return loop
        is_own = tirx.EQ(tirx.floormod(row * loop.extent + loop.loop_var, threads), thread)
        return around(loop, tirx.IfThenElse(is_own, loop.body, None))

    return tvm_ffi.structural_map(statement, (tirx.For, visit))


def _locked(statement: tirx.Stmt) -> tirx.Stmt:
    """Hold the engine while a row of tiles is summed."""
    lock, unlock = (tirx.Evaluate(tirx.call_extern("int32", name)) for name in (LOCK, UNLOCK))
    return tirx.SeqStmt([lock, statement, unlock])


def _with_sums(statement: tirx.Stmt, number: tirx.Expr, threads: int) -> tirx.Stmt:
    """Let marks name the sums of a number: those of all threads lie one behind the other."""

    def moved(sums: TensorLoad) -> TensorLoad:
        of_one = int(sums.source.shape[0]) // threads
        return tirx.BufferLoad(sums.source, [sums.indices[0] + number * of_one])

    def marked(node: tirx.Evaluate) -> tirx.Stmt:
        for name, kind in ((SUMS, EngineSums), (RESULTS, EngineResults)):
            mark = marks.read(name, kind, node)
            if mark and mark.sums is not None:
                return marks.written(name, replace(mark, sums=moved(mark.sums)))
        return node

    return tvm_ffi.structural_map(statement, (tirx.Evaluate, marked))


def _copied(statement: tirx.Stmt, threads: int) -> tirx.Stmt:
    """Deal what HVX copies or fills; what starts copies of the copy engine, or waits for them, stays outside."""
    if _is_of_hvx(statement) and _is_of_one_fork(statement, threads):
        return _in_parallel(threads, lambda thread: _dealt(statement, thread, threads))
    if isinstance(statement, tirx.SeqStmt):
        parts = _forks(statement.seq)
        return as_one([_copied(each, threads) for each in (parts if len(parts) > 1 else statement.seq)])
    if isinstance(statement, tirx.For):
        return around(statement, _copied(statement.body, threads))
    if isinstance(statement, tirx.IfThenElse):
        other = statement.else_case and _copied(statement.else_case, threads)
        return tirx.IfThenElse(statement.condition, _copied(statement.then_case, threads), other)
    return statement


def _is_of_hvx(statement: tirx.Stmt) -> bool:
    """Whether loops of a copy have no call of the copy engine."""
    return bool(all_of(statement, tirx.For)) and not _calls_copy_engine(statement)


def _calls_copy_engine(statement: tirx.Stmt) -> bool:
    return any(call.op.same_as(op) for call in all_of(statement, Call) for op in queues.FUNCTIONS)


def _is_of_one_fork(statement: tirx.Stmt, threads: int) -> bool:
    """Whether threads need not wait for one another inside of what HVX copies or fills."""
    if isinstance(statement, tirx.SeqStmt):
        return len(_forks(statement.seq)) == 1 and all(_is_of_one_fork(each, threads) for each in statement.seq)
    if isinstance(statement, tirx.IfThenElse):
        cases = (statement.then_case, statement.else_case)
        return all(_is_of_one_fork(each, threads) for each in cases if each is not None)
    if isinstance(statement, tirx.For) and not _is_dealt(statement, threads):
        return _is_of_one_fork(statement.body, threads)
    return True


def _forks(steps: Sequence[tirx.Stmt]) -> list[tirx.Stmt]:
    """Join steps behind one another that HVX may do without waiting between them.

    What is filled is overwritten by pixels, of which other threads may be in time before. So steps of a fork are all of
    whole lines, which are the same thread's in each; or all of them fill; or none does.
    """
    parts: list[list[tirx.Stmt]] = []
    for step in steps:
        if parts and not any(map(_calls_copy_engine, (parts[-1][-1], step))) and _go_together([*parts[-1], step]):
            parts[-1].append(step)
        else:
            parts.append([step])
    return [as_one(part) for part in parts]


def _go_together(steps: Sequence[tirx.Stmt]) -> bool:
    """Whether steps of a copy write what no other of them writes, but on the same thread or with the same value."""
    made = [each for each in steps if not isinstance(each, (tirx.Bind, tirx.DeclBuffer))]
    fill = [not all_of(each, TensorLoad) and not all_of(each, tirx.Evaluate) for each in made]
    return all(map(_is_of_lines, made)) or all(fill) or not any(fill)


def _is_of_lines(statement: tirx.Stmt) -> bool:
    """Whether all eight lines of rows of tiles are dealt."""
    lines = [loop for loop in all_of(statement, tirx.For) if loop.loop_var.name == _LINES]
    return bool(lines) and all(isinstance(loop.extent, tirx.IntImm) and int(loop.extent) == ROW_BLOCK for loop in lines)


def _dealt(statement: tirx.Stmt, thread: tirx.Var, threads: int) -> tirx.Stmt:
    """Deal the trips of the loops of a copy; what stands in none of them is the first thread's."""
    if isinstance(statement, tirx.SeqStmt):
        return as_one([_dealt(step, thread, threads) for step in statement.seq])
    if isinstance(statement, tirx.IfThenElse):
        other = statement.else_case and _dealt(statement.else_case, thread, threads)
        return tirx.IfThenElse(statement.condition, _dealt(statement.then_case, thread, threads), other)
    if isinstance(statement, tirx.For):
        if _is_dealt(statement, threads):
            return _strided(statement, thread, threads)
        return around(statement, _dealt(statement.body, thread, threads))
    if isinstance(statement, (tirx.Bind, tirx.DeclBuffer)):
        return statement
    return tirx.IfThenElse(tirx.EQ(thread, 0), statement, None)


def _is_dealt(loop: tirx.For, threads: int) -> bool:
    """Whether the trips of a loop are dealt: of blocks of channels that go around, else of the lines of rows of tiles.

    A copy without lines is dealt where there are enough trips, or where no other loop is inside. Columns at both ends
    of a row, which are filled, would be one thread's.
    """
    # A copy that is split leaves its loops without annotations; their variables keep the names.
    inner, extent = all_of(loop.body, tirx.For), loop.extent
    is_enough = isinstance(extent, tirx.IntImm) and int(extent) >= threads
    if any(each.loop_var.name == _LINES for each in (loop, *inner)):
        goes_around = loop.loop_var.name == _CHANNELS and is_enough and int(extent) % threads == 0
        return goes_around or loop.loop_var.name == _LINES
    return is_enough or not inner


def _strided(loop: tirx.For, thread: tirx.Var, threads: int) -> tirx.For:
    """Return every so many trips of a loop, from the thread's first one on."""
    own = tirx.Var(loop.loop_var.name, "int32")
    trips = tirx.floordiv(loop.extent + (threads - 1) - thread, int32(threads))
    body = with_values(loop.body, {loop.loop_var: own * threads + thread})
    return tirx.For(own, 0, trips, loop.kind, body, annotations=loop.annotations)


def _has(statement: tirx.Stmt, *names: str) -> bool:
    return any(_is_mark(each, *names) for each in all_of(statement, tirx.Evaluate))


def _is_mark(statement: tirx.Stmt, *names: str) -> bool:
    return isinstance(statement, tirx.Evaluate) and any(marks.is_named(statement.value, name) for name in names)
