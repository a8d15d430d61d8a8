"""Make every slab of the input and of the intermediates once, and keep it in a ring while anything needs it (halo).

Stripes of one tensor overlap: the last slabs of one are the first of the next. Without rings each stripe is made anew,
and a step starts from nothing. With rings a step starts from the slabs that earlier steps left, and makes only those
that are missing.

    before:  for ho_outer:                          after:  for ho_outer:
                 for ho: input_cache[ho] = ...                  for ho:
                 conv2d                                             if slab >= made: input_cache[slab % R] = ...
                                                                conv2d

Slabs are made in increasing order, so one number says which slabs of a tensor exist: all slabs below `made`. Of the
source of a consumer whose slabs below M are made, these exist:

    made = 0                          if M = 0
    made = M * stride + halo          else         halo = (reach - 1 - stride) // 8 + 1   slabs

since row 8 * M - 1 of the consumer reads rows up to (8 * M - 1) * stride + reach - 1. M itself follows from where the
consumer stands. At the start of a step of the last conv it is the slab at which that step starts. At the start of any
other conv's step it is what earlier stripes left or, in the later steps of a stripe, what its earlier steps made:

    M = max(made, start of the step if it is not the first of its stripe)

A step that makes the slabs below E of the consumer takes the source's slabs below E * stride + halo, whether it is a
whole step or the rest of a stripe. The other slabs of its stripe are left to the steps that need them.

A ring has one slot for each slab of a stripe (R slabs), and slab s lies in slot s % R. While a stripe that starts at
slab a is in the ring, the ring holds slabs a .. a + R - 1, and all other slabs are dead. `hexconv.lower.rings` folds
the buffers.

Read ahead (`buffering = "double"`). The ring of the input gets A slots more, and the read of the input runs A slabs
ahead of the slabs that are needed: its stripes have R + A slabs, and A slabs more have been read before a step. So the
copies of the A slabs that the next steps need are under way while a step computes, and they go to no slot that it
reads.

Halide's sliding window and storage folding do this for stencils whose stride is 1; `Schedule.rolling_buffer` of TVM
0.27 leaves the output cache too large and rolls one buffer at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from hexconv.schedule.guards import Guards, add_guards
from hexconv.schedule.loops import with_extent
from hexconv.spec import Conv2d
from hexconv.spec.extents import ROW_BLOCK

RINGS = "hexconv.rings"
"""Attribute of a scheduled function: for each ring, by its buffer's name, how many slabs it has."""
AHEAD = "hexconv.ahead"
"""Attribute of a scheduled function: for each buffer that is read ahead, by how many slabs, and of how many in all."""
SLAB_AXIS = 1
ZERO = tirx.const(0, "int32")


@dataclass(frozen=True)
class Stage:
    """The blocks and loops that make one tensor: the output, or a tensor that is kept in a ring.

    Attributes:
        blocks: the names of the blocks that make the tensor.
        filter_block: the name of the block that stages the conv's filter in each tile, if a block does.
        conv: the conv that makes the tensor; None for the input.
        ho_outer: the loop over the tensor's steps; None for the input, which is read in one step.
        buffer: the name of the tensor's buffer.
        stripe_slabs: the slabs of one stripe.
        step_slabs: the slabs of one step.
        all_slabs: the slabs of the whole tensor.
        ho: the loop over the slabs of a stripe, if a stripe is made in one step.
        ahead_slabs: by how many slabs the tensor is made ahead of the slabs that are needed.
    """

    blocks: tuple[str, ...]
    filter_block: str | None
    conv: Conv2d | None
    ho_outer: tirx.Var | None
    buffer: str
    stripe_slabs: int
    step_slabs: int
    all_slabs: int
    ho: tirx.Var | None = None
    ahead_slabs: int = 0

    @property
    def ring_slabs(self) -> int:
        """The slots of the stage's ring."""
        return self.stripe_slabs + self.ahead_slabs


def roll(module: tvm.IRModule, stages: Sequence[Stage]) -> tvm.IRModule:
    """Make every slab once.

    Args:
        module: a scheduled module with blocks.
        stages: the stages, from the output to the input.
    """
    slabs = _slab_expressions(module)
    outer = [stage.ho_outer for stage in stages if stage.ho_outer is not None]
    output, *rolled = stages
    start = _start(slabs[output.blocks[-1]], outer)
    consumer = _Reader(output.conv, start, _later(output), start + output.step_slabs, False)
    guards: Guards = {}
    for stage in rolled:
        made, needed = consumer.made(stage.ahead_slabs), consumer.needed(stage.ahead_slabs)
        inside = [slabs[stage.blocks[-1]] < stage.all_slabs] if stage.ahead_slabs else []
        guards |= {
            name: [*inside, *(slabs[name] < end for end in needed), slabs[name] >= made] for name in stage.blocks
        }
        if stage.ho_outer is not None:
            start = _start(slabs[stage.blocks[-1]], outer)
            if stage.filter_block:
                guards[stage.filter_block] = list(_makes_something(stage, start, made, needed))
            consumer = _reader(stage, consumer, start)
    guarded = add_guards(_lengthened(module, rolled), guards)["main"]
    rings = {stage.buffer: stage.ring_slabs for stage in rolled}
    ahead = {stage.buffer: [stage.ahead_slabs, stage.all_slabs] for stage in rolled if stage.ho is not None}
    return tvm.IRModule({"main": guarded.with_attr({RINGS: rings, AHEAD: ahead})})


