"""Repeat a run or a fill over the trips of a loop: joined into a longer one where it can be, else trip by trip."""

from collections.abc import Iterator
from dataclasses import replace

from tvm import tirx
from tvm.sym import Analyzer

from hexconv.lower.transfers.mover import Either, Mover, Piece
from hexconv.lower.transfers.run import ONE, ZERO, Fill, Run, is_one, itemsize
from hexconv.lower.transfers.shorter import in_one_row, of_one_length
from hexconv.lower.transfers.unaligned import in_parts_of_a_ring
from hexconv.schedule.trees import around, as_one, bound, uses

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
    if found := of_one_length(run, loop):
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
