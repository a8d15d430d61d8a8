"""Steps of convs taken out of the nest, so that a kernel can move in: loops become one call, and the call code.

A step is what stands inside of all loops that the schedule made for a conv: some rows of some blocks of channels. All
that a kernel needs to know of it are expressions of the loops around it, and TVM's own passes keep them right: they
stand in the call, sources and targets as loads of the element where they begin.

    mark       in each block that writes a result: where it writes, in the whole tensor
    take_out   before:  for ko_inner, ho_inner, wo, ...: if guards: sums; result
               after:   hexconv_step(conv, rows, channels, input_cache[..], intermediate1[..], filter1_cache[..])
    fill       before:  hexconv_step(...)          after:  what the kernel emits
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, TensorLoad

from hexconv.lower.conv_step import ConvStep, Rows, StepOperands
from hexconv.lower.ranges import ZERO, conjuncts, range_of, uses, with_values
from hexconv.lower.rings import FIRST_SLABS
from hexconv.schedule.copies import convolution
from hexconv.schedule.loops import LOOP_NAME, PART, STEP
from hexconv.schedule.roll import RINGS
from hexconv.schedule.stream import RUN_IN
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import cache_of, read_name

MARK, CALL = "hexconv_at", "hexconv_step"


@dataclass(frozen=True)
class Ring:
    """A buffer that begins anew after some slabs, and the slab of its tensor that its first one is; 0 slabs: none."""

    slabs: int
    start: int


NO_RING = Ring(0, 0)


@dataclass(frozen=True)
class Result:
    """What a conv writes.

    Attributes:
        number: of the conv, from 1.
        row_axis: of its block, the axis of rows.
        channel_axis: likewise of blocks of channels.
        channels: that the latter counts at a time.
        rows: that the former counts at a time.
    """

    number: int
    row_axis: int
    channel_axis: int
    channels: int
    rows: int


def mark(module: tvm.IRModule, results: Mapping[str, Result]) -> tvm.IRModule:
    """Say in each block that writes a result where in the whole tensor that is.

    Args:
        module: scheduled, with blocks.
        results: by the names of the blocks that write them.
    """

    def marked(block: s_tir.SBlock) -> s_tir.SBlock:
        if block.name_hint not in results:
            return block
        result = results[block.name_hint]
        row, channel = (block.iter_vars[axis].var for axis in (result.row_axis, result.channel_axis))
        blocks = _blocks(channel, result.channels)
        at = tirx.Evaluate(tirx.call_extern("int32", MARK, result.number, row * result.rows, result.rows, blocks))
        return s_tir.SBlock(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            tirx.SeqStmt([at, block.body]),
            block.init,
            block.alloc_buffers,
            block.match_buffers,
            block.annotations,
        )

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (s_tir.SBlock, marked)))})


def _blocks(place: tirx.Expr, channels: int) -> tirx.Expr:
    """The block of 32 channels at a place along an axis that counts `channels` at a time."""
    if channels >= CHANNEL_BLOCK:
        return place * (channels // CHANNEL_BLOCK)
    return tirx.floordiv(place, tirx.const(CHANNEL_BLOCK // channels, "int32"))


def take_out(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Make one call of every step that is marked (no blocks, rings not yet folded, buffers not yet flat)."""
    attributes = func.attrs or {}
    starts = attributes.get(FIRST_SLABS, {})
    rings = {str(name): Ring(int(rows), int(starts[name])) for name, rows in attributes.get(RINGS, {}).items()}
    streams = RUN_IN in attributes

    def visit(statement: tirx.Stmt, around: tuple[tirx.For, ...]) -> tirx.Stmt:
        if isinstance(statement, tirx.For) and STEP in statement.annotations:
            return _call(statement, around, rings, streams)
        if isinstance(statement, tirx.For):
            return _with_body(statement, visit(statement.body, (*around, statement)))
        if isinstance(statement, tirx.SeqStmt):
            steps = [visit(step, around) for step in statement.seq]
            return tirx.SeqStmt(steps) if len(steps) > 1 else steps[0]
        if isinstance(statement, tirx.IfThenElse):
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, around), statement.else_case)
        return statement

    return func.with_body(visit(func.body, ())).without_attr(RUN_IN)


