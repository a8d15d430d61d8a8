"""Give variables the names that a reader knows: loops those of the schedule, buffers those of their caches.

Only names change: a variable is replaced, at its definition and at every use, by one of the same type.
"""

from collections.abc import Mapping, Sequence

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.schedule.loops import LOOP_NAME
from hexconv.schedule.trees import all_of, with_values


def rename_loops(module: tvm.IRModule) -> tvm.IRModule:
    """Name every loop that carries the annotation of `hexconv.schedule.loops.name_loops` by it."""
    named = [loop for loop in all_of(module["main"].body, tirx.For) if loop.annotations.get(LOOP_NAME)]
    return _replaced(
        module, {loop.loop_var: tirx.Var(str(loop.annotations[LOOP_NAME]), loop.loop_var.ty) for loop in named}
    )


def rename_buffers(module: tvm.IRModule, names: Sequence[str]) -> tvm.IRModule:
    """Name the buffer of the i-th store, in program order, `names[i]`."""
    buffers = [store.buffer for store in stores(module)]
    renamed = {buffer: tirx.Var(name, buffer.ty) for buffer, name in zip(buffers, names, strict=True)}
    return _replaced(module, {buffer: new for buffer, new in renamed.items() if buffer not in module["main"].params})


def drop_annotations(module: tvm.IRModule) -> tvm.IRModule:
    """Take all annotations of loops away, as in the module that is built."""

    def plain(loop: tirx.For) -> tirx.For:
        return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, loop.body) if loop.annotations else loop

    return _with_body(module, tvm_ffi.structural_map(module["main"].body, (tirx.For, plain)))


def stores(module: tvm.IRModule) -> list[tirx.BufferStore]:
    """List all stores of `main`, in program order."""
    return all_of(module["main"].body, tirx.BufferStore)


def _replaced(module: tvm.IRModule, renamed: Mapping[tirx.Var, tirx.Var]) -> tvm.IRModule:
    """Replace some of a module's variables."""
    return _with_body(module, with_values(module["main"].body, renamed))


def _with_body(module: tvm.IRModule, body: tirx.Stmt) -> tvm.IRModule:
    """Return the same function around another body."""
    return tvm.IRModule({"main": module["main"].with_body(body)})
