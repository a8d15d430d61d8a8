"""Give variables the names that a reader knows: loops those of the schedule, buffers those of their caches.

Only names change: a variable is replaced, at its definition and at every use, by one of the same type.
"""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.schedule.loops import LOOP_NAME

Renamed = dict[tirx.Var, tirx.Var]


def rename_loops(module: tvm.IRModule) -> tvm.IRModule:
    """Name every loop that carries the annotation of `hexconv.schedule.loops.name_loops` by it."""
    renamed: Renamed = {}

    def note(loop: tirx.For) -> None:
        if name := loop.annotations.get(LOOP_NAME):
            renamed[loop.loop_var] = tirx.Var(str(name), loop.loop_var.ty)

    tvm_ffi.structural_walk(module["main"].body, (tirx.For, note))
    return _replaced(module, renamed)


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
    found: list[tirx.BufferStore] = []
    tvm_ffi.structural_walk(module["main"].body, (tirx.BufferStore, found.append))
    return found


def _replaced(module: tvm.IRModule, renamed: Renamed) -> tvm.IRModule:
    """Replace some of a module's variables."""
    body = tvm_ffi.structural_map(module["main"].body, (tirx.Var, lambda variable: renamed.get(variable, variable)))
    return _with_body(module, body)


def _with_body(module: tvm.IRModule, body: tirx.Stmt) -> tvm.IRModule:
    """Return the same function around another body."""
    return tvm.IRModule({"main": module["main"].with_body(body)})
