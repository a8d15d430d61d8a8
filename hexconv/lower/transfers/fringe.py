"""Leave channels of the input unfilled that nothing depends on: lanes of a depthwise conv without a channel.

before:  if 1 <= w and c < 144: cache[..] = input[..]      after:   if 1 <= w: if c < 144: cache[..] = input[..]
         else: cache[..] = zero point                               else: cache[..] = zero point
"""

from collections.abc import Sequence

import tvm
from tvm import tirx

from hexconv.lower.copies import part_of
from hexconv.schedule.loops import LOOP_NAME
from hexconv.schedule.parts import INPUT_READ
from hexconv.schedule.trees import around, conjuncts, uses

CHANNELS = "ci"


def without_fringe(module: tvm.IRModule) -> tvm.IRModule:
    """Fill no channel that a pixel of the input doesn't have (flat buffers, parts named)."""
    main = module["main"]
    return tvm.IRModule({"main": main.with_body(_changed(main.body, False, ()))})


def _changed(statement: tirx.Stmt, is_read: bool, channels: Sequence[tirx.Var]) -> tirx.Stmt:
    """Rewrite a statement inside of loops over `channels`; only the part that reads the input changes."""
    if isinstance(statement, tirx.For):
        is_read = is_read or part_of(statement) == INPUT_READ
        if is_read and statement.annotations.get(LOOP_NAME) == CHANNELS:
            channels = (*channels, statement.loop_var)
        return around(statement, _changed(statement.body, is_read, channels))
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([_changed(step, is_read, channels) for step in statement.seq])
    if not isinstance(statement, tirx.IfThenElse):
        return statement
    if channels:
        return _unfilled(statement, channels)
    otherwise = statement.else_case and _changed(statement.else_case, is_read, channels)
    return tirx.IfThenElse(statement.condition, _changed(statement.then_case, is_read, channels), otherwise)


def _unfilled(guard: tirx.IfThenElse, channels: Sequence[tirx.Var]) -> tirx.IfThenElse:
    """Return a guard whose conditions on channels decide only whether there is anything to copy."""
    own: list[tirx.Expr] = []
    others: list[tirx.Expr] = []
    for condition in conjuncts(guard.condition):
        (own if uses(condition, *channels) else others).append(condition)
    if not own:
        return guard
    copied = tirx.IfThenElse(tirx.all(*own), guard.then_case, None)
    return tirx.IfThenElse(tirx.all(*others), copied, guard.else_case) if others else copied
