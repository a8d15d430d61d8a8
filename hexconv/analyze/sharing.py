"""Which caches share memory: lifetimes from the loop nest, then the rule by which TVM's StorageRewrite reuses memory.

The nest is walked once (`hexconv.analyze.liveness` says when a cache starts and ends), and on the way

- a cache that starts takes, of the memory that its plan puts it into, the smallest free allocation that is large
  enough, else the largest free one of the same dtype (which then grows), if the two sizes are within a factor of 16;
  else it gets an allocation of its own;
- a statement that ends one cache and starts another, element by element, may run in place: same dtype, same size, same
  memory;
- a cache that ends sets its allocation free.

So the filter caches of a chain take turns in one allocation, and the output cache takes the input cache's. The
document's figures are those of the allocations (seed document 003, "Cache Usage": "the input cache is reused").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.cache import DTYPE_BYTES, PredictedCache
from hexconv.analyze.footprint import plain_footprints
from hexconv.analyze.liveness import Statement, statements
from hexconv.spec.places import Role, roles_in_vtcm

MATCH_RANGE = 16
"""A cache takes a free allocation that is at most this many times smaller or larger."""


@dataclass(frozen=True)
class PredictedAllocation:
    """One physical allocation.

    Attributes:
        holds: the names of its caches, in the order of their first use.
        dtype: the type of the first cache.
        bytes: the bytes of the largest cache.
        is_in_vtcm: whether it lies in VTCM.
        copies: how many equal parts it has: one for each thread that has caches of its own.
    """

    holds: tuple[str, ...]
    dtype: str
    bytes: int
    is_in_vtcm: bool
    copies: int = 1

    @property
    def elements(self) -> int:
        """How many elements of `dtype` fit into it."""
        return self.bytes // DTYPE_BYTES[self.dtype]


@dataclass
class _Memory:
    """An allocation that may still grow while the nest is walked."""

    dtype: str
    bytes: int
    is_in_vtcm: bool
    holds: list[str] = field(default_factory=list)


def plain_allocations(planned: PlannedBlocks) -> tuple[PredictedAllocation, ...]:
    """The physical allocations of a planned chain, in the order in which they are made.

    >>> from hexconv.analyze.rolled_blocks import planned_blocks
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> planned = planned_blocks(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> [(a.holds, a.elements) for a in plain_allocations(planned)]
    [(('input_cache', 'output_cache'), 65536), (('intermediate1',), 65536), (('filter1_cache', 'filter2_cache'), 4096)]
    """
    caches = {cache.name: cache for cache in plain_footprints(planned)}
    memories = _Memories(caches, roles_in_vtcm(planned.plan.storage))
    memories.walk(statements(planned))
    return tuple(PredictedAllocation(tuple(m.holds), m.dtype, m.bytes, m.is_in_vtcm) for m in memories.all)


class _Memories:
    """The allocations made so far, and which of them are free."""

    def __init__(self, caches: dict[str, PredictedCache], in_vtcm: frozenset[Role]) -> None:
        self._caches = caches
        self._in_vtcm = in_vtcm
        self._home: dict[str, _Memory] = {}
        self._free: list[_Memory] = []
        self.all: list[_Memory] = []

    def walk(self, steps: Sequence[Statement]) -> None:
        """Start and end caches in program order."""
        for step in steps:
            replaced = {name: source for name in step.starts if (source := self._in_place(step, name))}
            for name in step.starts:
                self._start(name, self._home[replaced[name]] if name in replaced else self._find(self._caches[name]))
            self.walk(step.inside)
            # A stable sort keeps allocations of one size in the order in which they were set free.
            self._free += [self._home[name] for name in step.ends if name not in replaced.values()]
            self._free.sort(key=lambda memory: memory.bytes)

    def _start(self, name: str, memory: _Memory) -> None:
        """Put a cache into a given allocation."""
        memory.bytes = max(memory.bytes, self._caches[name].bytes)
        memory.holds.append(name)
        self._home[name] = memory

    def _in_place(self, step: Statement, name: str) -> str | None:
        """The memory of a cache that ends with this step, if `name` can replace that cache element by element."""
        cache = self._caches[name]
        same = (
            source
            for source in step.ends
            if source in self._home
            and self._home[source].dtype == cache.dtype
            and self._home[source].bytes == cache.bytes
            and self._home[source].is_in_vtcm == self._is_in_vtcm(cache)
        )
        return next(same, None) if step.elementwise else None

    def _is_in_vtcm(self, cache: PredictedCache) -> bool:
        return cache.place in self._in_vtcm

    def _find(self, cache: PredictedCache) -> _Memory:
        """A free allocation by StorageRewrite's rule, or a new one."""
        size, free = cache.bytes, [each for each in self._free if each.is_in_vtcm == self._is_in_vtcm(cache)]
        larger = [memory for memory in free if size <= memory.bytes <= size * MATCH_RANGE]
        smaller = [m for m in reversed(free) if size // MATCH_RANGE <= m.bytes < size and m.dtype == cache.dtype]
        for memory in (*larger, *smaller):
            self._free.remove(memory)
            return memory
        memory = _Memory(cache.dtype, 0, self._is_in_vtcm(cache))
        self.all.append(memory)
        return memory
