"""Take clamps of indices away that no trip of a loop needs; a clamp would make a run single elements.

    for ko in range(min(2, 3 - 2 * ko_outer)): for ki in range(64):

before:  output[min(128 * ko_outer + 64 * ko + ki, 191)] = ...
after:   output[128 * ko_outer + 64 * ko + ki] = ...
"""

import tvm_ffi
from tvm import tirx
from tvm.sym import Analyzer

from hexconv.lower.transfers.run import at_value, uses


def unclamped(body: tirx.Stmt, variable: tirx.Var, end: tirx.Expr, ranges: Analyzer) -> tirx.Stmt:
    """Replace `min(index, c)` by the index where it grows with a loop's variable, to c at most.

    Args:
        body: the body of the loop.
        variable: the loop's variable.
        end: one past its last trip; an index that grows is no larger than at any side of a minimum.
        ranges: the ranges of the other loops' variables.
    """

    def plain(node: tirx.Min) -> tirx.Expr:
        if not uses(node.a, variable) or not isinstance(node.b, tirx.IntImm):
            return node
        growth = ranges.simplify(at_value(node.a, variable, variable + 1) - node.a)
        if not isinstance(growth, tirx.IntImm) or int(growth) <= 0:
            return node
        last = (ranges.simplify(at_value(node.a, variable, side - 1)) for side in _sides(end))
        return node.a if any(ranges.const_int_bound(index).max_value <= int(node.b) for index in last) else node

    return tvm_ffi.structural_map(body, (tirx.Min, plain))


def _sides(end: tirx.Expr) -> list[tirx.Expr]:
    """Return all that a minimum is no larger than."""
    return [*_sides(end.a), *_sides(end.b)] if isinstance(end, tirx.Min) else [end]
