"""A kernel that checks every index of every access while it runs; only the guards keep indices inside.

TVM 0.27's own `tirx.instrument_bound_checkers` puts no check into a kernel for buffers as they are declared now,
and its `s_tir.analysis.OOBChecker` looks at loops without the guards around them.
"""

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.compute import chain_module
from hexconv.lower import stages
from hexconv.lower.lowered import Lowering
from hexconv.lower.pipeline import BLOCK_STAGES, through
from hexconv.schedule import stripe
from hexconv.spec import Case


def checked_module(case: Case) -> tvm.IRModule:
    """A case's loops over compacted caches of full rank, an assertion for every index before every store.

    The clamps of `hexconv.tir.guards` are left out: they would hide a guard that lets an index through.
    """
    scheduled = stripe(chain_module(case.chain), case.chain, case.plan)
    before = BLOCK_STAGES[: BLOCK_STAGES.index(stages.keep_indices_inside)]
    unblocked = through(before, Lowering(scheduled.module, scheduled)).module
    return with_checks(stages.with_arithmetic(without_queues(unblocked)))


def without_queues(module: tvm.IRModule) -> tvm.IRModule:
    """Every copy where it starts: its indices are those of the loops, whenever it is performed."""
    body = tvm_ffi.structural_map(
        module["main"].body, (tirx.Evaluate, lambda _call: tirx.Evaluate(tirx.const(0, "int32")))
    )
    return tvm.IRModule({"main": module["main"].with_body(body)})


def with_checks(module: tvm.IRModule) -> tvm.IRModule:
    """before: `a[i] = b[j]`      after: `assert 0 <= i < n; assert 0 <= j < m; a[i] = b[j]`"""
    body = tvm_ffi.structural_map(module["main"].body, (tirx.BufferStore, _checked))
    return tvm.IRModule({"main": module["main"].with_body(body)})


def _checked(store: tirx.BufferStore) -> tirx.Stmt:
    loads: list[tvm.ir.TensorLoad] = []
    tvm_ffi.structural_walk(store.value, (tvm.ir.TensorLoad, loads.append))
    accesses = [(store.buffer, store.indices), *((load.source, load.indices) for load in loads)]
    checks = [
        tirx.AssertStmt(
            # TVM's signature names the kind first; its constructor takes it second
            tirx.all(_first(index) >= 0, _last(index) < size),
            tvm.ir.StringImm("IndexError"),
            [tvm.ir.StringImm(f"{buffer.name} axis {axis}")],
        )
        for buffer, indices in accesses
        for axis, (index, size) in enumerate(zip(indices, buffer.shape, strict=True))
    ]
    return tirx.SeqStmt([*checks, store])


def _first(index: tirx.Expr) -> tirx.Expr:
    """The least element that a vector's index names (its lanes go up), or the index."""
    return index.base if isinstance(index, tirx.Ramp) else index


def _last(index: tirx.Expr) -> tirx.Expr:
    """The greatest element."""
    return index.base + (index.lanes - 1) * index.stride if isinstance(index, tirx.Ramp) else index
