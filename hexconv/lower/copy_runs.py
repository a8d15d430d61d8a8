"""Runs of a copy or fill: elements side by side, in one row or in many at equal distances; and who moves them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import Range
from tvm.sym import Analyzer

from hexconv.tir.trees import as_one, uses, with_values

ZERO, ONE = tirx.const(0, "int32"), tirx.const(1, "int32")

Place = tuple[tirx.Var, tirx.Expr]
"""A flat buffer, and an element of it."""


@dataclass(frozen=True)
class Run:
    """Elements that lie side by side in both buffers, `count` times at equal distances.

    Attributes:
        target: the buffer and the first element to copy to.
        source: the buffer and the first element to copy from.
        elements: how many elements lie side by side.
        count: how many rows of them there are.
        steps: elements from one row to the next, at the target and at the source.
        flips: whether the first bit of each element, a byte, is flipped on the way.
    """

    target: Place
    source: Place
    elements: tirx.Expr
    count: tirx.Expr = ONE
    steps: tuple[int, int] = (0, 0)
    flips: bool = False

    @property
    def places(self) -> tuple[Place, Place]:
        """Where the first row begins at the target and at the source."""
        return self.target, self.source

    def at(self, variable: tirx.Var, trip: tirx.Expr) -> "Run":
        """Return this run in one trip of a loop."""
        return self.changed(lambda number: Analyzer().simplify(with_values(number, {variable: trip})))

    def changed(self, change: Callable[[tirx.Expr], tirx.Expr]) -> "Run":
        """Return this run with other expressions for its places, its elements and its rows."""
        target, source = ((buffer, change(first)) for buffer, first in self.places)
        return replace(self, target=target, source=source, elements=change(self.elements), count=change(self.count))

    def in_loop(self, loop: tirx.For) -> "Run | None":
        """Join this run and the loop around it into one run; None unless all trips are alike."""
        if uses(self.elements, loop.loop_var) or uses(self.count, loop.loop_var):
            return None
        first = replace(self, target=_begin(self.target, loop.loop_var), source=_begin(self.source, loop.loop_var))
        if is_one(loop.extent):
            return first
        target, source = (_step(place[1], loop) for place in (self.target, self.source))
        if target is None or source is None:
            return None
        is_dense = isinstance(self.elements, tirx.IntImm) and int(self.elements) == target == source
        if is_dense and is_one(self.count):
            return replace(first, elements=Analyzer().simplify(self.elements * loop.extent))
        if is_dense and isinstance(loop.extent, tirx.IntImm):
            return joined(replace(first, elements=self.elements * int(loop.extent)))
        if is_one(self.count):
            return replace(first, count=loop.extent, steps=(target, source))
        times = self.count if isinstance(self.count, tirx.IntImm) else None
        goes_on = times is not None and (target, source) == tuple(int(times) * step for step in self.steps)
        return replace(first, count=self.count * loop.extent) if goes_on else None


@dataclass(frozen=True)
class Fill:
    """Elements that lie side by side and hold one value.

    Attributes:
        target: the buffer and the first element to fill.
        value: the value of each element.
        elements: the number of elements.
    """

    target: Place
    value: tirx.IntImm
    elements: int

    def in_loop(self, loop: tirx.For) -> "Fill | None":
        """Join this fill and the loop around it into one; None unless each trip goes on where the one before ended."""
        goes_on = is_one(loop.extent) or _step(self.target[1], loop) == self.elements
        if not isinstance(loop.extent, tirx.IntImm) or not goes_on:
            return None
        return replace(self, target=_begin(self.target, loop.loop_var), elements=self.elements * int(loop.extent))

    def at(self, variable: tirx.Var, trip: int) -> "Fill":
        """Return this fill in one trip of a loop."""
        buffer, first = self.target
        there = with_values(first, {variable: tirx.const(trip, "int32")})
        return replace(self, target=(buffer, Analyzer().simplify(there)))

    def beside(self, other: "Fill") -> "Fill | None":
        """Return this fill and another of the same value as one; None unless one begins where the other one ends."""
        if not self.target[0].same_as(other.target[0]) or int(self.value) != int(other.value):
            return None
        apart = Analyzer().simplify(other.target[1] - self.target[1])
        if not isinstance(apart, tirx.IntImm) or int(apart) not in (self.elements, -other.elements):
            return None
        return replace(self if int(apart) > 0 else other, elements=self.elements + other.elements)

    def goes_on_with(self, other: "Fill", variable: tirx.Var) -> bool:
        """Whether the fill `other` of the next trip begins where this one ends, with the same value."""
        if not self.target[0].same_as(other.target[0]) or int(self.value) != int(other.value):
            return False
        begin = with_values(other.target[1], {variable: variable + 1})
        gap = Analyzer().simplify(begin - self.target[1] - self.elements)
        return isinstance(gap, tirx.IntImm) and int(gap) == 0


def joined(run: Run) -> Run:
    """Join rows that lie side by side into one."""
    elements = int(Analyzer().simplify(run.elements))
    if run.steps != (elements, elements):
        return replace(run, elements=tirx.const(elements, "int32"))
    return replace(run, elements=Analyzer().simplify(elements * run.count), count=ONE, steps=(0, 0))


def _begin(place: Place, variable: tirx.Var) -> Place:
    return place[0], Analyzer().simplify(with_values(place[1], {variable: ZERO}))


def _step(index: tirx.Expr, loop: tirx.For) -> int | None:
    """Return by how much an index grows from trip to trip of a loop; None if that changes."""
    variable, analyzer = loop.loop_var, Analyzer()
    if isinstance(loop.extent, tirx.IntImm) and int(loop.extent) > 1:
        analyzer.bind(variable, Range(0, int(loop.extent) - 1))  # the trips that another one follows
    simple = analyzer.simplify(with_values(index, {variable: variable + 1}) - index)
    return int(simple) if isinstance(simple, tirx.IntImm) else None


def is_one(value: Any) -> bool:
    """Whether an expression is the number 1."""
    return isinstance(value, tirx.IntImm) and int(value) == 1


def itemsize(buffer: tirx.Var) -> int:
    """Count the bytes of an element."""
    return tvm.DataType(buffer.dtype).itemsize


Filler = Callable[[Fill], tirx.Stmt]


@dataclass(frozen=True)
class Either:
    """Pieces of which the device takes some or the others.

    Attributes:
        condition: whether it takes the former.
        then: the pieces where the condition holds.
        otherwise: the pieces where it doesn't.
    """

    condition: tirx.Expr
    then: "tuple[Piece, ...]"
    otherwise: "tuple[Piece, ...]"


Piece = Run | Fill | Either | tirx.Stmt


@dataclass(frozen=True)
class Mover:
    """Emits the copies and fills of a part.

    Attributes:
        copy: turns a run into a statement.
        fill: turns a fill into a statement.
        ranges: the ranges of the loops around the part.
        has_alternatives: whether rows that may lie side by side, or of which there may be one alone, have code of their
            own for that case, in which they are joined.
        fills_ahead: whether a row is filled as a whole before runs write over some of it: vectors are fewer stores.
    """

    copy: Callable[[Run], tirx.Stmt]
    fill: Filler
    ranges: Analyzer
    has_alternatives: bool = False
    fills_ahead: bool = False

    def statement(self, piece: Piece) -> tirx.Stmt:
        """Return the statement for a piece that gets no longer."""
        if isinstance(piece, Run):
            return self.copy(piece)
        if isinstance(piece, Either):
            then, otherwise = (as_one([*map(self.statement, pieces)]) for pieces in (piece.then, piece.otherwise))
            return tirx.IfThenElse(piece.condition, then, otherwise)
        return self.fill(piece) if isinstance(piece, Fill) else piece
