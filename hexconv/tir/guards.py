"""Guards of loops and stores: hoisted to statements, solved for the trips they let through; clamped indices.

before:  sums[i] = sums[i] + if_then_else(condition, product, 0)
after:   if condition:
             sums[i] = sums[i] + product

before:  tensor[i] = if_then_else(condition, value, fringe)
after:   if condition: tensor[i] = value
         else: tensor[i] = fringe

before:  tensor[i] = max(tensor[i], if_then_else(condition, value, fringe))
after:   if condition: tensor[i] = max(tensor[i], value)
         else: tensor[i] = max(tensor[i], fringe)

`hoist_guards` then moves the `if` out to the loop that decides it. (TVM's HoistExpression would do both at once, but it
leaves conditions behind in the branch where they fail.)

The guards of a schedule keep every access inside of its buffer; here the indices do so by themselves. Where the loops
alone would let an index leave, it is clamped. No value that is used changes, since the guard lets none of the clamped
ones through, and TVM's OOBChecker (which looks at loops and not at guards) finds nothing. Where TVM can derive a clamp
from a guard, the next simplification takes it away again.

before:  if wo * 8 + wi < 62: ... cache[ho, wo + (wi + rw) // 8, ...]
after:   if wo * 8 + wi < 62: ... cache[ho, min(wo + (wi + rw) // 8, 7), ...]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Op, Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.tir.loops import PART
from hexconv.tir.statements import int32
from hexconv.tir.trees import all_of, around, conjuncts, uses, with_values

IF_THEN_ELSE = Op.get("prim.if_then_else")

Guards = list[tuple[tirx.Var, tirx.Expr]]
"""Variables that stand for conditions, or for indices."""


def guards_to_statements(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Rewrite every store of a lowered function (no blocks)."""
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.BufferStore, _guarded)))


def _guarded(statement: tirx.BufferStore) -> tirx.Stmt:
    """Put the conditions of one store around it."""
    value = statement.value
    if _is_conditional(value):
        condition, chosen, otherwise = value.args
        return tirx.IfThenElse(condition, _guarded(_store(statement, chosen)), _guarded(_store(statement, otherwise)))
    if isinstance(value, tirx.Add) and _is_conditional(value.b) and _is_zero(value.b.args[2]):
        condition, product, _ = value.b.args
        return tirx.IfThenElse(condition, _guarded(_store(statement, value.a + product)), None)
    if isinstance(value, tirx.Max) and _is_conditional(value.b):
        condition, *values = value.b.args
        return tirx.IfThenElse(condition, *(_guarded(_store(statement, tirx.max(value.a, each))) for each in values))
    return statement


def _store(like: tirx.BufferStore, value: tirx.Expr) -> tirx.BufferStore:
    """Return the same store of another value."""
    return tirx.BufferStore(like.buffer, value, like.indices)


def _is_conditional(value: tirx.Expr) -> bool:
    """Whether a value is `if_then_else(...)`."""
    return isinstance(value, Call) and value.op.same_as(IF_THEN_ELSE)


def _is_zero(value: tirx.Expr) -> bool:
    """Whether adding a value changes nothing."""
    return isinstance(value, (tirx.IntImm, tirx.FloatImm)) and value.value == 0


def without_guards(func: tirx.PrimFunc) -> tuple[tirx.PrimFunc, Guards]:
    """Replace the guards of values by variables of unknown value; return the function and the guards.

    before:  sums[i] = sums[i] + if_then_else(8 <= row, product, 0)
    after:   sums[i] = sums[i] + if_then_else(guard, product, 0)
    """
    guards: Guards = []

    def hide(call: Call) -> tirx.Expr:
        if not _is_conditional(call):
            return call
        condition, *values = call.args
        guards.append((tirx.Var("guard", "bool"), condition))
        return tirx.if_then_else(guards[-1][0], *values)

    return func.with_body(tvm_ffi.structural_map(func.body, (Call, hide))), guards


