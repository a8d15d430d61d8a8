"""Stripes that run in: they come before the first one, and make what it reads but no output.

    before:  for ho_outer in range(8):                  after:  for ho_outer in range(10):
                 if there(ho_outer * 8 + ho): ...                   if 0 <= (ho_outer - 2) * 8 + ho: ...

It stands behind TVM's CompactBufferAllocation, which finds the sizes of caches from stripes that all make output.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.schedule.steps import LOOP_NAME
from hexconv.schedule.stream import THERE, WARM_UP

STRIPES = "ho_outer"
"""The name of the loop over stripes of the output."""


def run_in(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Begin the stripes of a function as early as its schedule says (blocks opaque)."""
    attributes = func.attrs or {}
    if WARM_UP not in attributes:
        return func
    before = int(attributes[WARM_UP])

    def asked(call: Call) -> tirx.Expr:
        is_asked = call.op.name == "tirx.call_pure_extern" and call.args[0].value == THERE
        return call.args[1] >= 0 if is_asked else call

    def begun(loop: tirx.For) -> tirx.For:
        return _begun(loop, before) if loop.annotations.get(LOOP_NAME) == STRIPES else loop

    body = tvm_ffi.structural_map(func.body, (Call, asked))
    return func.with_body(tvm_ffi.structural_map(body, (tirx.For, begun)))


def _begun(loop: tirx.For, before: int) -> tirx.For:
    """The loop over stripes, from so many before the first one on."""
    stripe = loop.loop_var
    body = tvm_ffi.structural_map(loop.body, (tirx.Var, lambda each: each - before if each.same_as(stripe) else each))
    return tirx.For(stripe, loop.min, loop.extent + before, loop.kind, body, annotations=loop.annotations)
