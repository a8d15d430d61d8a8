"""One step of a conv: marked in the schedule, carried through TVM's passes, replaced by its kernel's code.

A step stands inside of all loops that the schedule made for a conv: it makes some rows of some blocks of channels. All
that a kernel needs to know of a step are expressions of the loops around it; sources and targets are loads of the
element where they begin.

    mark       in each block that writes a result: where it writes, in the whole tensor
    take_out   before:  for ko_inner, ho_inner, wo, ...: if guards: sums; result
               after:   ConvStep(conv, rows, channels, target=intermediate1[..], source=input_cache[..], ...)
    fill       before:  ConvStep(...)              after:  what the kernel emits

Both are values that stand in TIR (`hexconv.tir.marks`). A block's is made of its axes, so TVM's passes keep it right
wherever the loops go.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad

from hexconv.kernel import NestLayouts
from hexconv.kernel.row_conv import RowConv
from hexconv.lower.buffers import cache_name, contents_of
from hexconv.lower.conv_step import ConvStep, Kept, KernelConv, Rows, StepOperands
from hexconv.lower.engine_packets import engine_constants
from hexconv.lower.hvx.step_code import hvx_constants, hvx_conv
from hexconv.lower.scalar_conv import scalar_conv
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.kernels import Kernel
from hexconv.spec.vectors import Array
from hexconv.tir import marks
from hexconv.tir.guards import ZERO, range_of
from hexconv.tir.loops import LOOP_NAME, PART, STEP
from hexconv.tir.parts import convolution
from hexconv.tir.trees import all_of, around, as_one, conjuncts, uses, with_body, with_values

MARK = "hexconv_at"
KEPT = "hexconv_kept"


@dataclass(frozen=True)
class Result:
    """How the block that writes a conv's result counts rows and channels.

    Attributes:
        number: the number of the conv, from 1.
        image_axis: the block's axis of images.
        row_axis: the block's axis of rows.
        channel_axis: the block's axis of blocks of channels.
        channels: how many channels one step along `channel_axis` is.
        rows: how many rows one step along `row_axis` is.
    """

    number: int
    image_axis: int
    row_axis: int
    channel_axis: int
    channels: int
    rows: int


@dataclass(frozen=True)
class Mark:
    """Where in the whole tensor a block writes its result.

    Attributes:
        number: the number of the conv, from 1.
        image: the image that it writes.
        row: the row that it writes, or the first row of a block of rows.
        rows: how many rows such a block has.
        block: the block of 32 channels that it writes.
        band: the rows that a thread makes, the first and one past the last; None where one thread makes all.
    """

    number: int
    image: tirx.Expr
    row: tirx.Expr
    rows: int
    block: tirx.Expr
    band: tuple[tirx.Expr, tirx.Expr] | None = None

    @classmethod
    def of(cls, statement: Any) -> "Mark | None":
        """Read a mark; None for a statement that is no mark."""
        return marks.read(MARK, cls, statement)

    @property
    def statement(self) -> tirx.Stmt:
        """Write the mark as it stands in a block."""
        return marks.written(MARK, self)

    def in_band(self, first: tirx.Expr, end: tirx.Expr) -> "Mark":
        """Return the same mark in a thread that makes rows `first` .. `end - 1`."""
        return replace(self, band=(first, end))


def mark(module: tvm.IRModule, results: Mapping[str, Result]) -> tvm.IRModule:
    """Say in each block that writes a result where in the whole tensor that is.

    Args:
        module: a scheduled module with blocks.
        results: the results of the convs, by the names of the blocks that write them.
    """

    def marked(block: s_tir.SBlock) -> s_tir.SBlock:
        if block.name_hint not in results:
            return block
        result = results[block.name_hint]
        axes = (result.image_axis, result.row_axis, result.channel_axis)
        image, row, channel = (block.iter_vars[axis].var for axis in axes)
        number = _blocks(channel, result.channels)
        at = Mark(result.number, image, row * result.rows, result.rows, number).statement
        return with_body(block, tirx.SeqStmt([at, block.body]))

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (s_tir.SBlock, marked)))})


def touch_kept(element: TensorLoad) -> tirx.Stmt:
    """Say that a step touches an element of the columns that it keeps for the next strip."""
    return marks.written(KEPT, Kept(element))


def _blocks(place: tirx.Expr, channels: int) -> tirx.Expr:
    """The block of 32 channels at a place along an axis that counts `channels` at a time."""
    if channels >= CHANNEL_BLOCK:
        return place * (channels // CHANNEL_BLOCK)
    return tirx.floordiv(place, tirx.const(CHANNEL_BLOCK // channels, "int32"))


@dataclass(frozen=True)
class Inside:
    """The statements inside of the loops of a step.

    Attributes:
        loops: the variables of the loops.
        named: the loops that have names, by name.
        guards: the conditions around the result.
        at: where in the whole tensor the result is.
        result: the store of the result.
        sums: the store that adds a product; None where no element of the result is logical.
        kept: the elements at which the columns begin that it keeps for the next strip, for each tensor.
    """

    loops: list[tirx.Var]
    named: dict[str, tirx.For]
    guards: list[tirx.Expr]
    at: Mark
    result: tirx.BufferStore
    sums: tirx.BufferStore | None
    kept: list[TensorLoad]

    def begin(self, expression: tirx.Expr) -> tirx.Expr:
        """Return an expression where all loops of the step begin."""
        return with_values(expression, dict.fromkeys(self.loops, ZERO))

    def extent(self, name: str) -> int:
        """Return how often a loop of the step runs."""
        return int(self.named[name].extent) if name in self.named else 1

    def trips(self, name: str) -> tuple[tirx.Expr, tirx.Expr]:
        """Return the trips of a loop of the step that its guards let through: the first, and one past the last."""
        if name not in self.named:
            return ZERO, tirx.const(1, "int32")
        loop = self.named[name]
        begin, end = range_of(self.guards, loop.loop_var, loop.extent)
        return self.begin(begin), self.begin(end)

    @property
    def operands(self) -> tuple[TensorLoad, TensorLoad] | None:
        """Return the loads of a product's activation and filter; of bytes that lie apart, those of the high bytes."""
        if self.sums is None:
            return None
        loads = all_of(self.sums.value, TensorLoad)
        others = [load for load in loads if not load.source.same_as(self.sums.buffer)]
        of_filter = [load for load in others if contents_of(load.source).role == "filter"]
        return next(load for load in others if load not in of_filter), of_filter[0]


