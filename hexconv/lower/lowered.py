"""What lowering returns: the module in several shapes, its caches, its allocations; and a nest between two stages."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import tvm
from tvm import tirx

from hexconv.lower.buffers import cache_name, stores
from hexconv.lower.row_nests import RowNest
from hexconv.schedule.stream import Scheduled
from hexconv.tir.trees import all_of, buffers_in


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
    """One physical allocation after StorageRewrite, with the caches that share it.

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


@dataclass(frozen=True)
class Lowering:
    """A nest between two stages of its lowering.

    Attributes:
        module: the module so far.
        scheduled: what its schedule says beside the module: rings, warm-up stripes, whether copies overlap.
        rows: what kernels of rows need to know; None in a nest of blocks.
        kept: the names of the caches that keep columns for later strips.
        converted: the numbers of the convs whose results the matrix engine makes, so that their sums have no cache.
        threads: how many threads share the rows of tiles of a step of the matrix engine.
        starts: the slab of its tensor at which each ring begins to count, by its name, once it is compacted.
        shaped: the module before buffers become flat.
        targets: the cache that each store writes, in program order, once buffers are flat.
        unmerged: the module before caches share memory.
        merged: the module whose caches share memory, before its copies are started.
    """

    module: tvm.IRModule
    scheduled: Scheduled
    rows: RowNest | None = None
    kept: Sequence[str] = ()
    converted: Collection[int] = ()
    threads: int = 1
    starts: Mapping[str, int] = field(default_factory=dict[str, int])
    shaped: tvm.IRModule | None = None
    targets: Sequence[str] = ()
    unmerged: tvm.IRModule | None = None
    merged: tvm.IRModule | None = None

    @property
    def main(self) -> tirx.PrimFunc:
        """The function of the module."""
        return self.module["main"]

    @property
    def row_nest(self) -> RowNest:
        """What kernels of rows need to know."""
        assert self.rows, "a stage of a nest of rows"
        return self.rows

    def to(self, changed: tvm.IRModule | tirx.PrimFunc) -> "Lowering":
        """Return the same nest with another module, or function."""
        return replace(self, module=tvm.IRModule({"main": changed}) if isinstance(changed, tirx.PrimFunc) else changed)


def caches_of(shaped: tvm.IRModule) -> tuple[Cache, ...]:
    """The buffers that a module allocates, before they share memory."""
    return tuple(
        Cache(cache_name(buffer), buffer.scope(), str(buffer.dtype), tuple(int(size) for size in buffer.shape))
        for buffer in buffers_in(shaped["main"].body)
    )


def allocations_of(merged: tvm.IRModule, targets: Sequence[str]) -> Iterator[Allocation]:
    """Yield the allocations of a merged module; `targets` names the cache that each store writes."""
    body = merged["main"].body
    root = {view.buffer: view.data.args[0] for view in all_of(body, tirx.DeclBuffer)}
    stored = [root.get(store.buffer, store.buffer) for store in stores(merged)]
    for buffer in buffers_in(body):
        holds = tuple(dict.fromkeys(name for name, home in zip(targets, stored, strict=True) if home.same_as(buffer)))
        yield Allocation(holds[0], holds, buffer.scope(), str(buffer.dtype), prod(int(size) for size in buffer.shape))
