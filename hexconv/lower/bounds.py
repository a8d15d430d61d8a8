"""Clamp indices so that they can't leave their buffer, whatever the guards around them say.

The guards of a schedule keep every access inside of its buffer; here the indices do so by themselves. Where the loops
alone would let an index leave, it is clamped. No value that is used changes, since the guard lets none of the clamped
ones through, and TVM's OOBChecker (which looks at loops and not at guards) finds nothing. Where TVM can derive a clamp
from a guard, the next simplification takes it away again.

before:  if wo * 8 + wi < 62: ... cache[ho, wo + (wi + rw) // 8, ...]
after:   if wo * 8 + wi < 62: ... cache[ho, min(wo + (wi + rw) // 8, 7), ...]
"""

from collections.abc import Mapping, Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Range, TensorLoad
from tvm.sym import Analyzer


def keep_inside(func: tirx.PrimFunc, ranges: Mapping[tirx.Var, Range] | None = None) -> tirx.PrimFunc:
    """Clamp the indices of a lowered function (no blocks, buffers not yet flat) that its loops alone let out.

    Args:
        func: a lowered function.
        ranges: the ranges of its free variables.
    """
    analyzer = Analyzer()
    for variable, values in (ranges or {}).items():
        analyzer.bind(variable, values)

    def bind(loop: tirx.For) -> None:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def load(node: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(node.source, _inside(node.indices, node.source.shape, analyzer))

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        return tirx.BufferStore(node.buffer, node.value, _inside(node.indices, node.buffer.shape, analyzer))

    tvm_ffi.structural_walk(func.body, (tirx.For, bind))
    return func.with_body(tvm_ffi.structural_map(func.body, [(TensorLoad, load), (tirx.BufferStore, store)]))


def _inside(indices: Sequence[tirx.Expr], shape: Sequence[tirx.Expr], analyzer: Analyzer) -> list[tirx.Expr]:
    """Clamp each index to 0..size-1 where its range is larger."""
    return [_clamped(index, size, analyzer) for index, size in zip(indices, shape, strict=True)]


def _clamped(index: tirx.Expr, size: tirx.Expr, analyzer: Analyzer) -> tirx.Expr:
    """Clamp one index."""
    bound = analyzer.const_int_bound(index)
    index = tirx.max(index, tirx.const(0, "int32")) if bound.min_value < 0 else index
    return tirx.min(index, size - 1) if bound.max_value >= int(size) else index
