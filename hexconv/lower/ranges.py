"""Find the trips of a loop that guards let through: solve bounds for the loop's variable."""

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.sym import Analyzer

from hexconv.schedule.trees import conjuncts, uses, with_values

ZERO = tirx.const(0, "int32")


def range_of(guards: Sequence[tirx.Expr], variable: tirx.Var, extent: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
    """Return the trips of a loop for which all guards hold: the first, and one past the last.

    The first may be past the last. Guards in which the loop's variable doesn't occur are left out.
    """
    analyzer = Analyzer()
    begin, end = ZERO, extent
    for guard in (bound for condition in guards for conjunct in conjuncts(condition) for bound in _bounds(conjunct)):
        if not uses(guard, variable):
            continue
        low, high, is_strict = _sides(guard)
        excess = low - high
        slope = int(analyzer.simplify(with_values(excess, {variable: variable + 1}) - excess))
        at_zero = analyzer.simplify(with_values(excess, {variable: ZERO}))
        assert abs(slope) == 1, f"{guard} is no bound of {variable}"
        if slope > 0:
            end = tirx.min(end, analyzer.simplify(-at_zero if is_strict else 1 - at_zero))
        else:
            begin = tirx.max(begin, analyzer.simplify(at_zero + 1 if is_strict else at_zero))
    return analyzer.simplify(begin), analyzer.simplify(end)


def _bounds(guard: tirx.Expr) -> list[tirx.Expr]:
    """Split an equation into two bounds; TVM makes an equation of a bound that only one trip keeps."""
    return [guard.a <= guard.b, guard.a >= guard.b] if isinstance(guard, tirx.EQ) else [guard]


def _sides(guard: Any) -> tuple[tirx.Expr, tirx.Expr, bool]:
    """Return the lesser and the greater side of a comparison, and whether they must differ."""
    if isinstance(guard, (tirx.LT, tirx.LE)):
        return guard.a, guard.b, isinstance(guard, tirx.LT)
    assert isinstance(guard, (tirx.GT, tirx.GE)), f"{guard} compares nothing"
    return guard.b, guard.a, isinstance(guard, tirx.GT)