def fill(module: tvm.IRModule, emit: Callable[[ConvStep], tirx.Stmt]) -> tvm.IRModule:
    """Put what a kernel emits in the place of every step's call (flat buffers)."""

    def filled(loop: tirx.For) -> tirx.Stmt:
        call = _step_call(loop.body)
        if call is None:
            return loop
        return _labelled(emit(_read_call(call)), str(loop.annotations[PART]))

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, filled)))})


@dataclass(frozen=True)
class _Inside:
    """What the loops of a step hold.

    Attributes:
        loops: their variables.
        named: those with names.
        guards: the conditions around the result.
        at: the mark: conv, row, rows of a block of them, block of channels, rows of a band.
        result: the store of the result.
        sums: the store that adds a product; None where no element of the result is logical.
    """

    loops: list[tirx.Var]
    named: dict[str, tirx.For]
    guards: list[tirx.Expr]
    at: Call
    result: tirx.BufferStore
    sums: tirx.BufferStore | None

    def begin(self, expression: tirx.Expr) -> tirx.Expr:
        """An expression where all loops of the step begin."""
        return with_values(expression, dict.fromkeys(self.loops, ZERO))


def _inside(loop: tirx.For) -> _Inside:
    loops: list[tirx.Var] = []
    named: dict[str, tirx.For] = {}
    stores: list[tirx.BufferStore] = []
    guards: list[tirx.Expr] = []
    marks: list[Call] = []

    def visit(statement: tirx.Stmt, conditions: list[tirx.Expr]) -> None:
        if isinstance(statement, tirx.For):
            loops.append(statement.loop_var)
            if name := statement.annotations.get(LOOP_NAME):
                named.setdefault(str(name), statement)
            visit(statement.body, conditions)
        elif isinstance(statement, tirx.SeqStmt):
            for step in statement.seq:
                visit(step, conditions)
        elif isinstance(statement, tirx.IfThenElse):
            visit(statement.then_case, [*conditions, *conjuncts(statement.condition)])
        elif isinstance(statement, tirx.BufferStore):
            stores.append(statement)
        elif isinstance(statement, tirx.Evaluate) and _is_call(statement.value, MARK):
            marks.append(statement.value)
            guards.extend(conditions)

    visit(loop, [])
    products = [store for store in stores if isinstance(store.value, tirx.Add)]
    return _Inside(loops, named, guards, marks[0], stores[-1], products[0] if products else None)


def _call(loop: tirx.For, around: Sequence[tirx.For], rings: Mapping[str, Ring], streams: bool) -> tirx.Stmt:
    """A step as a call inside of a loop of one trip, which carries the part's name."""
    found = _inside(loop)
    number, row, _unit, block, *band = found.at.args[1:]
    begin, end = _range(found, "ho_inner")
    is_first = _is_first(found, around, end if streams else None)
    arguments = [number, found.begin(row), begin, end, found.begin(block), _extent(found, "ko_inner"), is_first]
    arguments += [len(band), *band]
    arguments += _rows_of(found, tirx.BufferLoad(found.result.buffer, found.result.indices), rings)
    if found.sums is not None:
        source, filter = _operands(found.sums)
        arguments += _rows_of(found, source, rings)
        arguments += [tirx.BufferLoad(filter.source, [found.begin(index) for index in filter.indices])]
    call = tirx.Evaluate(tirx.call_extern("int32", CALL, *arguments))
    enabled = [guard for guard in found.guards if not any(uses(guard, variable) for variable in found.loops)]
    part = tirx.For(
        tirx.Var("step", "int32"), 0, 1, tirx.ForKind.SERIAL, call, annotations={PART: convolution(int(number))}
    )
    return tirx.IfThenElse(tirx.all(*enabled), part, None) if enabled else part