def inside_of(loop: tirx.For) -> Inside:
    """Look into the loops of a step."""
    loops: list[tirx.Var] = []
    named: dict[str, tirx.For] = {}
    stores: list[tirx.BufferStore] = []
    guards: list[tirx.Expr] = []
    found: list[Mark] = []
    kept: list[TensorLoad] = []

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
        elif mark := Mark.of(statement):
            found.append(mark)
            guards.extend(conditions)
        elif touched := marks.read(KEPT, Kept, statement):
            kept.append(touched.at)

    visit(loop, [])
    products = [store for store in stores if isinstance(store.value, tirx.Add)]
    return Inside(loops, named, guards, found[0], stores[-1], products[0] if products else None, kept)


CALL = "hexconv_step"


def step_call(
    found: Inside,
    around: Sequence[tirx.For],
    rings: Mapping[str, int],
    starts: Mapping[str, int],
    streams: bool,
    added: Mapping[int, str],
) -> tirx.Stmt:
    """Write a step as a mark.

    Args:
        found: the loops of the step.
        around: the loops around the step, the outermost first.
        rings: the slabs of each ring, by its name.
        starts: the slab of its tensor at which each ring begins to count.
        streams: whether there are warm-up stripes.
        added: the cache of the tensor that each conv adds, by its number.
    """
    at, (begin, end) = found.at, found.trips("ho_inner")

    def rows(load: TensorLoad) -> Rows:
        name = load.source.name
        start = starts[name] if name in rings else 0
        row_0 = tirx.const(-start, "int32")
        origin = [row_0 if axis == 1 else found.begin(index) for axis, index in enumerate(load.indices)]
        return Rows(_load(load, origin), found.begin(load.indices[1]) + start, rings.get(name, 0))

    addend = None
    for load in all_of(found.result.value, TensorLoad):
        if cache_name(load.source) == added.get(at.number):
            place = rows(load)
            first = [index if axis == 1 else ZERO for axis, index in enumerate(place.at.indices)]
            addend = replace(place, at=_load(load, first))
    operands = None
    if loads := found.operands:
        source, filter = loads
        operands = StepOperands(rows(source), _load(filter, [found.begin(index) for index in filter.indices]))
    step = ConvStep(
        number=at.number,
        image=found.begin(at.image),
        row=found.begin(at.row),
        begin=begin,
        end=end,
        block=found.begin(at.block),
        most_blocks=found.extent("ko_inner"),
        is_first=_is_first(found, around, end if streams else None),
        operands=operands,
        target=rows(tirx.BufferLoad(found.result.buffer, found.result.indices)),
        band=at.band,
        kept=tuple(Kept(_load(load, [found.begin(index) for index in load.indices])) for load in found.kept),
        addend=addend,
    )
    return marks.written(CALL, step)