def halo_slabs(conv: Conv2d) -> int:
    """Count the slabs of 8 rows that two successive steps of a conv both read; negative: slabs that neither reads."""
    return (conv.reach[0] - 1 - conv.stride[0]) // ROW_BLOCK + 1


@dataclass(frozen=True)
class _Reader:
    """One step of a conv as a reader of its source: which slabs it has and which it needs.

    Attributes:
        conv: the conv that reads.
        there: one past the last slab that the conv has made before the step.
        begun: whether the conv has made any slab before the step.
        end: one past the last slab that the step makes.
        is_cut: whether a step can end before its stripe's next one would start.
    """

    conv: Conv2d | None
    there: tirx.Expr
    begun: tirx.Expr
    end: tirx.Expr
    is_cut: bool

    def made(self, ahead: int) -> tirx.Expr:
        """Count the slabs of the source that have been made before the step."""
        behind = self._halo + ahead
        made = self.there * self._stride + behind
        return tirx.Select(self.begun, made, ZERO) if behind > 0 else made

    def needed(self, ahead: int) -> list[tirx.Expr]:
        """Return one past the last slab of the source that the step takes; empty if it takes all of its stripe."""
        return [self.end * self._stride + (self._halo + ahead)] if self.is_cut else []

    @property
    def _stride(self) -> int:
        assert self.conv is not None, "only the input, which comes last, is made by no conv"
        return self.conv.stride[0]

    @property
    def _halo(self) -> int:
        assert self.conv is not None, "only the input, which comes last, is made by no conv"
        return halo_slabs(self.conv)


def _reader(stage: Stage, consumer: _Reader, start: tirx.Expr) -> _Reader:
    """Describe a step of `stage`, which makes slabs for a step of `consumer`, as a reader of the tensor before it."""
    assert stage.ho_outer is not None, "a step has a loop"
    made = consumer.made(0)
    stripe_end = [*consumer.needed(0), _at_zero(start, [stage.ho_outer]) + stage.stripe_slabs][0]
    is_cut = consumer.is_cut or stage.stripe_slabs % stage.step_slabs != 0
    return _Reader(
        conv=stage.conv,
        there=tirx.max(made, tirx.Select(_later(stage), start, ZERO)),
        begun=tirx.any(consumer.begun, _later(stage)),
        end=tirx.min(start + stage.step_slabs, stripe_end) if is_cut else start + stage.step_slabs,
        is_cut=is_cut,
    )


def _lengthened(module: tvm.IRModule, stages: Sequence[Stage]) -> tvm.IRModule:
    """Lengthen the stripes by the slabs that are made ahead."""
    longer = {stage.ho: stage.ring_slabs for stage in stages if stage.ho is not None and stage.ahead_slabs}

    def lengthen(loop: tirx.For) -> tirx.For:
        extent = next((slabs for ho, slabs in longer.items() if loop.loop_var.same_as(ho)), None)
        return with_extent(loop, extent, "ho") if extent else loop

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, lengthen)))})


def _later(stage: Stage) -> tirx.Expr:
    """Whether a step is not the first in its stripe."""
    assert stage.ho_outer is not None, "a step has a loop"
    return stage.ho_outer > 0


def _makes_something(
    stage: Stage, start: tirx.Expr, made: tirx.Expr, needed: Sequence[tirx.Expr]
) -> Iterator[tirx.Expr]:
    """Yield the conditions under which a step makes any slab: otherwise its filter needn't be staged."""
    assert stage.ho_outer is not None, "a step has a loop"
    stripe_start = _at_zero(start, [stage.ho_outer])
    yield start < stage.all_slabs
    yield from (start < end for end in needed)
    ends = [start + stage.step_slabs, stripe_start + stage.stripe_slabs, tirx.const(stage.all_slabs, "int32")]
    yield from (made < end for end in [*ends, *needed])


def _start(slab: tirx.Expr, outer: Sequence[tirx.Var]) -> tirx.Expr:
    """Return the first slab of a step, given any of its slabs: set all loops inside of the step to 0."""
    inside = [loop for loop in tirx.analysis.undefined_vars(slab, []) if not any(loop.same_as(step) for step in outer)]
    return _at_zero(slab, inside)


def _at_zero(expression: tirx.Expr, loops: Sequence[tirx.Var]) -> tirx.Expr:
    """Return an expression where some loops begin."""

    def zero(variable: tirx.Var) -> tirx.Expr:
        return ZERO if any(variable.same_as(loop) for loop in loops) else variable

    return tvm_ffi.structural_map(expression, (tirx.Var, zero))


def _slab_expressions(module: tvm.IRModule) -> dict[str, tirx.Expr]:
    """Map each block to the slab that it writes, as an expression of the loops around it."""
    found: dict[str, tirx.Expr] = {}

    def note(realize: s_tir.SBlockRealize) -> None:
        if len(realize.iter_values) > SLAB_AXIS:
            found[realize.block.name_hint] = realize.iter_values[SLAB_AXIS]

    tvm_ffi.structural_walk(module["main"].body, (s_tir.SBlockRealize, note))
    return found