def without_quotients(func: tirx.PrimFunc, argument: tirx.Var) -> tuple[tirx.PrimFunc, Guards]:
    """Replace the indices of an argument in which something is divided by variables; return the function and these.

    before:  cache[row, ...] = input[(row - 1) // 8, (row + 7) % 8, ...]
    after:   cache[row, ...] = input[quotient, quotient_1, ...]
    """
    found: Guards = []

    def hidden(index: tirx.Expr) -> tirx.Expr:
        if not all_of(index, tirx.FloorDiv, tirx.FloorMod):
            return index
        found.append((tirx.Var("quotient", index.ty), index))
        return found[-1][0]

    def hide(load: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(load.source, list(map(hidden, load.indices))) if load.source.same_as(argument) else load

    return func.with_body(tvm_ffi.structural_map(func.body, (TensorLoad, hide))), found


def with_guards(func: tirx.PrimFunc, guards: Guards) -> tirx.PrimFunc:
    """Undo `without_guards` and `without_quotients`."""
    return func.with_body(with_values(func.body, dict(guards)))


def hoist_guards(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Move every `if` out of the loops that its condition does not depend on.

    before:  for ki: if wi < 60: sums[wi, ki] = ...      after:   if wi < 60: for ki: sums[wi, ki] = ...
    """
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, _decided_outside)))


def _decided_outside(loop: tirx.For) -> tirx.Stmt:
    """Turn a loop around nothing but an `if` that all its iterations decide alike into the `if` around the loop.

    A part that copies some rows and fills others stays one part: its loop is not split.
    """
    body = loop.body
    if not isinstance(body, tirx.IfThenElse) or uses(body.condition, loop.loop_var):
        return loop
    if body.else_case is not None and PART in loop.annotations:
        return loop
    otherwise = body.else_case and _decided_outside(around(loop, body.else_case))
    return tirx.IfThenElse(body.condition, _decided_outside(around(loop, body.then_case)), otherwise)


def keep_inside(func: tirx.PrimFunc, ranges: Mapping[tirx.Var, Range] | None = None) -> tirx.PrimFunc:
    """Clamp the indices of a lowered function (no blocks, buffers not yet flat) that its loops alone let out.

    Args:
        func: a lowered function.
        ranges: the ranges of its free variables.
    """
    analyzer = Analyzer()
    for variable, values in (ranges or {}).items():
        analyzer.bind(variable, values)

    def bind(loop: tirx.For) -> None:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def load(node: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(node.source, _inside(node.indices, node.source.shape, analyzer))

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(node.buffer, node.value, _inside(node.indices, node.buffer.shape, analyzer))

    tvm_ffi.structural_walk(func.body, (tirx.For, bind))
    return func.with_body(tvm_ffi.structural_map(func.body, [(TensorLoad, load), (tirx.BufferStore, store)]))


def _inside(indices: Sequence[tirx.Expr], shape: Sequence[tirx.Expr], analyzer: Analyzer) -> list[tirx.Expr]:
    """Clamp each index to 0..size-1 where its range is larger."""
    return [_clamped(index, size, analyzer) for index, size in zip(indices, shape, strict=True)]


def _clamped(index: tirx.Expr, size: tirx.Expr, analyzer: Analyzer) -> tirx.Expr:
    """Clamp one index."""
    bound = analyzer.const_int_bound(index)
    index = tirx.max(index, tirx.const(0, "int32")) if bound.min_value < 0 else index
    return tirx.min(index, size - 1) if bound.max_value >= int(size) else index


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
        assert slope, f"{guard} is no bound of {variable}"
        least = at_zero + 1 if is_strict else at_zero
        if slope > 0:
            end = tirx.min(end, analyzer.simplify(tirx.floordiv(-least, int32(slope)) + 1))
        else:
            begin = tirx.max(begin, analyzer.simplify(tirx.floordiv(least - (slope + 1), int32(-slope))))
    return analyzer.simplify(begin), analyzer.simplify(end)


def rooms_of(guard: tirx.Expr) -> list[tirx.Expr]:
    """Return what is never below zero where a guard holds: the distances of the sides that it compares."""
    sides = (_sides(bound) for bound in _bounds(guard) if isinstance(bound, (tirx.LT, tirx.LE, tirx.GT, tirx.GE)))
    return [high - low - int(is_strict) for low, high, is_strict in sides]


def _bounds(guard: tirx.Expr) -> list[tirx.Expr]:
    """Split an equation into two bounds; TVM makes an equation of a bound that only one trip keeps."""
    return [guard.a <= guard.b, guard.a >= guard.b] if isinstance(guard, tirx.EQ) else [guard]


def _sides(guard: Any) -> tuple[tirx.Expr, tirx.Expr, bool]:
    """Return the lesser and the greater side of a comparison, and whether they must differ."""
    if isinstance(guard, (tirx.LT, tirx.LE)):
        return guard.a, guard.b, isinstance(guard, tirx.LT)
    assert isinstance(guard, (tirx.GT, tirx.GE)), f"{guard} compares nothing"
    return guard.b, guard.a, isinstance(guard, tirx.GT)
