"""Split a copy loop at the blocks of what it copies from or to, aligned or not.

before:  for c in range(70): cache[c] = input[c // 32 * 512 + c % 32]
after:   for block in range(2):
             for c in range(32): cache[block * 32 + c] = input[block * 512 + c]
         for c in range(6): cache[64 + c] = input[1024 + c]

before:  for c in range(trips): cache[c] = input[(first + c) // 8 * 64 + (first + c) % 8]
    after:   for block in range((first % 8 + trips + 7) // 8):
                 for c in range(end - begin):
                     cache[block * 8 + begin + c - first % 8] = input[(first // 8 + block) * 64 + begin + c]

`begin` and `end` are the elements of a block that the loop's trips reach.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.copy_runs import ZERO, Run
from hexconv.tir.trees import all_of, uses, with_values

Division = tirx.FloorDiv | tirx.FloorMod


def across_blocks(statement: tirx.Stmt) -> tirx.Stmt:
    """Let the indices of a copy divide nothing where all blocks lie one behind the other.

    before:  input[(row - 5) // 8 * 2048 + (row + 3) % 8 * 256]        after:   input[row * 256 - 1280]
    """

    def load(node: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(node.source, [_across_blocks(index) for index in node.indices])

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(node.buffer, node.value, [_across_blocks(index) for index in node.indices])

    return tvm_ffi.structural_map(statement, [(TensorLoad, load), (tirx.BufferStore, store)])


def _across_blocks(index: tirx.Expr) -> tirx.Expr:
    """Let a quotient in an index divide the same sum that a remainder there does; TVM then joins the two."""
    remainders = all_of(index, tirx.FloorMod)

    def of_remainder(quotient: tirx.FloorDiv) -> tirx.Expr:
        for other in remainders:
            apart = Analyzer().simplify(quotient.a - other.a)
            if tvm_ffi.structural_equal(quotient.b, other.b) and _is_multiple(apart, other.b):
                return tirx.floordiv(other.a, other.b) + tirx.floordiv(apart, other.b)
        return quotient

    return Analyzer().simplify(tvm_ffi.structural_map(index, (tirx.FloorDiv, of_remainder))) if remainders else index


def _is_multiple(value: tirx.Expr, size: tirx.Expr) -> bool:
    return Analyzer().can_prove_equal(tirx.floormod(value, size), ZERO)


def in_parts_of_blocks(loop: tirx.For) -> list[tirx.For]:
    """Return one loop that does a loop's trips block by block; none where no block is found.

    Args:
        loop: a loop over a body without conditions on its variable, in flat buffers.
    """
    for node in divided(loop):
        first, size = _begin(node, loop.loop_var), int(node.b)
        if all(_is_in_step(other, first, size, loop.loop_var) for other in _divisions(loop)):
            blocks = Blocks(loop, first, size)
            return [blocks.outer(blocks.inner(blocks.inside(loop.body)))]
    return []


def divided(loop: tirx.For) -> list[tirx.FloorDiv]:
    """Return the divisions by a number, of what grows with a loop's variable, where its body loads and stores."""
    quotients = (node for node in _divisions(loop) if isinstance(node, tirx.FloorDiv))
    return [node for node in quotients if isinstance(node.b, tirx.IntImm)]


def _divisions(loop: tirx.For) -> list[Division]:
    """Return all quotients and remainders of what a loop's variable is in, where its body loads and stores."""
    indices = [index for access in all_of(loop.body, TensorLoad, tirx.BufferStore) for index in access.indices]
    return [node for index in indices for node in _divisions_of(index, loop.loop_var)]


def _divisions_of(index: tirx.Expr, variable: tirx.Var) -> list[Division]:
    """Return all quotients and remainders in an index of what a variable is in."""
    return [node for node in all_of(index, tirx.FloorDiv, tirx.FloorMod) if uses(node.a, variable)]


def _begin(node: Division, variable: tirx.Var) -> tirx.Expr:
    """Return what is divided in a loop's first trip, if it grows by one from trip to trip."""
    return Analyzer().simplify(node.a - variable)


def _is_in_step(node: Division, first: tirx.Expr, size: int, variable: tirx.Var) -> bool:
    """Whether a division finds the blocks of a size that the trips from element `first` on reach."""
    begin = _begin(node, variable)
    if uses(begin, variable) or not isinstance(node.b, tirx.IntImm) or int(node.b) != size:
        return False
    return _is_multiple(begin - first, node.b)


def in_parts_of_a_ring(run: Run, loop: tirx.For) -> tuple[Run, tirx.For, tirx.For] | None:
    """Split a loop around a run where a ring that it copies to or from begins anew.

    before:  for h in range(18): copy a row to ring[(first + h) % 20 * C]
    after:   for block in range((first % 20 + 18 + 19) // 20):
                 for h in range(end - begin): copy a row to ring[(begin + h) * C]

    Returns:
        The run, a loop in which its places are at equal distances, and the loop over blocks around it; None where no
        ring is found.
    """
    numbers = [*(index for _, index in run.places), run.elements, run.count]
    divisions = [node for number in numbers for node in _divisions_of(number, loop.loop_var)]
    for node in divisions:
        if not isinstance(node, tirx.FloorMod) or not isinstance(node.b, tirx.IntImm):
            continue
        first, size = _begin(node, loop.loop_var), int(node.b)
        if all(_is_in_step(other, first, size, loop.loop_var) for other in divisions):
            blocks = Blocks(loop, first, size)
            return run.changed(blocks.inside), blocks.inner(loop.body), blocks.outer(loop.body)
    return None


@dataclass(frozen=True)
class Blocks:
    """The blocks of a size that the trips of a loop reach.

    Attributes:
        loop: the loop.
        first: the element that its first trip is at.
        size: the elements of a block.
    """

    loop: tirx.For
    first: tirx.Expr
    size: int

    @cached_property
    def block(self) -> tirx.Var:
        """The variable of the loop over blocks."""
        return tirx.Var("block", "int32")

    @cached_property
    def variable(self) -> tirx.Var:
        """The variable of the loop over the trips of a block."""
        return tirx.Var(self.loop.loop_var.name, "int32")

    @cached_property
    def before(self) -> tirx.Expr:
        """The elements of the first block that no trip reaches."""
        return Analyzer().simplify(tirx.floormod(self.first, self.size))

    @property
    def begin(self) -> tirx.Expr:
        """The element of a block that the first of its trips is at."""
        return Analyzer().simplify(tirx.max(self.before - self.block * self.size, 0))

    def inside(self, node: Any) -> Any:
        """Return a statement or an expression of the loop for a trip of a block."""
        element = tirx.Var("element", "int32")

        def in_block(division: Division) -> tirx.Expr:
            if not uses(division.a, self.loop.loop_var):
                return division
            first = _begin(division, self.loop.loop_var)
            return element if isinstance(division, tirx.FloorMod) else self.block + tirx.floordiv(first, self.size)

        node = tvm_ffi.structural_map(node, [(tirx.FloorDiv, in_block), (tirx.FloorMod, in_block)])
        node = with_values(node, {self.loop.loop_var: self.block * self.size + element - self.before})
        return with_values(node, {element: self.begin + self.variable})

    def inner(self, body: tirx.Stmt) -> tirx.For:
        """Return the loop over the trips of a block."""
        end = tirx.min(self.before + self.loop.extent - self.block * self.size, self.size)
        return tirx.For(self.variable, 0, Analyzer().simplify(end - self.begin), self.loop.kind, body)

    def outer(self, body: tirx.Stmt) -> tirx.For:
        """Return the loop over blocks."""
        blocks = tirx.floordiv(self.before + self.loop.extent + self.size - 1, self.size)
        return tirx.For(self.block, 0, Analyzer().simplify(blocks), self.loop.kind, body)


def in_blocks(loop: tirx.For) -> list[tirx.For]:
    """Return the loops that do a loop's trips block by block; none where it crosses no block.

    Args:
        loop: a loop over a body without conditions on its variable, in flat buffers.
    """
    trips = int(loop.extent) if isinstance(loop.extent, tirx.IntImm) else None
    if trips is None or not (size := next((size for size in _blocks_of(loop) if size < trips), 0)):
        return in_parts_of_blocks(loop)
    return list(_split(loop, size, trips))


def _blocks_of(loop: tirx.For) -> Iterator[int]:
    """Yield the sizes of the blocks that indices divide a loop's variable by, where the first trip begins a block."""
    for node in divided(loop):
        size, rest = int(node.b), with_values(node.a, {loop.loop_var: ZERO})
        step, known = Analyzer().simplify(node.a - rest), Analyzer().modular_set(rest)
        if step.same_as(loop.loop_var) and int(known.coeff) % size == int(known.base) % size == 0:
            yield size


def _split(loop: tirx.For, size: int, trips: int) -> Iterator[tirx.For]:
    """Yield the loop over whole blocks, and that behind them if there is one."""
    blocks, left = divmod(trips, size)
    block, analyzer = tirx.Var("block", "int32"), Analyzer()
    analyzer.bind(block, Range(0, blocks))
    yield tirx.For(block, 0, blocks, tirx.ForKind.SERIAL, _part(loop, size, block * size, analyzer))
    if left:
        yield _part(loop, left, tirx.const(blocks * size, "int32"), Analyzer())


def _part(loop: tirx.For, trips: int, first: tirx.Expr, analyzer: Analyzer) -> tirx.For:
    """Return `trips` trips of a loop from `first` on, its indices simplified with what is known of the variables."""
    variable = tirx.Var(loop.loop_var.name, "int32")
    analyzer.bind(variable, Range(0, trips))

    def simple(access: Any) -> Any:
        indices = [analyzer.simplify(index) for index in access.indices]
        if isinstance(access, TensorLoad):
            return tirx.BufferLoad(access.source, indices)
        return tirx.BufferStore(access.buffer, access.value, indices)

    moved = with_values(loop.body, {loop.loop_var: variable + first})
    moved = tvm_ffi.structural_map(moved, [(TensorLoad, simple), (tirx.BufferStore, simple)])
    return tirx.For(variable, 0, trips, loop.kind, moved)
