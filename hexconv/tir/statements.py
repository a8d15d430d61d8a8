"""Build a sequence of TIR statements: each call adds a named value, a loop with its body, or another statement."""

from collections.abc import Callable
from typing import Any

from tvm import tirx

from hexconv.tir.loops import LOOP_NAME, PART

Number = Any
"""A Python integer or a TIR expression of int32; arithmetic on both gives the same result."""


REGISTER = "register_"
"""The prefix of the names of buffers that stand for registers, not for memory."""


def int32(value: int) -> tirx.IntImm:
    """Return an int32 constant, the type of all addresses."""
    return tirx.IntImm("int32", value)


def vector_register(block: "Block", name: str) -> tirx.Buffer:
    """Allocate a buffer of one HVX vector.

    A buffer of less than 1 KiB stays on the stack in TVM's lowering (`kMaxStackAlloca`), so LLVM can promote it.
    """
    return block.allocate(tirx.decl_buffer((32,), "int32", REGISTER + name, data_alignment=128))


def scalar_register(name: str, dtype: str) -> tirx.Buffer:
    """Declare a buffer of one number, which LLVM keeps in a register.

    TVM's script writes a buffer of one element as a scalar, which its parser reads as a buffer of another scope, and
    TVM's lowering takes that off the stack. With an alignment of its own and no layout it stays what it is.
    """
    return tirx.decl_buffer((1,), dtype, REGISTER + name, data_alignment=8, layout=None)


class Block:
    """Statements of one loop body, appended in program order."""

    def __init__(self) -> None:
        self._statements: list[tirx.Stmt] = []

    def bind(self, name: str, value: Number, dtype: str = "int32") -> tirx.Var:
        """Compute a value once: `name = value`."""
        variable = tirx.Var(name, dtype)
        self._statements.append(tirx.Bind(variable, int32(value) if isinstance(value, int) else value))
        return variable

    def allocate(self, buffer: tirx.Buffer) -> tirx.Buffer:
        """Allocate memory that lives to the end of this block."""
        self._statements.append(tirx.AllocBuffer(buffer))
        return buffer

    def view(self, buffer: tirx.Buffer, elements: int, dtype: str) -> tirx.Buffer:
        """Return a flat view of an argument's memory, as elements of another type.

        Use it only for an argument that is read through one view alone, or written through one view alone: LLVM
        takes two views for different memory.
        """
        name = f"{buffer.name}_flat"
        flat = tirx.decl_buffer((elements,), dtype, name, data=buffer.data, data_alignment=128, layout=None)
        self._statements.append(tirx.DeclBuffer(flat, data=buffer.data))
        return flat

    def store(self, buffer: tirx.Buffer, index: Number, value: tirx.Expr) -> None:
        """`buffer[index] = value`."""
        self._statements.append(tirx.BufferStore(buffer, value, [index]))

    def run(self, call: tirx.Expr) -> None:
        """Call a function for what it does."""
        self._statements.append(tirx.Evaluate(call))

    def loop(
        self,
        name: str,
        extent: Number,
        body: Callable[["Block", tirx.Expr], None],
        part: str = "",
        kind: tirx.ForKind = tirx.ForKind.SERIAL,
    ) -> None:
        """Append `for name in range(extent): body`. A loop of one trip becomes its body; an empty loop is left out.

        `part` says which part of the chain the loop is, `kind` whether its trips run one after the other.
        """
        if isinstance(extent, int) and extent <= 1:
            if extent == 1:
                body(self, int32(0))
            return
        if not isinstance(extent, (int, tirx.Var)):
            # a name of its own: TVM's parser rewrites the extents of loops that it reads
            extent = self.bind(f"{name}s", extent)
        variable, inner = tirx.Var(name, "int32"), Block()
        body(inner, variable)
        notes = {PART: part, LOOP_NAME: name} if part else None
        if inner._statements:
            self._statements.append(tirx.For(variable, 0, extent, kind, inner.statement(), annotations=notes))

    def when(self, condition: tirx.Expr, body: Callable[["Block"], None]) -> None:
        """`if condition: body`."""
        inner = Block()
        body(inner)
        self._statements.append(tirx.IfThenElse(condition, inner.statement(), None))

    def statement(self) -> tirx.Stmt:
        """Return all statements so far as one statement."""
        return self._statements[0] if len(self._statements) == 1 else tirx.SeqStmt(self._statements)