def _load(like: TensorLoad, indices: Sequence[tirx.Expr]) -> TensorLoad:
    """Load another element of the same buffer."""
    return tirx.BufferLoad(like.source, list(indices))


def _is_first(found: Inside, around: Sequence[tirx.For], end: tirx.Expr | None) -> tirx.Expr:
    """Whether no step of these channels made anything before this one.

    With warm-up stripes, that is the step that has the first row; `end` is then one past its last trip over rows.
    """
    at = found.at
    loops = [step for step in around if step.kind != tirx.ForKind.PARALLEL]
    others = [step.loop_var for step in loops if not uses(found.begin(at.block), step.loop_var)]
    if end is None:
        return tirx.all(*(variable == 0 for variable in others)) if others else tirx.const(True, "bool")
    begins, first = found.begin(at.row), at.band[0] if at.band else ZERO
    images = [variable == 0 for variable in others if not uses(begins, variable)]
    return tirx.all(*images, begins <= first, first < begins + end * at.rows)


def take_out(
    func: tirx.PrimFunc,
    rings: Mapping[str, int],
    starts: Mapping[str, int],
    streams: bool,
    added: Mapping[int, str],
) -> tirx.PrimFunc:
    """Make one call of every step that is marked (no blocks, rings not yet folded, buffers not yet flat).

    Args:
        func: the function.
        rings: the slabs of each ring, by its name.
        starts: the slab of its tensor at which each ring begins to count.
        streams: whether there are warm-up stripes.
        added: the cache of the tensor that each conv adds, by its number.
    """

    def visit(statement: tirx.Stmt, loops: tuple[tirx.For, ...]) -> tirx.Stmt:
        if isinstance(statement, tirx.For) and STEP in statement.annotations:
            found = inside_of(statement)
            return _called(found, step_call(found, loops, rings, starts, streams, added))
        if isinstance(statement, tirx.For):
            return around(statement, visit(statement.body, (*loops, statement)))
        if isinstance(statement, tirx.SeqStmt):
            return as_one([visit(step, loops) for step in statement.seq])
        if isinstance(statement, tirx.IfThenElse):
            return tirx.IfThenElse(statement.condition, visit(statement.then_case, loops), statement.else_case)
        return statement

    return func.with_body(visit(func.body, ()))


def fill(module: tvm.IRModule, emit: Callable[[ConvStep], tirx.Stmt]) -> tvm.IRModule:
    """Put what a kernel emits in the place of every step's call (flat buffers)."""

    def filled(loop: tirx.For) -> tirx.Stmt:
        step = marks.read(CALL, ConvStep, loop.body)
        return _labelled(emit(step), {**loop.annotations, LOOP_NAME: "step"}) if step else loop

    main = module["main"]
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, filled)))})


def _called(found: Inside, call: tirx.Stmt) -> tirx.Stmt:
    """Return a step as a call inside of a loop of one trip, which carries the part's name, where it makes anything."""
    part = _labelled(call, {PART: convolution(found.at.number).name})
    enabled = [guard for guard in found.guards if not uses(guard, *found.loops)]
    return tirx.IfThenElse(tirx.all(*enabled), part, None) if enabled else part


def _labelled(statement: tirx.Stmt, notes: Mapping[str, str]) -> tirx.Stmt:
    """Put a loop of one trip around a statement, which carries notes."""
    return tirx.For(tirx.Var("step", "int32"), 0, 1, tirx.ForKind.SERIAL, statement, annotations=dict(notes))


Moved = Callable[[RowConv, Mapping[str, tirx.Buffer]], KernelConv]
"""From a conv and arguments to the conv as its kernel emits it."""

IN_ROWS: dict[Kernel, Moved] = {"hvx": hvx_conv, "plain": scalar_conv}

LaysOut = Callable[[Chain, int, NestLayouts, Plan, Mapping[str, Array]], dict[str, Array]]
"""From a chain, the index of a conv, layouts, plan and packed arguments to the constants that its kernel loads."""

LAID_OUT_BY: dict[Kernel, LaysOut] = {"hvx": hvx_constants, "hmx": engine_constants}
"""The kernels that have constants of channels laid out once; the others read biases, multipliers and shifts."""
