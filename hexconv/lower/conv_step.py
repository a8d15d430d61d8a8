"""One step of a conv as its kernel sees it: rows, channels, operands, results, and rows of padding around them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.kernel.layouts import RowUnit
from hexconv.lower.buffers import contents_of
from hexconv.spec import Extents
from hexconv.spec.names import numbered
from hexconv.spec.vectors import OF_CHANNELS
from hexconv.tir.statements import Block


@dataclass(frozen=True)
class InCache:
    """A place in a cache, by a load of the element at which its row 0 begins.

    Attributes:
        at: the load, at the step's first channel.
    """

    at: TensorLoad

    @property
    def buffer(self) -> tirx.Var:
        """The cache."""
        return self.at.source

    @property
    def origin(self) -> tirx.Expr:
        """The element at which row 0 begins, once the cache is flat."""
        return self.at.indices[0]


@dataclass(frozen=True)
class Rows(InCache):
    """The rows of a cache that a step reads or writes.

    Attributes:
        first: the row of the cache that the step writes or reads first; in the output, its slab (block of 8 rows).
        ring: the rows of a ring buffer, after which the cache begins anew; 0 where the cache is no ring.
    """

    first: tirx.Expr
    ring: int

    def behind(self, elements: tirx.Expr) -> "Rows":
        """Return the same rows from a later channel on."""
        return replace(self, at=tirx.BufferLoad(self.buffer, [self.origin + elements]))


@dataclass(frozen=True)
class Kept(InCache):
    """Where the columns of a tensor begin that a step keeps for the next strip."""

    @property
    def tensor(self) -> int:
        """The number of the tensor; 0 is the input."""
        return contents_of(self.at.source).number


def in_ring(rows: Rows, index: tirx.Expr) -> tirx.Expr:
    """Return the row of the cache that holds a row of a step."""
    return tirx.floormod(index, tirx.const(rows.ring, "int32")) if rows.ring else index


@dataclass(frozen=True)
class ConvStep:
    """One step of a conv; its values are expressions of the loops around it. It stands in TIR as a mark.

    Attributes:
        number: the number of the conv, from 1.
        image: the image of the batch that it makes some of.
        row: the first row of the whole stored result that the step may make.
        begin: the first row, or block of rows, that it makes, counted from `row`.
        end: one past the last row, or block of rows, that it makes, counted from `row`.
        block: the first block of 32 output channels.
        most_blocks: the most blocks of the target that a step of this conv has: of as many channels as lie together.
        is_first: whether no step of these channels came before.
        operands: the source and the filter that it multiplies; None where all that it makes is padding.
        target: the rows that it makes.
        band: the rows of the whole stored result that its thread makes: the first, one past the last; None where it
            makes all.
        kept: where it keeps columns for the next strip, for each tensor of which it does.
        addend: the rows of the tensor that it adds, from their first column and channel on; None if it adds none.
    """

    number: int
    image: tirx.Expr
    row: tirx.Expr
    begin: tirx.Expr
    end: tirx.Expr
    block: tirx.Expr
    most_blocks: int
    is_first: tirx.Expr
    operands: "StepOperands | None"
    target: Rows
    band: tuple[tirx.Expr, tirx.Expr] | None = None
    kept: tuple[Kept, ...] = ()
    addend: Rows | None = None

    def rows(self, unit: int) -> tuple[tirx.Expr, tirx.Expr]:
        """Return the rows that it makes in its band, counted from `row`: the first, and one past the last.

        Args:
            unit: the rows that one step along its axis of rows has: 8 where a cache lies in blocks of 8 rows, else 1.
        """
        first, last = self.begin * unit, self.end * unit
        if self.band is None:
            return first, last
        return tirx.max(first, self.band[0] - self.row), tirx.min(last, self.band[1] - self.row)

    @property
    def of_padding(self) -> "ConvStep":
        """Return the same step where all that it makes is padding."""
        return replace(self, operands=None)


@dataclass(frozen=True)
class StepOperands:
    """The operands of a step's products.

    Attributes:
        source: the rows that it reads.
        weights: a load of the element of the filter cache at which the step's channels begin.
    """

    source: Rows
    weights: TensorLoad

    @property
    def filter(self) -> tirx.Var:
        """The filter cache."""
        return self.weights.source

    @property
    def filter_origin(self) -> tirx.Expr:
        """The element at which the step's channels begin, once the cache is flat."""
        return self.weights.indices[0]


class KernelConv(Protocol):
    """A conv as its kernel sees it; it emits the statements that fill the innermost part of the nest."""

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The scratch buffers that the kernel needs beside the caches of the nest."""
        ...

    @property
    def constants(self) -> list[tirx.Buffer] | None:
        """The arguments that it has in the place of its bias, multipliers and shifts; None where it reads these."""
        ...

    def emit(self, step: ConvStep) -> tirx.Stmt:
        """Emit the statements of one step."""
        ...


def with_constants(main: tirx.PrimFunc, convs: Sequence[Sequence[tirx.Var] | None]) -> list[tirx.Var]:
    """Return the arguments of a function, with constants of convs in the place of what these are made of.

    Args:
        main: the function, whose output comes last.
        convs: the constants of each conv; None where it reads its bias, multipliers and shifts.
    """
    own = {number: constants for number, constants in enumerate(convs, 1) if constants is not None}
    replaced = {numbered(what, number) for number in own for what in OF_CHANNELS}
    *kept, output = [argument for argument in main.params if argument.name not in replaced]
    return [*kept, *(buffer for constants in own.values() for buffer in constants), output]


def each_row(
    block: Block,
    step: ConvStep,
    target: Extents,
    made_as: RowUnit,
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
