"""A kernel's loops without what they compute: every index of every load and store, asserted while they run here.

What a kernel computes needs the vector instructions of its machine; where it reads and writes doesn't. So the loops,
the conditions and the names of integers are kept, values are dropped, and any machine can tell whether an index leaves
its buffer. Caches are looked at in memory of their own, before some of them come to share it.
"""

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx

from hexconv.lower import lower_case, queues
from hexconv.lower.hvx import instructions
from hexconv.spec import Case
from hexconv.tir.statements import REGISTER

NO_ACCESS = (tirx.AllocBuffer, tirx.DeclBuffer, tirx.Evaluate)
"""Statements that take memory, name it, or call what has no index."""
VECTOR_LANES = 32
NOTHING = tirx.Evaluate(tirx.const(0, "int32"))


def indices_outside(case: Case) -> int:
    """How many times an index of a case's kernel leaves its buffer in one run."""
    found = tirx.decl_buffer((1,), "int64", "outside")
    checks = _Checks(found)
    statements = checks.of(instructions.revealed(lower_case(case).unmerged["main"].body))
    assert checks.accesses, "a kernel that touches no memory is no kernel"
    main = tirx.PrimFunc([found], _one(statements)).with_attr("global_symbol", "main")
    built = tvm.compile(tvm.IRModule({"main": main}), target="llvm")
    counted = tvm.runtime.tensor(np.zeros(1, np.int64))
    built["main"](counted)
    return int(counted.numpy()[0])


class _Checks:
    """Statements to statements that count indices outside, in `found`."""

    def __init__(self, found: tirx.Buffer) -> None:
        self.found = found
        self.accesses = 0

    def of(self, statement: tirx.Stmt) -> list[tirx.Stmt]:
        """What is left of a statement."""
        if isinstance(statement, tirx.SeqStmt):
            return [left for part in statement.seq for left in self.of(part)]
        if isinstance(statement, tirx.For):
            body = self.of(statement.body)
            loop = (statement.loop_var, statement.min, statement.extent, tirx.ForKind.SERIAL)
            return [*self._loads(statement.extent), tirx.For(*loop, _one(body))] if body else []
        if isinstance(statement, tirx.IfThenElse):
            branches = (statement.then_case, statement.else_case)
            then, otherwise = (self.of(branch) if branch is not None else [] for branch in branches)
            if not then and not otherwise:
                return []
            return [tirx.IfThenElse(statement.condition, _one(then or [NOTHING]), _one(otherwise or [NOTHING]))]
        if isinstance(statement, tirx.Bind):
            return [*self._loads(statement.value), *([statement] if _is_index(statement.value) else [])]
        if isinstance(statement, tirx.BufferStore):
            checks = [*self._loads(statement.value), *self._access(statement.buffer, statement.indices)]
            return [*checks, statement] if _keeps_indices(statement.buffer) else checks
        if isinstance(statement, tirx.AllocBuffer) and _keeps_indices(statement.buffer):
            return [statement]
        if queues.queue_of(statement, queues.COPY) is not None:
            return self._copied(statement.value)
        assert isinstance(statement, NO_ACCESS), f"{type(statement).__name__} is not looked into"
        return []

    def _copied(self, call: tvm.ir.Call) -> list[tirx.Stmt]:
        """A copy of rows: its first and its last byte on both sides, and its rows from none on."""
        rows, *steps = queues.rows_of(call) or [tirx.const(1, "int32"), 0, 0]
        size_bytes, there = call.args[3], [rows > 0, call.args[3] > 0]
        checks = []
        for place, step in zip(call.args[1:3], steps, strict=True):
            [load] = _inside(place, tvm.ir.TensorLoad)
            itemsize = tvm.DataType(load.source.dtype).itemsize
            first = load.indices[0]
            last = first + tirx.floordiv((rows - 1) * step + size_bytes - 1, tirx.const(itemsize, "int32"))
            checks += [check for index in (first, last) for check in self._access(load.source, [index])]
        return [tirx.IfThenElse(tirx.all(*there), _one(checks), None)]

    def _loads(self, value: tirx.Expr) -> list[tirx.Stmt]:
        loads = _inside(value, tvm.ir.TensorLoad)
        return [check for load in loads for check in self._access(load.source, load.indices)]

    def _access(self, buffer: tirx.Buffer, indices: list[tirx.Expr]) -> list[tirx.Stmt]:
        self.accesses += 1
        outside = [
            tirx.any(first < 0, last >= size)
            for (first, last), size in zip(map(_ends, indices), buffer.shape, strict=True)
        ]
        one_more = tirx.BufferLoad(self.found, [0]) + tirx.const(1, "int64")
        return [tirx.IfThenElse(where, tirx.BufferStore(self.found, one_more, [0]), None) for where in outside]


def _ends(index: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
    """The least and the greatest element that an index names; lanes of a vector go up."""
    if isinstance(index, tirx.Ramp):
        return index.base, index.base + (index.lanes - 1) * index.stride
    return index, index


def _is_index(value: tirx.Expr) -> bool:
    """Whether a value can be part of an index: an integer that comes neither from memory nor from a vector."""
    from_machine = [call for call in _inside(value, tvm.ir.Call) if "llvm" in call.op.name]
    from_memory = [load for load in _inside(value, tvm.ir.TensorLoad) if not _keeps_indices(load.source)]
    return str(value.ty) == "int32" and not from_machine and not from_memory


def _keeps_indices(buffer: tirx.Buffer) -> bool:
    """Whether a buffer is a register for a few row numbers; others of that name are vectors of sums."""
    return buffer.name.startswith(REGISTER) and str(buffer.dtype) == "int32" and int(buffer.shape[0]) < VECTOR_LANES


def _inside(value: tirx.Expr, kind: type) -> list:
    found: list = []
    tvm_ffi.structural_walk(value, (kind, found.append))
    return found


def _one(statements: list[tirx.Stmt]) -> tirx.Stmt:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)
