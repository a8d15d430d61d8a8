"""The statements of a PrimFunc in program order (TVM 0.27's Python has no visitor of its own)."""

from collections.abc import Callable, Iterator

from tvm import s_tir, tirx

CHILDREN = ("body", "then_case", "else_case")


def statements(statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
    """`statement` and all statements inside of it, outer ones first."""
    yield statement
    for child in _children(statement):
        yield from statements(child)


def map_leaves(statement: tirx.Stmt, change: Callable[[tirx.Stmt], tirx.Stmt]) -> tirx.Stmt:
    """A lowered function's body (no blocks) with `change` applied to every statement that has none inside of it."""
    return _mapped(statement, change, lambda loop: loop)


def map_loops(statement: tirx.Stmt, change: Callable[[tirx.For], tirx.Stmt]) -> tirx.Stmt:
    """A lowered function's body (no blocks) with `change` applied to every loop, inner ones first."""
    return _mapped(statement, lambda leaf: leaf, change)


def with_body(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    """The same loop around another body."""
    bounds = (loop.loop_var, loop.min, loop.extent, loop.kind)
    return tirx.For(*bounds, body, loop.thread_binding, loop.annotations, loop.step)


def _mapped(
    statement: tirx.Stmt, leaf: Callable[[tirx.Stmt], tirx.Stmt], loop: Callable[[tirx.For], tirx.Stmt]
) -> tirx.Stmt:
    """A statement rebuilt from the inside."""
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([_mapped(child, leaf, loop) for child in statement.seq])
    if isinstance(statement, tirx.For):
        return loop(with_body(statement, _mapped(statement.body, leaf, loop)))
    if isinstance(statement, tirx.IfThenElse):
        otherwise = statement.else_case and _mapped(statement.else_case, leaf, loop)
        return tirx.IfThenElse(statement.condition, _mapped(statement.then_case, leaf, loop), otherwise)
    return leaf(statement)


def _children(statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
    """The statements directly inside of one."""
    if isinstance(statement, tirx.SeqStmt):
        yield from statement.seq
    elif isinstance(statement, s_tir.SBlockRealize):
        yield statement.block
    else:
        yield from (child for name in CHILDREN if (child := getattr(statement, name, None)) is not None)
