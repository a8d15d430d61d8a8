"""The size of every cache, by the closed form and by TVM's allocation; and by a document, if the case states a figure.

A documented figure names a cache, and gives the elements of the allocation that the cache lies in. The source documents
do the same: the size of their input cache is that of the allocation which holds input and output cache in turn. Each of
several caches that share an allocation may have a figure; all are compared with the same allocation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.analyze.cache import PredictedCache
from hexconv.analyze.planned import Planned
from hexconv.analyze.sharing import PredictedAllocation
from hexconv.errors import InputError
from hexconv.lower import Allocation, Cache, Lowered
from hexconv.lower.vtcm import SCOPE
from hexconv.spec import Case, KernelChoice


@dataclass(frozen=True)
class CacheUsage:
    """What the closed form and TVM say of one cache.

    Attributes:
        name: the name of the cache.
        role: `input`, `filter`, `words` (a filter that scalar loads read), `intermediate`, `kept` (columns for the next
            strip), `accumulator` or `output`; or scratch of a kernel: `offset`, `window`, `split`, `scale` or `planes`.
        scope: TVM's storage scope; `global.vtcm` is VTCM.
        dtype: the type of an element.
        shape: the sizes after TVM compacted the cache.
        elements: the elements that TVM allocated.
        bytes: the bytes that TVM allocated.
        predicted_elements: the elements that the closed form predicts.
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
    """What the closed form, TVM and the case say of one physical allocation.

    Attributes:
        name: the name of the first cache in it.
        holds: the caches that take turns in it.
        elements: the elements that TVM allocated.
        bytes: the bytes that TVM allocated.
        predicted_elements: the elements that the closed form predicts; 0 if it has no such allocation.
        documented_elements: the elements that the case documents for one of its caches (a wrong figure comes before a
            right one); None if it documents none.
    """

    name: str
    holds: tuple[str, ...]
    elements: int
    bytes: int
    predicted_elements: int
    documented_elements: int | None


@dataclass(frozen=True)
class Usage:
    """All caches and allocations of one case, with what the closed form and TVM say of them.

    Attributes:
        case: the name of the case.
        caches: the caches after TVM compacted them.
        allocations: the allocations after TVM merged caches that can share one.
        peak_bytes: the bytes of all allocations together.
        forms_agree: whether closed form and TVM say the same of every cache and of every allocation.
        kernels: the kernel that each conv asked for and the one that it got.
    """

    case: str
    caches: tuple[CacheUsage, ...]
    allocations: tuple[AllocationUsage, ...]
    peak_bytes: int
    forms_agree: bool
    kernels: tuple[KernelChoice, ...]

    @property
    def documented_agrees(self) -> bool:
        """Whether every documented figure is what TVM allocated."""
        return all(memory.documented_elements in (None, memory.elements) for memory in self.allocations)

    @property
    def agrees(self) -> bool:
        """Whether all opinions are the same."""
        return self.forms_agree and self.documented_agrees

    @property
    def verdict(self) -> str:
        """How the allocations compare, in words that follow `TVM allocates`."""
        words = "as the closed form predicts" if self.forms_agree else "NOT as the closed form predicts"
        if all(memory.documented_elements is None for memory in self.allocations):
            return words
        return f"{words}, and {'' if self.documented_agrees else 'NOT '}as documented"


def cache_usage(case: Case, lowered: Lowered) -> Usage:
    """Compare the closed form of a case with what TVM allocated for it, and with what the case documents.

    Raises:
        InputError: the case documents a cache that it doesn't have.
    """
    for name, _ in case.documented:
        if name not in (names := [cache.name for cache in lowered.caches]):
            raise InputError.no_such("documented", name, names)
    planned = Planned.of(case)
    predicted = {cache.name: cache for cache in planned.caches}
    shared = {memory.holds: memory for memory in planned.allocations}
    return Usage(
        case=case.name,
        caches=tuple(_cache(cache, predicted[cache.name]) for cache in lowered.caches),
        allocations=tuple(_allocation(memory, shared, _documented(case, memory)) for memory in lowered.allocations),
        peak_bytes=sum(memory.bytes for memory in lowered.allocations),
        forms_agree=_same_caches(lowered.caches, predicted) and _same_memory(lowered.allocations, shared),
        kernels=case.kernels,
    )


def _cache(cache: Cache, predicted: PredictedCache) -> CacheUsage:
    """One cache, as TVM allocated it and as predicted."""
    known = (cache.name, predicted.role, cache.scope, cache.dtype, cache.shape)
    return CacheUsage(*known, cache.elements, cache.bytes, predicted.elements)


def _documented(case: Case, memory: Allocation) -> int | None:
    """The elements that the case states for an allocation: a wrong figure before a right one."""
    figures = [elements for name, elements in case.documented if name in memory.holds]
    return next((elements for elements in figures if elements != memory.elements), figures[0] if figures else None)


def _allocation(
    memory: Allocation, shared: dict[tuple[str, ...], PredictedAllocation], documented: int | None
) -> AllocationUsage:
    """One allocation, as TVM made it, as predicted, and as documented."""
    mine = shared.get(memory.holds)
    known = (memory.name, memory.holds, memory.elements, memory.bytes)
    return AllocationUsage(*known, mine.elements if mine else 0, documented)


def _same_caches(caches: Sequence[Cache], predicted: dict[str, PredictedCache]) -> bool:
    """Whether the name, shape and dtype of every cache are as predicted."""
    tvm = {(cache.name, cache.shape, cache.dtype) for cache in caches}
    return tvm == {(cache.name, cache.shape, cache.dtype) for cache in predicted.values()}


def _same_memory(memories: Sequence[Allocation], shared: dict[tuple[str, ...], PredictedAllocation]) -> bool:
    """Whether every allocation holds the caches, has the bytes, and lies where it is predicted to: in VTCM or not."""
    tvm = {memory.holds: (memory.bytes, memory.scope == SCOPE) for memory in memories}
    return tvm == {holds: (memory.bytes, memory.is_in_vtcm) for holds, memory in shared.items()}
