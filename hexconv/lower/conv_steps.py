"""Take the steps of convs out of the nest for a kernel: a step's loops become one call, and the call becomes code.

A step stands inside of all loops that the schedule made for a conv: it makes some rows of some blocks of channels. All
that a kernel needs to know of a step are expressions of the loops around it. They are arguments of the call, where
TVM's own passes keep them right; sources and targets are loads of the element where they begin.

    mark       in each block that writes a result: where it writes, in the whole tensor
    take_out   before:  for ko_inner, ho_inner, wo, ...: if guards: sums; result
               after:   hexconv_step(conv, rows, channels, input_cache[..], intermediate1[..], filter1_cache[..])
    fill       before:  hexconv_step(...)          after:  what the kernel emits
"""

from collections.abc import Callable, Mapping, Sequence

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.lower.conv_step import ConvStep
from hexconv.lower.rings import FIRST_SLABS
from hexconv.lower.step_call import Ring, read_step, step_call
from hexconv.lower.step_inside import Inside, inside_of
from hexconv.schedule.loops import LOOP_NAME, PART, STEP
from hexconv.schedule.parts import convolution
from hexconv.schedule.stream import RINGS, RUN_IN
from hexconv.schedule.trees import around, as_one, uses


def take_out(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Make one call of every step that is marked (no blocks, rings not yet folded, buffers not yet flat)."""
    attributes = func.attrs or {}
    starts = attributes.get(FIRST_SLABS, {})
    rings = {str(name): Ring(int(rows), int(starts[name])) for name, rows in attributes.get(RINGS, {}).items()}
    streams = RUN_IN in attributes

    def visit(statement: tirx.Stmt, loops: tuple[tirx.For, ...]) -> tirx.Stmt:
        if isinstance(statement, tirx.For) and STEP in statement.annotations:
            return _called(inside_of(statement), loops, rings, streams)
        if isinstance(statement, tirx.For):
            return around(statement, visit(statement.body, (*loops, statement)))
        if isinstance(statement, tirx.SeqStmt):
            return as_one([visit(step, loops) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, loops), statement.else_case)
        return statement

    return func.with_body(visit(func.body, ())).without_attr(RUN_IN)


def fill(module: tvm.IRModule, emit: Callable[[ConvStep], tirx.Stmt]) -> tvm.IRModule:
    """Put what a kernel emits in the place of every step's call (flat buffers)."""

    def filled(loop: tirx.For) -> tirx.Stmt:
        step = read_step(loop.body)
        return _labelled(emit(step), {**loop.annotations, LOOP_NAME: "step"}) if step else loop

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, filled)))})


def _called(found: Inside, loops: Sequence[tirx.For], rings: Mapping[str, Ring], streams: bool) -> tirx.Stmt:
    """Return a step as a call inside of a loop of one trip, which carries the part's name, where it makes anything."""
    part = _labelled(step_call(found, loops, rings, streams), {PART: convolution(found.at.number).name})
    enabled = [guard for guard in found.guards if not uses(guard, *found.loops)]
    return tirx.IfThenElse(tirx.all(*enabled), part, None) if enabled else part


def _labelled(statement: tirx.Stmt, notes: Mapping[str, str]) -> tirx.Stmt:
    """Put a loop of one trip around a statement, which carries notes."""
    return tirx.For(tirx.Var("step", "int32"), 0, 1, tirx.ForKind.SERIAL, statement, annotations=dict(notes))
