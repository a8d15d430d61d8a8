"""Emit the rows of a step: rows of padding above the image, rows with elements, rows of padding below."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel import Forms
from hexconv.lower.conv_step import ConvStep
from hexconv.schedule.block import Block
from hexconv.spec import Extents


@dataclass(frozen=True)
class Made:
    """How the rows that a conv makes are counted.

    Attributes:
        unit: the rows of a slab: 8 where a cache lies in blocks of 8 rows, else 1.
        rows: the rows that are made, those included that fill up the last block.
    """

    unit: int
    rows: int

    @classmethod
    def of(cls, forms: Forms, tensor: int) -> "Made":
        """Count the rows of a tensor."""
        layout = forms.activations[tensor]
        return cls(forms.row_units[tensor], layout.stored_extent("H"))


def each_row(
    block: Block,
    step: ConvStep,
    target: Extents,
    made_as: Made,
    padding: Callable[[Block, tirx.Expr], None],
    made: Callable[[Block, tirx.Expr, tirx.Expr], None],
) -> None:
    """Emit all rows of a step, which are counted from its first one on.

    Args:
        block: the block to emit into.
        step: the step of a conv.
        target: the stored extents of the tensor that it makes.
        made_as: how its rows are counted.
        padding: emits a row without elements.
        made: emits rows with elements, given the first one and their number.
    """
    unit = made_as.unit
    top, bottom = target.valid_rows
    first, last = step.rows(unit)
    begin, end = block.bind("begin", first), block.bind("end", last)
    first_row = block.bind("first_row", tirx.max(begin, top - step.row)) if top else begin
    last_row = block.bind("last_row", tirx.min(end, bottom - step.row))
    if top:
        above = block.bind("above", tirx.min(first_row, end))
        block.loop("padding", tirx.max(above - begin, 0), lambda at, index: padding(at, at.bind("y", index + begin)))
    if step.operands:
        made(block, first_row, tirx.max(last_row - first_row, 0))
    if bottom < made_as.rows:
        below = block.bind("below", tirx.max(last_row, begin))
        block.loop("padding", tirx.max(end - below, 0), lambda at, index: padding(at, at.bind("y", index + below)))
