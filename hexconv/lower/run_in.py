"""Let stripes run in: they come before the first one, and make what it reads but no output.

    before:  for ho_outer in range(8):                  after:  for ho_ahead in range(1):
                 input cache read of ho_outer                       input cache read of ho_ahead - 3
                 if there(ho_outer * 8 + ho): ...               for ho_outer in range(10):
                                                                    input cache read of ho_outer - 2
                                                                    if 0 <= (ho_outer - 2) * 8 + ho: ...

This pass runs after TVM's CompactBufferAllocation, which finds the sizes of caches from stripes that all make output.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from hexconv.lower.copies import part_of
from hexconv.lower.transfers.run import is_one
from hexconv.schedule.bands import FIRST_STRIPE, of_band
from hexconv.schedule.loops import LOOP_NAME, STRIPES
from hexconv.schedule.parts import INPUT_READ
from hexconv.schedule.stream import BEFORE, THERE, Beginning
from hexconv.schedule.trees import all_of, as_one, uses, with_values


def run_in(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Begin the stripes of a function as early as its schedule says (blocks opaque)."""
    beginning = Beginning.of(func)
    if beginning is None:
        return func

    def asked(call: Call) -> tirx.Expr:
        what = call.args[0].value if call.op.name == "tirx.call_pure_extern" else ""
        if what == BEFORE:
            return call.args[1] < call.args[2]
        return call.args[1] >= 0 if what == THERE else call

    def begun(loop: tirx.For) -> tirx.Stmt:
        return _begun(loop, beginning) if loop.annotations.get(LOOP_NAME) == STRIPES else loop

    body = tvm_ffi.structural_map(func.body, (Call, asked))
    return func.with_body(tvm_ffi.structural_map(body, (tirx.For, begun)))


def _begun(loop: tirx.For, beginning: Beginning) -> tirx.Stmt:
    """Begin the loop over stripes before its first one, and put the loop over stripes that only read before it."""
    stripe, before = loop.loop_var, beginning.stripes
    body = with_values(loop.body, {stripe: stripe - before})
    stripes = tirx.For(stripe, loop.min, loop.extent + before, loop.kind, body, annotations=loop.annotations)
    if not beginning.reads:
        return stripes
    ahead = tirx.Var("ho_ahead", "int32")
    first = of_band(FIRST_STRIPE) if beginning.has_bands else tirx.const(0, "int32")
    reads = with_values(_input_read(loop.body), {stripe: first + ahead - (before + beginning.reads)})
    notes = {LOOP_NAME: "ho_ahead"}
    return as_one([tirx.For(ahead, 0, beginning.reads, tirx.ForKind.SERIAL, reads, annotations=notes), stripes])


def _input_read(body: tirx.Stmt) -> tirx.Stmt:
    """Find the statement of a stripe that reads the input, in the loops over its steps that have more than one trip."""
    loops = all_of(body, tirx.For)  # a loop comes after those inside of it
    place = next(place for place, loop in enumerate(loops) if part_of(loop) == INPUT_READ)
    read: tirx.Stmt = loops[place]
    for loop in loops[place + 1 :]:
        if uses(read, loop.loop_var):
            read = with_values(read, {loop.loop_var: loop.min}) if is_one(loop.extent) else _around(loop, read)
    return read


def _around(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    """Return a loop of its own, like another one, around another statement."""
    step = tirx.Var(loop.loop_var.name, loop.loop_var.ty)
    inside, notes = with_values(body, {loop.loop_var: step}), {LOOP_NAME: loop.annotations[LOOP_NAME]}
    return tirx.For(step, loop.min, loop.extent, loop.kind, inside, annotations=notes)
