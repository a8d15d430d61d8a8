"""Write one step of a conv as a call, and read it back: between both, TVM's passes keep its arguments right.

    hexconv_step(conv, image, row, begin, end, block, most blocks, is first, limits, band, keeps, kept,
                 target, source, filter[..])

A band is two arguments or none; what is kept, a load of the element where it begins for each tensor. Targets and
sources are three each: a load of the element where they begin, the first row, and the rows of a ring.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.lower.buffers import held_by
from hexconv.lower.conv_marks import is_call
from hexconv.lower.conv_step import ConvStep, Kept, Rows, StepOperands
from hexconv.lower.ranges import ZERO
from hexconv.lower.step_inside import Inside
from hexconv.schedule.trees import uses

CALL = "hexconv_step"


@dataclass(frozen=True)
class Ring:
    """A ring buffer: its number of slabs, and the slab of its tensor that its first slab is; 0 slabs mean no ring."""

    slabs: int
    start: int


NO_RING = Ring(0, 0)


def step_call(found: Inside, around: Sequence[tirx.For], rings: Mapping[str, Ring], streams: bool) -> tirx.Stmt:
    """Write a step as a call.

    Args:
        found: the loops of the step.
        around: the loops around the step, the outermost first.
        rings: the ring buffers by name.
        streams: whether stripes run in.
    """
    at, (begin, end) = found.at, found.trips("ho_inner")
    is_first = _is_first(found, around, end if streams else None)
    band = at.band or ()
    image, row, block = (found.begin(place) for place in (at.image, at.row, at.block))
    arguments = [at.number, image, row, begin, end, block, found.extent("ko_inner"), is_first]
    arguments += [len(band), *band]
    arguments += _kept_of(found)
    arguments += _rows_of(found, tirx.BufferLoad(found.result.buffer, found.result.indices), rings)
    if operands := found.operands:
        source, filter = operands
        arguments += _rows_of(found, source, rings)
        arguments += [tirx.BufferLoad(filter.source, [found.begin(index) for index in filter.indices])]
    return tirx.Evaluate(tirx.call_extern("int32", CALL, *arguments))


def read_step(statement: tirx.Stmt) -> ConvStep | None:
    """Read a step from its call; None for a statement that is no such call. Buffers are flat by now."""
    if not isinstance(statement, tirx.Evaluate) or not is_call(statement.value, CALL):
        return None
    call: Any = statement.value
    number, image, row, begin, end, block, most, is_first, limits, *rest = call.args[1:]
    band, (keeps, *places) = rest[: int(limits)], rest[int(limits) :]
    kept, places = places[: int(keeps)], places[int(keeps) :]
    target, *source = (
        Rows(load.source, load.indices[0], first, int(ring))
        for load, first, ring in (places[at : at + 3] for at in range(0, len(places) - 2, 3))
    )
    filter = places[-1]
    operands = StepOperands(source[0], filter.source, filter.indices[0]) if source else None
    known = (int(number), image, row, begin, end, block, int(most), is_first, operands, target)
    of_strips = tuple(Kept(held_by(load.source).number, load.source, load.indices[0]) for load in kept)
    return ConvStep(*known, (band[0], band[1]) if band else None, of_strips)


def _is_first(found: Inside, around: Sequence[tirx.For], end: tirx.Expr | None) -> tirx.Expr:
    """Whether no step of these channels made anything before this one.

    Where stripes run in, that is the step that has the first row; `end` is then one past its last trip over rows.
    """
    at = found.at
    loops = [step for step in around if step.kind != tirx.ForKind.PARALLEL]
    others = [step.loop_var for step in loops if not uses(found.begin(at.block), step.loop_var)]
    if end is None:
        return tirx.all(*(variable == 0 for variable in others)) if others else tirx.const(True, "bool")
    begins, first = found.begin(at.row), at.band[0] if at.band else ZERO
    images = [variable == 0 for variable in others if not uses(begins, variable)]
    return tirx.all(*images, begins <= first, first < begins + end * at.rows)


def _kept_of(found: Inside) -> list[Any]:
    """Describe the columns that a step keeps: of how many tensors, and the elements where they begin."""
    loads = [tirx.BufferLoad(load.source, [found.begin(index) for index in load.indices]) for load in found.kept]
    return [len(loads), *loads]


def _rows_of(found: Inside, load: TensorLoad, rings: Mapping[str, Ring]) -> list[Any]:
    """Describe rows of a cache as arguments of a call: the element where they begin, the first row, the ring."""
    ring = rings.get(load.source.name, NO_RING)
    row_0 = tirx.const(-ring.start, "int32")
    origin = [row_0 if axis == 1 else found.begin(index) for axis, index in enumerate(load.indices)]
    return [tirx.BufferLoad(load.source, origin), found.begin(load.indices[1]) + ring.start, ring.slabs]
