"""Make loops and sequences."""

from collections.abc import Sequence

from tvm import tirx


def bound(loop: tirx.For) -> tirx.Stmt:
    """Name the extent of a loop unless it is a constant: TVM's parser rewrites the extents of loops that it reads."""
    if isinstance(loop.extent, (tirx.IntImm, tirx.Var)):
        return loop
    trips = tirx.Var("trips", "int32")
    named = tirx.For(loop.loop_var, loop.min, trips, loop.kind, loop.body, annotations=loop.annotations)
    return tirx.SeqStmt([tirx.Bind(trips, loop.extent), named])


def around(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    """Return a loop around another body."""
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, annotations=loop.annotations)


def as_one(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Join statements into one."""
    return tirx.SeqStmt(list(statements)) if len(statements) > 1 else statements[0]
