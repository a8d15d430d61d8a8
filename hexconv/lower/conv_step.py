"""One step of a conv as its kernel gets it: which rows and channels, from where to where."""

from dataclasses import dataclass
from typing import Protocol

from tvm import tirx


@dataclass(frozen=True)
class Rows:
    """Some rows of a cache.

    Attributes:
        buffer: the cache, flat.
        origin: the element at which its row 0 begins, at the first channel that the step is about.
        first: the row of the cache that the step's first row is, or reads first; slabs of the output.
        ring: rows after which the cache begins anew; 0 where it doesn't.
    """

    buffer: tirx.Var
    origin: tirx.Expr
    first: tirx.Expr
    ring: int


def in_ring(rows: Rows, index: tirx.Expr) -> tirx.Expr:
    """The row of the cache at which a row of a step lies."""
    return tirx.floormod(index, tirx.const(rows.ring, "int32")) if rows.ring else index


@dataclass(frozen=True)
class ConvStep:
    """One step of a conv, in expressions of the loops around it.

    Attributes:
        number: of the conv, from 1.
        row: the first row of the whole stored result that the step may make.
        begin: the first row, or of blocks of rows the first block, that it makes, counted from there.
        end: one past the last.
        block: the first block of 32 output channels.
        most_blocks: the most blocks, or groups of them that lie together, that a step of this conv has.
        is_first: whether no step of these channels came before.
        operands: what it multiplies; None where all that it makes is padding.
        target: what it makes.
        band: the rows of the whole stored result that its thread makes: the first, one past the last; None where it
            makes all.
    """

    number: int
    row: tirx.Expr
    begin: tirx.Expr
    end: tirx.Expr
    block: tirx.Expr
    most_blocks: int
    is_first: tirx.Expr
    operands: "StepOperands | None"
    target: Rows
    band: tuple[tirx.Expr, tirx.Expr] | None = None


@dataclass(frozen=True)
class StepOperands:
    """What a step multiplies.

    Attributes:
        source: what it reads.
        filter: the filter cache.
        filter_origin: the element of that where its channels begin.
    """

    source: Rows
    filter: tirx.Var
    filter_origin: tirx.Expr


class KernelConv(Protocol):
    """A conv as its kernel has it: what fills the innermost part of the nest."""

    @property
    def memory(self) -> list[tirx.Buffer]:
        """Scratch, beside the caches of the nest."""
        ...

    def emit(self, step: ConvStep) -> tirx.Stmt:
        """The statements of one step."""
        ...
