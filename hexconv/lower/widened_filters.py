"""Widen depthwise filters for the matrix engine by HVX: a weight for each output and tap becomes 32, of which 31 are 0.

    memory   32 bytes a tap: the weight of output o
    cache    8 vectors a tap, of four inputs each: word o holds the weights of output o for these four inputs, and
             output o multiplies input o alone

             vector 0     w0 0 0 0 | 0 w1 0 0 | 0 0 w2 0 | 0 0 0 w3 | 0 0 0 0 | ..
             vector 1     0 0 0 0  | 0 0 0 0  | 0 0 0 0  | 0 0 0 0  | w4 0 0 0 | ..

Two rounds of interleaving a vector with itself give each weight of four taps four times; masks keep it in its place.
"""

from dataclasses import dataclass
from math import prod

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad

from hexconv.kernel.engine import FOUR_BYTES, TAP_BYTES, is_widened
from hexconv.lower.hvx import instructions
from hexconv.lower.hvx.instructions import BYTES, PAIR, VECTOR
from hexconv.lower.rows_of_pixels import as_part, loop_name, touched, value_stored
from hexconv.spec import Chain
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.tir import marks
from hexconv.tir.loops import PART
from hexconv.tir.parts import Does, read_part
from hexconv.tir.statements import Block, Number, int32
from hexconv.tir.trees import all_of, around, with_values

WIDENED = "hexconv_widened_filter"
TAPS_OF_VECTOR = BYTES // CHANNEL_BLOCK
ZERO = int32(0)


@dataclass(frozen=True)
class WidenedFilter:
    """The depthwise filter of a block of 32 channels.

    Attributes:
        weights: its first weight in memory.
        cache: its first byte in its cache.
        taps: its taps.
    """

    weights: TensorLoad
    cache: TensorLoad
    taps: int

    def emit(self) -> tirx.Stmt:
        """Emit HVX code that widens the filter; nothing behind the argument is read."""
        block, (some, rest) = Block(), divmod(self.taps, TAPS_OF_VECTOR)
        begin = block.bind("begin", self.weights.indices[0])
        block.loop("taps", some, lambda at, number: self._widen(at, begin, number * TAPS_OF_VECTOR, TAPS_OF_VECTOR))
        if rest:
            self._widen(block, begin, some * TAPS_OF_VECTOR, rest)
        return block.statement()

    def _widen(self, block: Block, begin: tirx.Expr, first: Number, count: int) -> None:
        """Widen some taps that lie in one vector."""
        last = prod(map(int, self.weights.source.shape)) - BYTES
        place = block.bind("place", begin + first * CHANNEL_BLOCK)
        inside = block.bind("inside", tirx.min(place, int32(last)))
        loaded = instructions.rotated(instructions.load(self.weights.source, inside), place - inside)
        loaded = block.bind("weights", loaded, VECTOR)
        twice = block.bind("twice", instructions.interleaved(loaded, loaded, 1), PAIR)
        halves = [half(twice) for half in (instructions.lower, instructions.upper)]
        pairs = [block.bind("four_times", instructions.interleaved(half, half, 2), PAIR) for half in halves]
        taps = [half(pair) for pair in pairs for half in (instructions.lower, instructions.upper)][:count]
        for number, tap in enumerate(taps):
            for four in range(TAP_BYTES // FOUR_BYTES):
                byte = self.cache.indices[0] + (first + number) * TAP_BYTES + four * FOUR_BYTES
                value = tirx.bitwise_and(tap, instructions.repeated(own_inputs(four)))
                stored = tirx.reinterpret(f"{self.cache.source.dtype}x{BYTES}", value)
                block.store(self.cache.source, instructions.at(byte), stored)


def own_inputs(four: int) -> list[int]:
    """Return the bytes, 255 or 0, of a vector of four inputs in which an output multiplies its own.

    >>> own_inputs(1)[16:24]
    [255, 0, 0, 0, 0, 255, 0, 0]
    """
    outputs, inputs = FOUR_BYTES // CHANNEL_BLOCK, range(BYTES)
    return [255 if byte // outputs == 4 * four + byte % outputs else 0 for byte in inputs]


def mark_widened(main: tirx.PrimFunc, chain: Chain) -> tirx.PrimFunc:
    """Put marks in the place of the loops that widen depthwise filters (no blocks, buffers not yet flat)."""
    depthwise = [number for number in chain.filters if is_widened(chain, number - 1)]

    def visit(loop: tirx.For) -> tirx.Stmt:
        part = read_part(str(loop.annotations.get(PART, "")))
        return _marked(loop) if part.does == Does.READ_FILTER and part.conv in depthwise else loop

    return main.with_body(tvm_ffi.structural_map(main.body, (tirx.For, visit)))


def _marked(statement: tirx.Stmt) -> tirx.Stmt:
    """Replace the loops over the weights of a block of channels."""
    if isinstance(statement, tirx.IfThenElse) and statement.else_case is None:
        return tirx.IfThenElse(statement.condition, _marked(statement.then_case), None)
    if not isinstance(statement, tirx.For):
        return statement
    if loop_name(statement) == "ko":
        return around(statement, _marked(statement.body))
    found = value_stored(statement)
    assert found, "a filter's cache is filled from its argument"
    store, loops, _ = found
    firsts = {loop.loop_var: ZERO for loop in loops}
    (load,) = all_of(store.value, TensorLoad)
    weights, cache = (
        tirx.BufferLoad(buffer, [with_values(index, firsts) for index in indices])
        for buffer, indices in ((load.source, load.indices), (store.buffer, store.indices))
    )
    taps = prod(map(int, load.source.shape[1:-1]))
    mark = marks.written(WIDENED, WidenedFilter(weights, cache, taps))
    return as_part(statement, tirx.SeqStmt([touched(cache), mark]))
