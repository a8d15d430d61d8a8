"""The statements of a PrimFunc in program order (TVM 0.27's Python has no visitor of its own)."""

from collections.abc import Iterator

from tvm import s_tir, tirx

CHILDREN = ("body", "then_case", "else_case")


def statements(statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
    """`statement` and all statements inside of it, outer ones first."""
    yield statement
    for child in _children(statement):
        yield from statements(child)


def _children(statement: tirx.Stmt) -> Iterator[tirx.Stmt]:
    """The statements directly inside of one."""
    if isinstance(statement, tirx.SeqStmt):
        yield from statement.seq
    elif isinstance(statement, s_tir.SBlockRealize):
        yield statement.block
    else:
        yield from (child for name in CHILDREN if (child := getattr(statement, name, None)) is not None)
