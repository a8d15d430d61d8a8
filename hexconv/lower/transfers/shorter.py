"""Split a loop where the copies of its last trips get shorter, so that those before them can be rows of one copy.

before:  for block in range(4): copy max(0, min(32, 100 - 32 * block)) elements
after:   for block in range(3): copy 32 elements
         for block in range(1): copy max(0, min(32, 4 - 32 * block)) elements
"""

from dataclasses import replace

from tvm import tirx
from tvm.sym import Analyzer

from hexconv.lower.transfers.run import ONE, ZERO, Place, Run, is_one, joined
from hexconv.schedule.trees import with_values


def of_one_length(run: Run, loop: tirx.For) -> tuple[tuple[Run, tirx.Expr], tuple[Run, tirx.Expr]] | None:
    """Return the run of a loop's whole trips and their number, and the run of the others from trip 0 on and theirs.

    Where a trip loses a whole length, one shorter trip is left, or none: its run then has no elements.

    None unless the length of its rows is the same number until it shrinks from trip to trip, and the run is one row or
    becomes one where its rows have that number.
    """
    if (found := _most_and_left(run.elements)) is None:
        return None
    most, left = found
    longest = joined(replace(run, elements=most))
    if not is_one(longest.count):
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
