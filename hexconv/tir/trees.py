"""Walk, split and rebuild TIR statements, expressions and blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm import s_tir, tirx


def all_of(node: Any, *kinds: type[Any]) -> list[Any]:
    """Find the parts of a statement or an expression that are of some kinds, in program order.

    A part comes after those inside of it.
    """
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (kinds, found.append))
    return found


def buffers_in(body: tirx.Stmt, kind: type[Any] = tirx.AllocBuffer) -> list[tirx.Var]:
    """Find the buffers that a statement allocates, or those that it declares as views."""
    return [node.buffer for node in all_of(body, kind)]


def uses(node: tirx.Stmt | tirx.Expr, *variables: tirx.Var) -> bool:
    """Whether any of some variables occurs in a statement or an expression, which doesn't define it."""
    free = tirx.analysis.undefined_vars(node, [])
    return any(each.same_as(variable) for each in free for variable in variables)


def with_values(node: Any, values: Mapping[tirx.Var, tirx.Expr]) -> Any:
    """Return a statement or an expression at other values of variables."""
    return tvm_ffi.structural_map(node, (tirx.Var, lambda each: values.get(each, each)))


def conjuncts(condition: tirx.Expr) -> list[tirx.Expr]:
    """Split a conjunction into its conditions."""
    return [*conjuncts(condition.a), *conjuncts(condition.b)] if isinstance(condition, tirx.And) else [condition]


def steps_of(body: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements of a sequence; any other statement is its own only one."""
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def as_one(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Join statements into one."""
    return tirx.SeqStmt(list(statements)) if len(statements) > 1 else statements[0]


def around(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    """Return a loop around another body."""
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, annotations=loop.annotations)


def bound(loop: tirx.For) -> tirx.Stmt:
    """Name the extent of a loop unless it is a constant: TVM's parser rewrites the extents of loops that it reads."""
    if isinstance(loop.extent, (tirx.IntImm, tirx.Var)):
        return loop
    trips = tirx.Var("trips", "int32")
    named = tirx.For(loop.loop_var, loop.min, trips, loop.kind, loop.body, annotations=loop.annotations)
    return tirx.SeqStmt([tirx.Bind(trips, loop.extent), named])


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
