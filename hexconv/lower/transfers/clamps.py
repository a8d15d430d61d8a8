"""Take clamps of indices away that no trip of a loop needs; a clamp would make a run single elements.

    for ko in range(min(2, 3 - 2 * ko_outer)): for ki in range(64):

before:  output[min(128 * ko_outer + 64 * ko + ki, 191)] = ...
after:   output[128 * ko_outer + 64 * ko + ki] = ...
"""

from collections.abc import Callable, Iterator

import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer

from hexconv.schedule.trees import uses, with_values

Extreme = type[tirx.Min] | type[tirx.Max]


def unclamped(body: tirx.Stmt, variable: tirx.Var, begin: tirx.Expr, end: tirx.Expr, ranges: Analyzer) -> tirx.Stmt:
    """Replace `min(index, c)` and `max(index, c)` by an index that grows with a loop's variable and never passes c.

    Args:
        body: the body of the loop.
        variable: the loop's variable.
        begin: its first trip.
        end: one past its last trip; where it is not past the first, there is no trip.
        ranges: the ranges of the other loops' variables.
    """

    def grows(index: tirx.Expr) -> bool:
        growth = ranges.simplify(with_values(index, {variable: variable + 1}) - index)
        return isinstance(growth, tirx.IntImm) and int(growth) > 0

    def bound(index: tirx.Expr, trip: tirx.Expr) -> tvm_ffi.Object:
        return ranges.const_int_bound(ranges.simplify(with_values(index, {variable: trip})))

    def plain(node: tirx.Min | tirx.Max) -> tirx.Expr:
        index, clamp = node.a, node.b
        if not isinstance(clamp, tirx.IntImm) or not uses(index, variable) or not grows(index):
            return node

        def first_is_in(trip: tirx.Expr) -> bool:
            return bound(index, trip).min_value >= int(clamp) or ranges.can_prove(trip >= end)

        def last_is_in(stop: tirx.Expr) -> bool:
            return bound(index, stop - 1).max_value <= int(clamp) or ranges.can_prove(stop <= begin)

        if isinstance(node, tirx.Min):
            return index if _holds(end, tirx.Min, last_is_in) else node
        return index if _holds(begin, tirx.Max, first_is_in) else node

    return tvm_ffi.structural_map(body, [(tirx.Min, plain), (tirx.Max, plain)])


def _holds(value: tirx.Expr, either: Extreme, test: Callable[[tirx.Expr], bool]) -> bool:
    """Whether a test holds for a value: for itself, or for one side of each `either` in it and both sides of others."""
    if test(value):
        return True
    splits = _sides(value, either)
    return any((any if is_either else all)(_holds(side, either, test) for side in sides) for sides, is_either in splits)


def _sides(value: tirx.Expr, either: Extreme) -> Iterator[tuple[tuple[tirx.Expr, tirx.Expr], bool]]:
    """Yield the sides of each extreme that a value, or a difference, is made of; and whether one of them will do."""
    if isinstance(value, (tirx.Min, tirx.Max)):
        yield (value.a, value.b), isinstance(value, either)
    if not isinstance(value, tirx.Sub):
        return
    one, other = value.a, value.b
    if isinstance(one, (tirx.Min, tirx.Max)):
        yield (one.a - other, one.b - other), isinstance(one, either)
    if isinstance(other, (tirx.Min, tirx.Max)):
        yield (one - other.a, one - other.b), not isinstance(other, either)
