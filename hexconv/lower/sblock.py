"""Change one part of a block: TVM's blocks can't be changed, so the block is made anew with all its other parts."""

from collections.abc import Sequence

from tvm import s_tir, tirx


def with_body(block: s_tir.SBlock, body: tirx.Stmt) -> s_tir.SBlock:
    """Return the same block around another body."""
    return _anew(block, body, list(block.alloc_buffers))


def with_allocated(block: s_tir.SBlock, buffers: Sequence[tirx.Var]) -> s_tir.SBlock:
    """Return the same block with other allocations."""
    return _anew(block, block.body, list(buffers))


def _anew(block: s_tir.SBlock, body: tirx.Stmt, allocated: list[tirx.Var]) -> s_tir.SBlock:
    axes = (block.iter_vars, block.reads, block.writes)
    rest = (block.match_buffers, block.annotations)
    return s_tir.SBlock(*axes, block.name_hint, body, block.init, allocated, *rest)
