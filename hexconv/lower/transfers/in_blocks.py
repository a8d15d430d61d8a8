"""Split a loop at the blocks of what it copies from or to: inside of a block its elements lie at equal distances.

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

from hexconv.lower.transfers.run import ZERO
from hexconv.lower.transfers.unaligned import divided, in_parts_of_blocks
from hexconv.schedule.trees import with_values


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
