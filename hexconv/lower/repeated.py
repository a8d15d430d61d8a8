"""Multiply out loops that only count: where all trips add the same, one trip adds it for all.

before:  for wo, ki, rc: if ki < 2 and wo < 7: counts[0] = counts[0] + 1      # rc to 32
after:   for wo: if wo < 7: for ki: if ki < 2: counts[0] = counts[0] + 32

What the loops count stays the same; a kernel of 1000 x 1000 taps is then counted as soon as one of 3 x 3.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.schedule.trees import all_of, conjuncts, uses

Conditions = list[tirx.Expr]


def repeated(loop: tirx.For, body: tirx.Stmt) -> tirx.Stmt:
    """Return a serial loop around a body that counts, or statements that count the same in fewer trips.

    Args:
        loop: the loop, for its variable, its start and its extent.
        body: the body of one trip.
    """
    if not _only_adds(body):
        return _serial(loop, body)
    conditions, inside = _guarded(body)
    outside = [condition for condition in conditions if not uses(condition, loop.loop_var)]
    within = [condition for condition in conditions if uses(condition, loop.loop_var)]
    guarded = _under(within, inside)
    if uses(guarded, loop.loop_var):
        return _under(outside, _serial(loop, guarded))
    return _under(outside, _times(guarded, loop.extent))


def _serial(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, body)


def _only_adds(body: tirx.Stmt) -> bool:
    """Whether a statement does nothing but add to counts, and what it adds and tests is the same in every trip."""
    others = all_of(body, tirx.Evaluate, tirx.Bind, tirx.AllocBuffer)
    return not others and all(map(_adds, all_of(body, tirx.BufferStore)))


def _adds(store: tirx.BufferStore) -> bool:
    """Whether a store has the form `counts[i] = counts[i] + more`."""
    value = store.value
    if not isinstance(value, tirx.Add) or not isinstance(value.a, TensorLoad):
        return False
    return value.a.source.same_as(store.buffer) and list(map(int, value.a.indices)) == list(map(int, store.indices))


def _guarded(body: tirx.Stmt) -> tuple[Conditions, tirx.Stmt]:
    """Return the conditions around all of a body, and the statement inside of them."""
    conditions: Conditions = []
    while isinstance(body, tirx.IfThenElse) and body.else_case is None:
        conditions += conjuncts(body.condition)
        body = body.then_case
    return conditions, body


def _under(conditions: Conditions, body: tirx.Stmt) -> tirx.Stmt:
    """Put conditions around a statement, as one `if`."""
    return tirx.IfThenElse(tirx.all(*conditions), body, None) if conditions else body


def _times(body: tirx.Stmt, extent: tirx.Expr) -> tirx.Stmt:
    """Multiply every addition in a statement by the number of trips."""
    trips = tirx.max(extent.astype("int64"), tirx.const(0, "int64"))

    def more(store: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(store.buffer, store.value.a + store.value.b * trips, store.indices)

    return tvm_ffi.structural_map(body, (tirx.BufferStore, more))
