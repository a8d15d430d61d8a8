"""Two opinions on every cache, side by side: the closed form and TVM's allocation."""

from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.analyze.documented import documented_elements
from hexconv.analyze.footprint import PredictedCache
from hexconv.analyze.predicted import cache_footprints, shared_allocations
from hexconv.analyze.sharing import PredictedAllocation
from hexconv.lower import Allocation, Cache, Lowered
from hexconv.spec import Case


@dataclass(frozen=True)
class CacheUsage:
    """One cache.

    Attributes:
        name: of the cache.
        role: input, filter, intermediate, accumulator or output; in HVX kernels also offset and window.
        scope: TVM's storage scope.
        dtype: of an element.
        shape: as TVM compacted it.
        elements: that TVM allocated.
        bytes: that TVM allocated.
        predicted_elements: of the closed form.
    """

    name: str
    role: str
    scope: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    bytes: int
    predicted_elements: int


@dataclass(frozen=True)
class AllocationUsage:
    """One physical allocation.

    Attributes:
        name: of the first cache in it.
        holds: the caches that take turns in it.
        elements: that TVM allocated.
        bytes: that TVM allocated.
        predicted_elements: of the closed form; 0 where it has no such allocation.
        documented_elements: of the source documents, where they have this case.
    """

    name: str
    holds: tuple[str, ...]
    elements: int
    bytes: int
    predicted_elements: int
    documented_elements: int | None


@dataclass(frozen=True)
class Usage:
    """All caches and allocations of one case.

    Attributes:
        case: its name.
        caches: after compaction.
        allocations: after merging.
        peak_bytes: of all allocations together.
        agrees: whether closed form and TVM say the same of every cache and of every allocation.
    """

    case: str
    caches: tuple[CacheUsage, ...]
    allocations: tuple[AllocationUsage, ...]
    peak_bytes: int
    agrees: bool


def cache_usage(case: Case, lowered: Lowered) -> Usage:
    """Compare the closed form of a case with what TVM allocated for it."""
    predicted = {cache.name: cache for cache in cache_footprints(case.chain, case.plan)}
    shared = {memory.holds: memory for memory in shared_allocations(case.chain, case.plan)}
    return Usage(
        case=case.name,
        caches=tuple(_cache(cache, predicted[cache.name]) for cache in lowered.caches),
        allocations=tuple(_allocation(case, memory, predicted, shared) for memory in lowered.allocations),
        peak_bytes=sum(memory.bytes for memory in lowered.allocations),
        agrees=_same_caches(lowered.caches, predicted) and _same_memory(lowered.allocations, shared),
    )


def _cache(cache: Cache, predicted: PredictedCache) -> CacheUsage:
    """One cache, both ways."""
    known = (cache.name, predicted.role, cache.scope, cache.dtype, cache.shape)
    return CacheUsage(*known, cache.elements, cache.bytes, predicted.elements)


def _allocation(
    case: Case,
    memory: Allocation,
    predicted: dict[str, PredictedCache],
    shared: dict[tuple[str, ...], PredictedAllocation],
) -> AllocationUsage:
    """One allocation, both ways, and as documented."""
    mine = shared.get(memory.holds)
    documented = documented_elements(case.chain, case.plan).get(predicted[memory.name].role)
    known = (memory.name, memory.holds, memory.elements, memory.bytes)
    return AllocationUsage(*known, mine.elements if mine else 0, documented)


def _same_caches(caches: Sequence[Cache], predicted: dict[str, PredictedCache]) -> bool:
    """Name, shape and dtype of every cache."""
    tvm = {(cache.name, cache.shape, cache.dtype) for cache in caches}
    return tvm == {(cache.name, cache.shape, cache.dtype) for cache in predicted.values()}


def _same_memory(memories: Sequence[Allocation], shared: dict[tuple[str, ...], PredictedAllocation]) -> bool:
    """Who is in every allocation, and its bytes."""
    tvm = {memory.holds: memory.bytes for memory in memories}
    return tvm == {holds: memory.bytes for holds, memory in shared.items()}
