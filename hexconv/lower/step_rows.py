"""Emit the rows of a step: rows of padding above the image, rows with elements, rows of padding below."""

from collections.abc import Callable

from tvm import tirx

from hexconv.lower.conv_step import ConvStep
from hexconv.schedule.block import Block
from hexconv.spec import Extents
from hexconv.spec.extents import ROW_BLOCK


def each_row(
    block: Block,
    step: ConvStep,
    target: Extents,
    is_last: bool,
    padding: Callable[[Block, tirx.Expr], None],
    made: Callable[[Block, tirx.Expr, tirx.Expr], None],
) -> None:
    """Emit all rows of a step, which are counted from its slab on.

    Args:
        block: the block to emit into.
        step: the step of a conv.
        target: the stored extents of the tensor that it makes.
        is_last: whether that tensor is the output, whose slabs are 8 rows.
        padding: emits a row without elements.
        made: emits rows with elements, given the first one and their number.
    """
    unit = ROW_BLOCK if is_last else 1
    slab = step.slab * unit
    top, bottom = target.valid_rows
    first, last = step.begin * unit, step.end * unit
    if step.band:
        first, last = tirx.max(first, step.band[0] - slab), tirx.min(last, step.band[1] - slab)
    begin, end = block.bind("begin", first), block.bind("end", last)
    first_row = block.bind("first_row", tirx.max(begin, top - slab)) if top else begin
    last_row = block.bind("last_row", tirx.min(end, bottom - slab))
    if top:
        above = block.bind("above", tirx.min(first_row, end))
        block.loop("padding", tirx.max(above - begin, 0), lambda at, index: padding(at, at.bind("y", index + begin)))
    if step.operands:
        made(block, first_row, tirx.max(last_row - first_row, 0))
    if is_last or bottom < target.rows:
        below = block.bind("below", tirx.max(last_row, begin))
        block.loop("padding", tirx.max(end - below, 0), lambda at, index: padding(at, at.bind("y", index + below)))
