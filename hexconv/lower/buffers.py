"""Names of loops and buffers: what a buffer holds, read from its name alone, and the names that a reader knows.

A cache is a TE tensor, an argument a parameter, scratch a declared buffer; each is named where it is made
(`hexconv.spec.names`). TVM's passes replace every one of them by new buffers, and hand nothing on but the name.

Only names change: a variable is replaced, at its definition and at every use, by one of the same type.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx

from hexconv.spec.vectors import UNCACHED
from hexconv.tir.loops import LOOP_NAME
from hexconv.tir.statements import REGISTER
from hexconv.tir.trees import all_of, buffers_in, with_values

STAGED = ("filter", "output")
"""Roles of arguments that TVM stages; the input is staged by an operation of its own."""
SCOPE_MARK = "_global"
"""What TVM puts between the name of a tensor and the scope that it is staged in."""


@dataclass(frozen=True)
class BufferContents:
    """What a buffer holds.

    Attributes:
        role: `input`, `filter`, `intermediate`, `output`, or a kernel's own word: `accumulator`, `planes`, `bias`, ...
        number: the number of the conv, from 1; 0 where the buffer belongs to none.
    """

    role: str
    number: int = 0

    @property
    def reader(self) -> int:
        """The number of the conv that reads it."""
        return self.number + 1 if self.role in ("input", "intermediate") else self.number

    @property
    def is_copied(self) -> bool:
        """Whether the buffer is an argument that has a cache, or such a cache."""
        return self.role not in UNCACHED


def contents_of(buffer: tirx.Var) -> BufferContents:
    """Return what an argument, a cache or scratch holds.

    >>> [contents_of(tirx.Var(name, "handle")) for name in ("filter12", "intermediate3")]
    [BufferContents(role='filter', number=12), BufferContents(role='intermediate', number=3)]
    """
    return _read(cache_name(buffer))


def cache_name(buffer: tirx.Var) -> str:
    """Return the name of the cache that a buffer of TVM holds.

    TVM's `cache_read`, `cache_write` and `set_scope` all add the scope to a name; a staged argument becomes its cache.

    >>> names = [f"{name}_global.vtcm" for name in ("filter1", "output", "output_cache", "intermediate1")]
    >>> [cache_name(tirx.Var(name, "handle")) for name in names]
    ['filter1_cache', 'output_cache', 'output_cache', 'intermediate1']
    """
    stem, scope, _ = str(buffer.name).partition(SCOPE_MARK)
    is_argument = scope and not stem.endswith("_cache")
    return f"{stem}_cache" if is_argument and _read(stem).role in STAGED else stem


def argument(func: tirx.PrimFunc, role: str) -> tirx.Var:
    """Return the argument of a function that has a role, the first one of several."""
    return next(each for each in func.params if contents_of(each).role == role)


def convs_of(func: tirx.PrimFunc) -> int:
    """Count the convs of the chain that a function computes: each but the last makes an intermediate."""
    made = [held.number for held in map(contents_of, buffers_in(func.body)) if held.role == "intermediate"]
    return max(made, default=0) + 1


def is_register(buffer: tirx.Var) -> bool:
    """Return whether a buffer stands for a register, not for memory."""
    return str(buffer.name).startswith(REGISTER)


def _read(name: str) -> BufferContents:
    """Read a name that `hexconv.spec.names` gave."""
    found = re.fullmatch(r"([a-z]+)(\d*)(?:_cache)?", name)
    return BufferContents(found[1], int(found[2] or 0)) if found else BufferContents(name)


def rename_loops(module: tvm.IRModule) -> tvm.IRModule:
    """Name every loop that carries the annotation of `hexconv.tir.loops.name_loops` by it."""
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
