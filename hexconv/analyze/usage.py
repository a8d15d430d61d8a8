"""Predicted against counted: cache sizes by closed form, by TVM's allocation and by documents; traffic and MACs.

A documented figure names a cache, and gives the elements of the allocation that the cache lies in. The source documents
do the same: the size of their input cache is that of the allocation which holds input and output cache in turn. Each of
several caches that share an allocation may have a figure; all are compared with the same allocation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hexconv.analyze.block_grid import engine_packets
from hexconv.analyze.caches import PredictedAllocation, PredictedCache
from hexconv.analyze.needed import needed_work
from hexconv.analyze.planned import Planned, copies_in_flight
from hexconv.errors import InputError
from hexconv.kernel.engine import EnginePackets
from hexconv.spec import Case, KernelChoice
from hexconv.spec.capacities import SCOPE
from hexconv.spec.vectors import vectors_bytes

if TYPE_CHECKING:
    from hexconv.lower import Allocation, Cache, Lowered
    from hexconv.lower.counting import Counts


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
        predicted_elements: the elements that the closed form predicts; 0 if it has no such cache.
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
        holds: the caches that share it.
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


def cache_usage(case: Case, lowered: "Lowered") -> Usage:
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
        caches=tuple(_cache(cache, predicted.get(cache.name)) for cache in lowered.caches),
        allocations=tuple(_allocation(memory, shared, _documented(case, memory)) for memory in lowered.allocations),
        peak_bytes=sum(memory.bytes for memory in lowered.allocations),
        forms_agree=_same_caches(lowered.caches, predicted) and _same_memory(lowered.allocations, shared),
        kernels=case.kernels,
    )


def _cache(cache: "Cache", predicted: PredictedCache | None) -> CacheUsage:
    """One cache, as TVM allocated it and as predicted."""
    role, elements = (predicted.role, predicted.elements) if predicted else ("", 0)
    return CacheUsage(cache.name, role, cache.scope, cache.dtype, cache.shape, cache.elements, cache.bytes, elements)


def _documented(case: Case, memory: "Allocation") -> int | None:
    """The elements that the case states for an allocation: a wrong figure before a right one."""
    figures = [elements for name, elements in case.documented if name in memory.holds]
    return next((elements for elements in figures if elements != memory.elements), figures[0] if figures else None)


def _allocation(
    memory: "Allocation", shared: dict[tuple[str, ...], PredictedAllocation], documented: int | None
) -> AllocationUsage:
    """One allocation, as TVM made it, as predicted, and as documented."""
    mine = shared.get(memory.holds)
    known = (memory.name, memory.holds, memory.elements, memory.bytes)
    return AllocationUsage(*known, mine.elements if mine else 0, documented)


def _same_caches(caches: "Sequence[Cache]", predicted: dict[str, PredictedCache]) -> bool:
    """Whether the name, shape and dtype of every cache are as predicted."""
    tvm = {(cache.name, cache.shape, cache.dtype) for cache in caches}
    return tvm == {(cache.name, cache.shape, cache.dtype) for cache in predicted.values()}


def _same_memory(memories: "Sequence[Allocation]", shared: dict[tuple[str, ...], PredictedAllocation]) -> bool:
    """Whether every allocation holds the caches, has the bytes, and lies where it is predicted to: in VTCM or not."""
    tvm = {memory.holds: (memory.bytes, memory.scope == SCOPE) for memory in memories}
    return tvm == {holds: (memory.bytes, memory.is_in_vtcm) for holds, memory in shared.items()}


@dataclass(frozen=True)
class TrafficUsage:
    """The bytes of one tensor that are copied between memory and caches, or that kernels access outside of VTCM.

    Attributes:
        name: `input`, `filter1`, ..., `output`; `bias1`, `multiplier1`, `table1`, ..., which go through no cache and
            count once; or the name of a cache outside of VTCM.
        direction: `in` to a cache or kernel, `out` of one, or `outside` for accesses to a cache outside of VTCM.
        bytes: the bytes that are counted in the lowered module; of what no cache stages, its size.
        predicted_bytes: the bytes that the closed form predicts.
        needed_bytes: the lower bound: every element that is needed, once.
        copies_in_flight: the most copies under way at once, counted in the lowered module.
        predicted_copies_in_flight: the most copies under way at once that the closed form predicts.
    """

    name: str
    direction: str
    bytes: int
    predicted_bytes: int
    needed_bytes: int
    copies_in_flight: int
    predicted_copies_in_flight: int


@dataclass(frozen=True)
class MacUsage:
    """The multiply-accumulates of one conv.

    Attributes:
        name: `conv1`, ...
        macs: the MACs that are counted in the lowered module.
        predicted_macs: the MACs that the closed form predicts.
        needed_macs: the lower bound: the MACs of the outputs that are read, once.
    """

    name: str
    macs: int
    predicted_macs: int
    needed_macs: int


@dataclass(frozen=True)
class WorkUsage:
    """All traffic and all MACs of one case.

    Attributes:
        traffic_bytes: the counted bytes of all tensors together.
        needed_traffic_bytes: the lower bound of the bytes of all tensors together.
        macs: the counted MACs of all convs together.
        needed_macs: the lower bound: the MACs of the outputs that are read, once.
        traffic: the figures of each tensor.
        convs: the figures of each conv.
        copies_in_flight: the sum over all tensors of the most copies under way at once.
    """

    traffic_bytes: int
    needed_traffic_bytes: int
    macs: int
    needed_macs: int
    traffic: tuple[TrafficUsage, ...]
    convs: tuple[MacUsage, ...]
    copies_in_flight: int

    @property
    def agrees(self) -> bool:
        """Whether closed form and count say the same of every tensor and every conv."""
        return not any(miscounts(self))


def work_usage(case: Case, counts: "Counts") -> WorkUsage:
    """Compare the closed form of a case with what was counted in its lowered module."""
    planned, needed = Planned.of(case), needed_work(case.chain)
    in_flight = copies_in_flight(planned)
    traffic = tuple(
        TrafficUsage(
            name=name,
            direction=_direction(name) if name in needed.traffic_bytes else "outside",
            bytes=counted,
            predicted_bytes=planned.work.traffic_bytes.get(name, 0),
            needed_bytes=needed.traffic_bytes.get(name, 0),
            copies_in_flight=counts.copies_in_flight.get(name, 0),
            predicted_copies_in_flight=in_flight.get(name, 0),
        )
        for name, counted in (counts.traffic_bytes | vectors_bytes(case.chain)).items()
    )
    convs = tuple(
        MacUsage(name, counted, planned.work.macs[name], needed.macs[name]) for name, counted in counts.macs.items()
    )
    return WorkUsage(
        traffic_bytes=sum(tensor.bytes for tensor in traffic),
        needed_traffic_bytes=sum(tensor.needed_bytes for tensor in traffic),
        macs=sum(conv.macs for conv in convs),
        needed_macs=sum(conv.needed_macs for conv in convs),
        traffic=traffic,
        convs=convs,
        copies_in_flight=sum(tensor.copies_in_flight for tensor in traffic),
    )


def _direction(tensor: str) -> str:
    """Which way a tensor is copied."""
    return "out" if tensor == "output" else "in"


def other_sizes(usage: Usage) -> Iterator[str]:
    """Say where the closed form, TVM and documents disagree on caches and allocations."""
    sizes = [part for part in (*usage.caches, *usage.allocations) if part.predicted_elements != part.elements]
    for part in sizes:
        yield f"{part.name}: closed form {part.predicted_elements} elements, TVM {part.elements}"
    if not usage.forms_agree and not sizes:
        yield "closed form and TVM have other caches, shapes or types, or share their memory otherwise"
    for memory in usage.allocations:
        if memory.documented_elements not in (None, memory.elements):
            yield f"{memory.name}: documented {memory.documented_elements} elements, TVM {memory.elements}"


def miscounts(work: WorkUsage) -> Iterator[str]:
    """Say where the closed form and a count disagree on bytes moved, copies in flight or MACs."""
    for tensor in work.traffic:
        if tensor.bytes != tensor.predicted_bytes:
            yield f"bytes of {tensor.name}: closed form {tensor.predicted_bytes}, counted {tensor.bytes}"
        if tensor.copies_in_flight != tensor.predicted_copies_in_flight:
            counts = f"closed form {tensor.predicted_copies_in_flight}, counted {tensor.copies_in_flight}"
            yield f"copies of {tensor.name} in flight: {counts}"
    for conv in work.convs:
        if conv.macs != conv.predicted_macs:
            yield f"MACs of {conv.name}: closed form {conv.predicted_macs}, counted {conv.macs}"


def other_packets(case: Case, counted: EnginePackets | None) -> Iterator[str]:
    """Say where a run of a case took other packets of the matrix engine than the closed form says, by kind."""
    predicted = engine_packets(Planned.of(case).blocks).of_one if case.settled.kernel == "hmx" else EnginePackets()
    for kind, expected in asdict(predicted).items():
        found = getattr(counted or EnginePackets(), kind)
        if found != expected:
            yield f"{kind} of the matrix engine: closed form {expected}, counted {found}"


def beaten(work: WorkUsage) -> Iterator[str]:
    """Say where fewer bytes or MACs were counted than the lower bound says that every plan needs."""
    for tensor in work.traffic:
        if tensor.bytes < tensor.needed_bytes:
            yield f"bytes of {tensor.name}: needed {tensor.needed_bytes}, counted {tensor.bytes}"
    for conv in work.convs:
        if conv.macs < conv.needed_macs:
            yield f"MACs of {conv.name}: needed {conv.needed_macs}, counted {conv.macs}"
