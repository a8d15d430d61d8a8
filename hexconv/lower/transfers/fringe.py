"""The fringe of an input that nothing depends on: of a depthwise conv, whose lanes are channels and whose words are wide.

before:  if 1 <= w and w < 57 and c < 144: cache[..] = input[..]
         else: cache[..] = zero point
after:   if 1 <= w and w < 57: if c < 144: cache[..] = input[..]
         else: if w < 58: cache[..] = zero point

What lanes without a channel hold, and bytes of words that meet no tap, goes nowhere.
"""

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.lower.copies import part_of
from hexconv.lower.ranges import conjuncts
from hexconv.lower.transfers.run import uses
from hexconv.schedule import copies as parts
from hexconv.schedule.steps import LOOP_NAME

CHANNELS, COLUMNS = "ci", "wo"


def without_fringe(module: tvm.IRModule, columns: int) -> tvm.IRModule:
    """Fill no channel that a pixel of the input doesn't have, and so many columns of a row (flat buffers, parts named)."""

    def read(loop: tirx.For) -> tirx.For:
        if part_of(loop) != parts.INPUT_READ:
            return loop
        found: dict[str, tirx.Var] = {}

        def note(inner: tirx.For) -> None:
            found[inner.annotations.get(LOOP_NAME, "")] = inner.loop_var

        tvm_ffi.structural_walk(loop, (tirx.For, note))
        channel, column = found[CHANNELS], found[COLUMNS]
        return tvm_ffi.structural_map(loop, (tirx.IfThenElse, lambda guard: _unfilled(guard, channel, column < columns)))

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, read)))})


def _unfilled(guard: tirx.IfThenElse, channel: tirx.Var, is_read: tirx.Expr) -> tirx.IfThenElse:
    """A guard whose conditions on channels decide only whether there is anything to copy."""
    of_channels: list[tirx.Expr] = []
    others: list[tirx.Expr] = []
    for condition in conjuncts(guard.condition):
        (of_channels if uses(condition, channel) else others).append(condition)
    copied = tirx.IfThenElse(tirx.all(*of_channels), guard.then_case, None) if of_channels else guard.then_case
    filled = tirx.IfThenElse(is_read, guard.else_case, None)
    return tirx.IfThenElse(tirx.all(*others), copied, filled) if others else copied
