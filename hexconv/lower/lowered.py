"""A lowered schedule: the module that is printed and built, and the memory that TVM gave to its caches."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule

from hexconv.lower import passes
from hexconv.lower.dma import copy_by_dma
from hexconv.lower.names import drop_annotations, rename_buffers, rename_loops, stores


@dataclass(frozen=True)
class Cache:
    """A staged buffer after CompactBufferAllocation, rings folded.

    Attributes:
        name: `input_cache`, `filter1_cache`, `intermediate1`, `accumulator1`, `output_cache`.
        scope: TVM's storage scope.
        dtype: of an element.
        shape: the compacted shape.
    """

    name: str
    scope: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Elements allocated."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes allocated."""
        return self.elements * tvm.DataType(self.dtype).itemsize


@dataclass(frozen=True)
class Allocation:
    """One physical allocation after StorageRewrite, with the caches that take turns in it.

    Attributes:
        name: of the first cache that it held.
        holds: names of all caches in it, in the order of their first use.
        scope: TVM's storage scope.
        dtype: of an element.
        elements: elements allocated.
    """

    name: str
    holds: tuple[str, ...]
    scope: str
    dtype: str
    elements: int

    @property
    def bytes(self) -> int:
        """Bytes allocated."""
        return self.elements * tvm.DataType(self.dtype).itemsize


@dataclass(frozen=True)
class Lowered:
    """What `lower` made of a schedule.

    Attributes:
        module: plain loops over flat buffers, caches merged; what is built and what a `.tir` file parses back to.
        labelled: the same with the parts of the chain as loop annotations, for the printer.
        shaped: the same before buffers become flat and share memory: what TVM's OOBChecker is asked about.
        unmerged: the same as `module` with every cache in memory of its own.
        caches: compacted, in the order in which they are first written.
        allocations: physical, in the order in which they are allocated.
    """

    module: tvm.IRModule
    labelled: tvm.IRModule
    shaped: tvm.IRModule
    unmerged: tvm.IRModule
    caches: tuple[Cache, ...]
    allocations: tuple[Allocation, ...]


def lower(sch: Schedule) -> Lowered:
    """Lower a scheduled chain."""
    shaped = rename_loops(passes.unblock(passes.compact(sch.mod)))
    flat = passes.flatten(shaped)
    targets = [cache_name(store.buffer.name) for store in stores(flat)]
    unmerged = rename_buffers(flat, targets)
    merged = passes.merge(unmerged)
    named = rename_buffers(merged, targets)
    labelled = copy_by_dma(named)
    return Lowered(
        module=drop_annotations(labelled),
        labelled=labelled,
        shaped=drop_annotations(shaped),
        unmerged=drop_annotations(copy_by_dma(unmerged)),
        caches=tuple(sorted(caches_of(shaped), key=lambda cache: targets.index(cache.name))),
        allocations=tuple(_allocations(named, targets)),
    )


def cache_name(buffer: str) -> str:
    """The cache that a buffer holds.

    `cache_read`, `cache_write` and `set_scope` all add the scope to a name; a staged argument becomes its cache.

    >>> [cache_name(f"{name}_global.vtcm") for name in ("filter1", "output", "input_cache", "intermediate1")]
    ['filter1_cache', 'output_cache', 'input_cache', 'intermediate1']
    """
    stem, scope, _ = buffer.partition("_global")
    return f"{stem}_cache" if scope and stem.startswith(("filter", "output")) else stem


def caches_of(shaped: tvm.IRModule) -> tuple[Cache, ...]:
    """The buffers that a module allocates, before they share memory."""
    buffers: list[tirx.Var] = []
    tvm_ffi.structural_walk(shaped["main"].body, (tirx.AllocBuffer, lambda node: buffers.append(node.buffer)))
    return tuple(
        Cache(cache_name(buffer.name), buffer.scope(), str(buffer.dtype), tuple(int(size) for size in buffer.shape))
        for buffer in buffers
    )


def _allocations(merged: tvm.IRModule, targets: list[str]) -> Iterator[Allocation]:
    """The allocations of a merged module; `targets` names the cache that each store writes."""
    root: dict[tirx.Var, tirx.Var] = {}
    allocated: list[tirx.Var] = []
    aliases = (tirx.DeclBuffer, lambda view: root.update({view.buffer: view.data.args[0]}))
    owners = (tirx.AllocBuffer, lambda node: allocated.append(node.buffer))
    tvm_ffi.structural_walk(merged["main"].body, [aliases, owners])
    stored = [root.get(store.buffer, store.buffer) for store in stores(merged)]
    for buffer in allocated:
        holds = tuple(dict.fromkeys(name for name, home in zip(targets, stored, strict=True) if home.same_as(buffer)))
        yield Allocation(holds[0], holds, buffer.scope(), str(buffer.dtype), prod(int(size) for size in buffer.shape))
