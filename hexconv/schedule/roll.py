"""Rings for the halo: every slab of the input and of the intermediates is made once and kept while anything needs it.

Stripes of one tensor overlap: the last slabs of one are the first of the next. Where each stripe is made anew, a step
starts from nothing. Here it starts from what earlier steps left, and makes only the slabs that are missing.

    before:  for ho_outer:                          after:  for ho_outer:
                 for ho: input_cache[ho] = ...                  for ho:
                 conv2d                                             if slab >= made: input_cache[slab % R] = ...
                                                                conv2d

Slabs are made in increasing order, so one number says what of a tensor is there: all slabs below `made`. A consumer
whose slabs below M are made has, of its source,

    made = 0                          if M = 0
    made = M * stride + halo          else         halo = (reach - 1 - stride) // 8 + 1   slabs

since row 8 * M - 1 of the consumer reads rows up to (8 * M - 1) * stride + reach - 1. M itself follows from where the
consumer stands. At the start of a step of the last conv it is the slab at which that step starts. At the start of any
other conv's step it is what earlier stripes left or, in the later steps of a stripe, what its earlier steps made:

    M = max(made, start of the step if it is not the first of its stripe)

A ring has one slot for each slab of a stripe (R slabs), and slab s lies in slot s % R: when a stripe that starts at
slab a is there, it is slabs a .. a + R - 1, all others are dead. `hexconv.lower.rings` folds the buffers.

Halide's sliding window and storage folding do this for stencils whose stride is 1; `Schedule.rolling_buffer` of TVM
0.27 leaves the output cache too large and rolls one buffer at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from hexconv.schedule.guards import Guards, add_guards
from hexconv.spec import Conv2d
from hexconv.spec.extents import ROW_BLOCK

RINGS = "hexconv.rings"
"""Attribute of a scheduled function: how many slabs the ring of a buffer has, by the buffer's name."""
SLAB_AXIS = 1
ZERO = tirx.const(0, "int32")


@dataclass(frozen=True)
class Stage:
    """What makes one tensor that is rolled, or the output.

    Attributes:
        blocks: names of the blocks that make it.
        filter_block: name of the block that stages the conv's filter in each tile, if one does.
        conv: the conv that makes it, None for the input.
        ho_outer: the loop over its steps, None for the input, which is read in one.
        buffer: name of the buffer.
        stripe_slabs: slabs of one stripe.
        step_slabs: slabs of one step.
        all_slabs: slabs of the whole tensor.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d | None
    ho_outer: tirx.Var | None
    buffer: str
    stripe_slabs: int
    step_slabs: int
    all_slabs: int


def roll(module: tvm.IRModule, stages: Sequence[Stage]) -> tvm.IRModule:
    """Make every slab once.

    Args:
        module: scheduled, with blocks.
        stages: from the output to the input.
    """
    slabs = _slab_expressions(module)
    steps = [stage.ho_outer for stage in stages if stage.ho_outer is not None]
    output, *rolled = stages
    there, begun = _start(slabs[output.blocks[-1]], steps), _later(output)
    guards: Guards = {}
    consumer = output.conv
    for stage in rolled:
        assert consumer is not None, "only the input, which comes last, is made by no conv"
        made = _made(consumer, there, begun)
        guards |= {name: [slabs[name] >= made] for name in stage.blocks}
        if stage.ho_outer is not None:
            start = _start(slabs[stage.blocks[-1]], steps)
            if stage.filter_block:
                guards[stage.filter_block] = list(_makes_something(stage, start, made))
            there, begun = tirx.max(made, tirx.Select(_later(stage), start, ZERO)), tirx.any(begun, _later(stage))
        consumer = stage.conv
    guarded = add_guards(module, guards)
    rings = {stage.buffer: stage.stripe_slabs for stage in rolled}
    return tvm.IRModule({"main": guarded["main"].with_attr(RINGS, rings)})


def _made(consumer: Conv2d, there: tirx.Expr, begun: tirx.Expr) -> tirx.Expr:
    """How many slabs of its source have been made for a consumer whose first `there` slabs are made.

    `begun` is whether there are any.
    """
    stride, reach = consumer.stride[0], consumer.reach[0]
    halo = (reach - 1 - stride) // ROW_BLOCK + 1
    made = there * stride + halo
    return tirx.Select(begun, made, ZERO) if halo > 0 else made


def _later(stage: Stage) -> tirx.Expr:
    """Whether a step is not the first in its stripe."""
    assert stage.ho_outer is not None, "a step has a loop"
    return stage.ho_outer > 0


def _makes_something(stage: Stage, start: tirx.Expr, made: tirx.Expr) -> Iterator[tirx.Expr]:
    """Whether a step makes any slab: otherwise its filter needn't be staged."""
    assert stage.ho_outer is not None, "a step has a loop"
    stripe_start = _at_zero(start, [stage.ho_outer])
    yield start < stage.all_slabs
    for end in (start + stage.step_slabs, stripe_start + stage.stripe_slabs, tirx.const(stage.all_slabs, "int32")):
        yield made < end


def _start(slab: tirx.Expr, steps: Sequence[tirx.Var]) -> tirx.Expr:
    """The first slab of a step, from any slab of it: all loops inside of the step at 0."""
    inside = [loop for loop in tirx.analysis.undefined_vars(slab, []) if not any(loop.same_as(step) for step in steps)]
    return _at_zero(slab, inside)


def _at_zero(expression: tirx.Expr, loops: Sequence[tirx.Var]) -> tirx.Expr:
    """An expression where some loops begin."""

    def zero(variable: tirx.Var) -> tirx.Expr:
        return ZERO if any(variable.same_as(loop) for loop in loops) else variable

    return tvm_ffi.structural_map(expression, (tirx.Var, zero))


def _slab_expressions(module: tvm.IRModule) -> dict[str, tirx.Expr]:
    """The slab that each block writes, in the loops around it."""
    found: dict[str, tirx.Expr] = {}

    def note(realize: s_tir.SBlockRealize) -> None:
        if len(realize.iter_values) > SLAB_AXIS:
            found[realize.block.name_hint] = realize.iter_values[SLAB_AXIS]

    tvm_ffi.structural_walk(module["main"].body, (s_tir.SBlockRealize, note))
    return found
