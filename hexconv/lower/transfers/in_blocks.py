"""Split a loop at the blocks of what it copies from, so that inside of a block its elements lie at equal distances.

before:  for c in range(70): cache[c] = input[c // 32 * 512 + c % 32]
after:   for block in range(2):
             for c in range(32): cache[block * 32 + c] = input[block * 512 + c]
         for c in range(6): cache[64 + c] = input[1024 + c]
"""

from collections.abc import Iterator
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.transfers.run import ZERO, at_value, uses


def in_blocks(loop: tirx.For) -> list[tirx.For]:
    """Return the loops that do a loop's trips block by block; none where it crosses no block, or at unknown trips.

    Args:
        loop: a loop over a body without conditions on its variable, in flat buffers.
    """
    if not isinstance(loop.extent, tirx.IntImm):
        return []
    trips = int(loop.extent)
    for size, first in _blocks_of(loop):
        head = min(-first % size, trips)
        if trips > head + size or head not in (0, trips):
            return list(_split(loop, head, size, trips))
    return []


def _blocks_of(loop: tirx.For) -> Iterator[tuple[int, int]]:
    """Yield the sizes of blocks that loads divide the loop's variable by, and where in its block the first trip is."""
    found: list[tirx.FloorDiv] = []

    def visit(load: TensorLoad) -> None:
        for index in load.indices:
            tvm_ffi.structural_walk(index, (tirx.FloorDiv, found.append))

    tvm_ffi.structural_walk(loop.body, (TensorLoad, visit))
    for node in found:
        if not uses(node.a, loop.loop_var) or not isinstance(node.b, tirx.IntImm):
            continue
        size, rest = int(node.b), at_value(node.a, loop.loop_var, ZERO)
        step = Analyzer().simplify(node.a - rest)
        known = Analyzer().modular_set(rest)
        if step.same_as(loop.loop_var) and int(known.coeff) % size == 0:
            yield size, int(known.base) % size


def _split(loop: tirx.For, head: int, size: int, trips: int) -> Iterator[tirx.For]:
    """Yield the loops before the first whole block, over whole blocks, and behind them; those that have a trip."""
    blocks, left = divmod(trips - head, size)
    if head:
        yield _part(loop, head, ZERO, loop.body)
    if blocks:
        block = tirx.Var("block", "int32")
        inner = _part(loop, size, head + block * size, loop.body, (block, blocks))
        yield inner if blocks == 1 else tirx.For(block, 0, blocks, tirx.ForKind.SERIAL, inner)
    if left:
        yield _part(loop, left, tirx.const(head + blocks * size, "int32"), loop.body)


def _part(
    loop: tirx.For, trips: int, first: tirx.Expr, body: tirx.Stmt, around: tuple[tirx.Var, int] | None = None
) -> tirx.For:
    """Return `trips` trips of a loop from `first` on, its indices simplified with what is known of the variables."""
    variable, analyzer = tirx.Var(loop.loop_var.name, "int32"), Analyzer()
    analyzer.bind(variable, Range(0, trips))
    if around:
        analyzer.bind(around[0], Range(0, around[1]))
        first = first if around[1] > 1 else at_value(first, around[0], ZERO)

    def simple(access: Any) -> Any:
        indices = [analyzer.simplify(index) for index in access.indices]
        if isinstance(access, TensorLoad):
            return tirx.BufferLoad(access.source, indices)
        return tirx.BufferStore(access.buffer, access.value, indices)

    moved = at_value(body, loop.loop_var, variable + first)
    moved = tvm_ffi.structural_map(moved, [(TensorLoad, simple), (tirx.BufferStore, simple)])
    return tirx.For(variable, 0, trips, loop.kind, moved)
