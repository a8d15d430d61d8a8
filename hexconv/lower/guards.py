"""Turn guards into statements: a condition inside of a stored value becomes an `if` around the store.

before:  sums[i] = sums[i] + if_then_else(condition, product, 0)
after:   if condition:
             sums[i] = sums[i] + product

before:  tensor[i] = if_then_else(condition, value, fringe)
after:   if condition: tensor[i] = value
         else: tensor[i] = fringe

`hoist_guards` then moves the `if` out to the loop that decides it. (TVM's HoistExpression would do both at once, but it
leaves conditions behind in the branch where they fail.)
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Op

from hexconv.schedule.loops import PART
from hexconv.schedule.trees import around, uses, with_values

IF_THEN_ELSE = Op.get("prim.if_then_else")

Guards = list[tuple[tirx.Var, tirx.Expr]]
"""Variables that stand for conditions."""


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


def with_guards(func: tirx.PrimFunc, guards: Guards) -> tirx.PrimFunc:
    """Undo `without_guards`."""
    return func.with_body(with_values(func.body, dict(guards)))


def hoist_guards(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Move every `if` out of the loops that its condition does not depend on.

    before:  for ki: if wi < 60: sums[wi, ki] = ...      after:   if wi < 60: for ki: sums[wi, ki] = ...
    """
    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, _decided_outside)))


def _decided_outside(loop: tirx.For) -> tirx.Stmt:
    """Turn a loop around nothing but an `if` that all its iterations decide alike into the `if` around the loop.

    A part that copies some rows and fills others stays one part: its loop is not taken apart.
    """
    body = loop.body
    if not isinstance(body, tirx.IfThenElse) or uses(body.condition, loop.loop_var):
        return loop
    if body.else_case is not None and PART in loop.annotations:
        return loop
    otherwise = body.else_case and _decided_outside(around(loop, body.else_case))
    return tirx.IfThenElse(body.condition, _decided_outside(around(loop, body.then_case)), otherwise)