def _is_first(found: _Inside, around: Sequence[tirx.For], end: tirx.Expr | None) -> tirx.Expr:
    """Whether no step of these channels made anything before; `end` of its trips over rows where stripes run in.

    Then it is the step that has the first row.
    """
    _number, row, unit, block, *band = found.at.args[1:]
    loops = [step for step in around if step.kind != tirx.ForKind.PARALLEL]
    others = [step.loop_var for step in loops if not uses(found.begin(block), step.loop_var)]
    if end is None:
        return tirx.all(*(variable == 0 for variable in others)) if others else tirx.const(True, "bool")
    begins, first = found.begin(row), band[0] if band else ZERO
    images = [variable == 0 for variable in others if not uses(begins, variable)]
    return tirx.all(*images, begins <= first, first < begins + end * unit)


def _rows_of(found: _Inside, load: TensorLoad, rings: Mapping[str, Ring]) -> list[Any]:
    """Some rows of a cache as arguments of a call: the element where they begin, the first row, the ring."""
    ring = rings.get(load.source.name, NO_RING)
    row_0 = tirx.const(-ring.start, "int32")
    origin = [row_0 if axis == 1 else found.begin(index) for axis, index in enumerate(load.indices)]
    return [tirx.BufferLoad(load.source, origin), found.begin(load.indices[1]) + ring.start, ring.slabs]


def _read_call(call: Call) -> ConvStep:
    """A step from its call; buffers are flat by now."""
    number, row, begin, end, block, most, is_first, limits, *rest = call.args[1:]
    band, places = rest[: int(limits)], rest[int(limits) :]
    target, *source = (
        Rows(load.source, load.indices[0], first, int(ring))
        for load, first, ring in (places[at : at + 3] for at in range(0, len(places) - 2, 3))
    )
    filter = places[-1]
    operands = StepOperands(source[0], filter.source, filter.indices[0]) if source else None
    known = (int(number), row, begin, end, block, int(most), is_first, operands, target)
    return ConvStep(*known, (band[0], band[1]) if band else None)


def _operands(sums: tirx.BufferStore) -> tuple[TensorLoad, TensorLoad]:
    """The loads of a product: activation, filter; of high bytes, which come first, where bytes lie apart."""
    loads: list[TensorLoad] = []
    tvm_ffi.structural_walk(sums.value, (TensorLoad, loads.append))
    others = [load for load in loads if not load.source.same_as(sums.buffer)]
    source = next(load for load in others if not _is_of_filter(load))
    return source, next(load for load in others if _is_of_filter(load))


def _is_of_filter(load: TensorLoad) -> bool:
    return read_name(cache_of(load.source.name)).role == "filter"


def _extent(found: _Inside, name: str) -> int:
    """How often a loop of the step runs."""
    return int(found.named[name].extent) if name in found.named else 1


def _range(found: _Inside, name: str) -> tuple[tirx.Expr, tirx.Expr]:
    """The trips of a loop of the step that its guards let through: first, one past the last."""
    if name not in found.named:
        return ZERO, tirx.const(1, "int32")
    loop = found.named[name]
    begin, end = range_of(found.guards, loop.loop_var, loop.extent)
    return found.begin(begin), found.begin(end)


def _is_call(value: Any, name: str) -> bool:
    """Whether a value calls a function of this module's."""
    return isinstance(value, Call) and value.op.name == "tirx.call_extern" and value.args[0].value == name


def _step_call(body: tirx.Stmt) -> Call | None:
    """The call of a step, if that is what a loop holds."""
    return body.value if isinstance(body, tirx.Evaluate) and _is_call(body.value, CALL) else None


def _labelled(statement: tirx.Stmt, part: str) -> tirx.Stmt:
    """What a kernel emitted, inside of a loop of one trip that carries the part's name."""
    return tirx.For(
        tirx.Var("step", "int32"), 0, 1, tirx.ForKind.SERIAL, statement, annotations={PART: part, LOOP_NAME: "step"}
    )


def _with_body(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, annotations=loop.annotations)
