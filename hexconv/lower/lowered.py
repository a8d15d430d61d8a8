"""Lower a schedule to the module that is printed and built, and list the memory that TVM gave to its caches."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from hexconv.lower import passes
from hexconv.lower.activations import with_arithmetic
from hexconv.lower.buffers import cache_name
from hexconv.lower.names import drop_annotations, rename_buffers, rename_loops, stores
from hexconv.lower.rings import in_phase
from hexconv.lower.transfers import start_copies
from hexconv.schedule.trees import all_of, buffers_in


@dataclass(frozen=True)
class Cache:
    """A staged buffer after CompactBufferAllocation, rings folded.

    Attributes:
        name: `input_cache`, `filter1_cache`, `intermediate1`, `accumulator1`, `output_cache`.
        scope: TVM's storage scope.
        dtype: the type of an element.
        shape: the compacted shape.
    """

    name: str
    scope: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements allocated."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes allocated."""
        return self.elements * tvm.DataType(self.dtype).itemsize


@dataclass(frozen=True)
class Allocation:
    """One physical allocation after StorageRewrite, with the caches that take turns in it.

    Attributes:
        name: the name of the first cache that it held.
        holds: the names of all caches in it, in the order of their first use.
        scope: TVM's storage scope.
        dtype: the type of an element.
        elements: elements allocated, in all copies.
        copies: the number of equal copies, one for each thread.
    """

    name: str
    holds: tuple[str, ...]
    scope: str
    dtype: str
    elements: int
    copies: int = 1

    @property
    def bytes(self) -> int:
        """The number of bytes allocated."""
        return self.elements * tvm.DataType(self.dtype).itemsize


@dataclass(frozen=True)
class Lowered:
    """A lowered schedule, as `lower` returns it.

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
    shaped = rename_loops(passes.unblock(in_phase(passes.compact(sch.mod))))
    flat = passes.flatten(shaped)
    targets = [cache_name(store.buffer) for store in stores(flat)]
    unmerged = rename_buffers(flat, targets)
    merged = passes.merge(unmerged)
    named = rename_buffers(merged, targets)
    labelled = with_arithmetic(_copied(named))
    return Lowered(
        module=drop_annotations(labelled),
        labelled=labelled,
        shaped=drop_annotations(with_arithmetic(shaped)),
        unmerged=drop_annotations(with_arithmetic(_copied(unmerged))),
        caches=tuple(sorted(caches_of(shaped), key=lambda cache: targets.index(cache.name))),
        allocations=tuple(_allocations(named, targets)),
    )


def _copied(flat: tvm.IRModule) -> tvm.IRModule:
    """Let the copy engine copy; when a loop is taken apart, each part gets a variable of its own."""
    return tirx.transform.ConvertSSA()(start_copies(flat))


def caches_of(shaped: tvm.IRModule) -> tuple[Cache, ...]:
    """The buffers that a module allocates, before they share memory."""
    return tuple(
        Cache(cache_name(buffer), buffer.scope(), str(buffer.dtype), tuple(int(size) for size in buffer.shape))
        for buffer in buffers_in(shaped["main"].body)
    )


def _allocations(merged: tvm.IRModule, targets: list[str]) -> Iterator[Allocation]:
    """Yield the allocations of a merged module; `targets` names the cache that each store writes."""
    body = merged["main"].body
    root = {view.buffer: view.data.args[0] for view in all_of(body, tirx.DeclBuffer)}
    stored = [root.get(store.buffer, store.buffer) for store in stores(merged)]
    for buffer in buffers_in(body):
        holds = tuple(dict.fromkeys(name for name, home in zip(targets, stored, strict=True) if home.same_as(buffer)))
        yield Allocation(holds[0], holds, buffer.scope(), str(buffer.dtype), prod(int(size) for size in buffer.shape))
