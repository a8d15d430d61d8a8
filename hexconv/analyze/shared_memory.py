"""Shared memory of the caches of a nest of blocks, by the rule of TVM's StorageRewrite; one plan is a grid of one.

The nest is walked once (`hexconv.analyze.liveness` says when a cache starts and ends), and on the way

- a cache that starts takes, of the memory that its plan puts it into, the smallest free allocation that is large
  enough, else the largest free one of the same dtype (which then grows), if the two sizes are within a factor of 16;
  else it gets an allocation of its own;
- a statement that ends one cache and starts another, element by element, may run in place: same dtype, same size, same
  memory;
- a cache that ends sets its allocation free.

So the filter caches of a chain share one allocation, and the output cache takes the input cache's. The
document's figures are those of the allocations (the Hexagon document, "Cache Usage": "the input cache is reused").


Every plan runs its own program, and all programs advance one operation at a time. Plans of equal loops share one, and
few loops differ. Arrays hold what each plan has allocated so far. A free allocation has the time at which it was freed,
since the rule orders allocations of one size by that time.

A program is a list of operations. `START cache sources`: the cache gets memory. It takes over that of the first of up
to two sources, which end in the same elementwise statement, that has the same dtype, size and place. `END cache`: the
memory of the cache is free, unless another cache has taken it over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hexconv.analyze.block_grid import BlockAxes, blocks_footprints
from hexconv.analyze.caches import PredictedAllocation
from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.liveness import NestLoops, Statement, loops_of, statements
from hexconv.kernel.engine import vtcm_taken

NOTHING, START, END = 0, 1, 2
NO_SOURCE = -1
MATCH_RANGE = 16
"""A cache takes a free allocation that is at most this many times smaller or larger."""
LARGEST_SIGNATURE = 1 << 59
"""From here on the signatures of nests are numbered anew: one more conv takes three bits."""
REMEMBERED = 1 << 14
"""The number of nests whose programs are kept: pieces of a chain and chains of a network have many in common."""


@dataclass(frozen=True)
class Programs:
    """One program for each class of plans, all padded to one length T.

    Attributes:
        of_plan: [N]: the class of every plan.
        operation: [T, classes]: NOTHING, START or END.
        cache: [T, classes]: which cache, by its place in `BlockAxes.caches`.
        sources: [2, T, classes]: whose memory a START may take over; NO_SOURCE for none.
    """

    of_plan: Integers
    operation: Integers
    cache: Integers
    sources: Integers


def programs(axes: BlockAxes) -> Programs:
    """Return the programs of all plans."""
    _, examples, of_plan = np.unique(_signatures(axes).ravel(), return_index=True, return_inverse=True)
    names = tuple(cache.name for cache in axes.caches)
    lists = [_program(loops_of(axes, at), names) for at in examples.tolist()]
    length = max(map(len, lists))
    padding = (NOTHING, 0, NO_SOURCE, NO_SOURCE)
    table = np.array([[*operations, *[padding] * (length - len(operations))] for operations in lists])
    operation, cache, *sources = np.transpose(table)
    return Programs(of_plan, operation, cache, np.array(sources))


def _signatures(axes: BlockAxes) -> Integers:
    """Return [words, H, K] numbers that are equal only for nests that look alike."""
    signature = np.arange(len(axes.plans.words))[:, None, None] * 2 + axes.rows(lambda stripes: stripes.reads_first > 0)
    for index, written in enumerate(axes.extents[1:]):
        slabs = axes.rows(lambda stripes, index=index: stripes.step_slabs[index])
        inside = (slabs > 1) | (axes.staged(index) > 1) | (written.column_blocks > 1 and not axes.sums_in_rows)
        if signature.max() >= LARGEST_SIGNATURE:  # so that none runs over, and no nest is taken for another
            _, signature = np.unique(signature, return_inverse=True)
        signature = signature * 8 + axes.steps(index) * 4 + (axes.tiles(index) > 1) * 2 + inside
    return np.broadcast_to(signature, axes.plans.shape)


@lru_cache(REMEMBERED)
def _program(loops: NestLoops, caches: tuple[str, ...]) -> "tuple[Operation, ...]":
    """Return the operations of all plans of one nest."""
    return tuple(_operations(statements(loops), {name: place for place, name in enumerate(caches)}))


Operation = tuple[int, int, int, int]


def _operations(steps: Sequence[Statement], places: dict[str, int]) -> Iterator[Operation]:
    """Walk over the nest, and return its operations as a flat list."""
    for step in steps:
        for name in step.starts:
            first, second, *_ = (*(places[source] for source in step.elementwise), NO_SOURCE, NO_SOURCE)
            yield START, places[name], first, second
        yield from _operations(step.inside, places)
        for name in step.ends:
            yield END, places[name], NO_SOURCE, NO_SOURCE


AT_A_TIME = 1 << 15
"""The number of plans processed together: their state fits the processor's caches."""
IN_USE = -1


@dataclass(frozen=True)
class _Memories:
    """The allocations of P plans while their programs run; M is the most allocations of a plan.

    Attributes:
        bytes: [M, P]: the size of an allocation; 0 where there is none yet.
        dtype: [M, P]: its dtype, as a number.
        freed: [M, P]: when it was freed; IN_USE while it is in use.
        count: [P]: the number of allocations so far.
        home: [caches, P]: the allocation of a cache.
        in_vtcm: [M, P]: whether it lies in VTCM.
        taken: [P]: the cache whose memory the last START took over.
    """

    bytes: Integers
    dtype: Integers
    freed: Integers
    count: Integers
    home: Integers
    in_vtcm: Integers
    taken: Integers


@dataclass(frozen=True)
class _Wanted:
    """What the caches that start take, [P] each: bytes, dtype as a number, and whether they lie in VTCM."""

    bytes: Integers
    dtype: Integers
    in_vtcm: Integers


def blocks_allocations(axes: BlockAxes) -> tuple[PredictedAllocation, ...]:
    """The physical allocations of one plan, in the order in which they are made.

    >>> from hexconv.analyze.block_grid import blocks_of_plan
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> axes = blocks_of_plan(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> [(a.holds, a.elements) for a in blocks_allocations(axes)]
    [(('input_cache', 'output_cache'), 65536), (('intermediate1',), 65536), (('filter1_cache', 'filter2_cache'), 4096)]
    """
    run, memories = programs(axes), _run(axes, programs(axes), np.zeros(1, np.int64))
    started = [int(cache) for now, (cache,) in zip(run.operation, run.cache, strict=True) if now == START]
    scratch, homes = axes.scratch, memories.home[:, 0].tolist()
    caches = blocks_footprints(axes)[len(scratch) :]
    plan = axes.plans.sample
    found = [PredictedAllocation((each.name,), each.dtype, each.bytes, each.is_in_vtcm(plan)) for each in scratch]
    for memory in range(int(memories.count[0])):
        holds = [caches[cache] for cache in started if homes[cache] == memory]
        held, is_in_vtcm = int(memories.bytes[memory, 0]), bool(memories.in_vtcm[memory, 0])
        found.append(PredictedAllocation(tuple(each.name for each in holds), holds[0].dtype, held, is_in_vtcm))
    return tuple(found)


def blocks_footprint(axes: BlockAxes, granule_bytes: int) -> Integers:
    """Return the bytes of VTCM of all plans, [words, H, K], every allocation in whole granules.

    Where a plan puts no cache into VTCM, all of its allocations count.
    """
    run, shape = programs(axes), axes.plans.shape
    counts_all = np.array([not plan.uses_vtcm for plan in axes.plans.words])
    parts, size = list[Integers](), int(np.prod(shape))
    for first in range(0, size, AT_A_TIME):
        numbers = np.arange(first, min(first + AT_A_TIME, size))
        memories = _run(axes, run, numbers)
        counted = memories.in_vtcm | counts_all[np.unravel_index(numbers, shape)[0]]
        rooms = ceil_divide(memories.bytes * counted, granule_bytes) * granule_bytes
        scratch = [ceil_divide(each.bytes, granule_bytes) * granule_bytes for each in axes.scratch]
        parts.append(vtcm_taken([*scratch, *rooms], axes.plans.sample.kernel))
    return np.reshape(np.concatenate(parts), shape)


def _run(axes: BlockAxes, programs: Programs, numbers: Integers) -> "_Memories":
    """Run the programs of some plans to their end."""
    at, kinds = np.unravel_index(numbers, axes.plans.shape), programs.of_plan[numbers]
    caches, dtypes = axes.caches, list(dict.fromkeys(cache.dtype for cache in axes.caches))
    dtype = np.array([dtypes.index(cache.dtype) for cache in caches])
    in_vtcm = np.array([[cache.is_in_vtcm(plan) for plan in axes.plans.words] for cache in caches])[:, at[0]]
    slots = [np.where(axes.doubled.get(cache.name, False), 2, 1) for cache in caches]
    bytes = [cache.bytes * times for cache, times in zip(caches, slots, strict=True)]
    sizes = [np.broadcast_to(each, axes.plans.shape)[at] for each in bytes]
    # A size and a time are compared as one number.
    kind = integer_type(max(int(size.max()) for size in sizes) * MATCH_RANGE * (len(programs.operation) + 1))
    memories, sizes = _none_yet(len(caches), len(numbers), kind), np.array(sizes, dtype=kind)
    for time, operations in enumerate(programs.operation):
        now = operations[kinds]
        cache, sources = programs.cache[time][kinds], programs.sources[:, time][:, kinds]
        starting, ending = np.flatnonzero(now == START), np.flatnonzero(now == END)
        if len(starting):
            which = cache[starting]
            wanted = _Wanted(sizes[which, starting], dtype[which], in_vtcm[which, starting])
            _start(memories, starting, which, sources[:, starting], wanted, time)
        _end(memories, ending, cache[ending], time)
    return memories


def _none_yet(caches: int, plans: int, kind: type[Any]) -> _Memories:
    """Return the state without allocations, with room for one per cache."""
    shape = caches, plans
    return _Memories(
        bytes=np.zeros(shape, kind),
        dtype=np.zeros(shape, np.int64),
        freed=np.full(shape, IN_USE),
        count=np.zeros(plans, np.int64),
        home=np.zeros(shape, np.int64),
        in_vtcm=np.zeros(shape, bool),
        taken=np.full(plans, -1),
    )


def _start(
    memories: _Memories, plans: Integers, cache: Integers, sources: Integers, wanted: _Wanted, time: int
) -> None:
    """Put a cache of each of some plans into an allocation."""
    memory, taken = _found(memories, plans, wanted, time), np.full(len(plans), -1)
    for source in sources[::-1]:
        above = memories.home[source, plans]
        same = (memories.bytes[above, plans] == wanted.bytes) & (memories.dtype[above, plans] == wanted.dtype)
        in_place = (source >= 0) & same & (memories.in_vtcm[above, plans] == wanted.in_vtcm)
        memory, taken = np.where(in_place, above, memory), np.where(in_place, source, taken)
    memories.taken[plans] = taken
    is_new = memory == memories.count[plans]
    memories.count[plans] += is_new
    memories.dtype[memory, plans] = np.where(is_new, wanted.dtype, memories.dtype[memory, plans])
    memories.in_vtcm[memory, plans] = wanted.in_vtcm
    memories.bytes[memory, plans] = np.maximum(memories.bytes[memory, plans], wanted.bytes)
    memories.freed[memory, plans] = IN_USE
    memories.home[cache, plans] = memory


def _found(memories: _Memories, plans: Integers, wanted: _Wanted, time: int) -> Integers:
    """Return the free allocation that StorageRewrite's rule takes, or the number of the next new one."""
    most, size = int(memories.count[plans].max()), wanted.bytes
    if not most:
        return memories.count[plans]
    held, freed = memories.bytes[:most, plans], memories.freed[:most, plans]
    free, rank = (freed != IN_USE) & (memories.in_vtcm[:most, plans] == wanted.in_vtcm), held * (time + 1) + freed
    larger = free & (size <= held) & (held <= size * MATCH_RANGE)
    smaller = free & (held < size) & (held >= size // MATCH_RANGE) & (memories.dtype[:most, plans] == wanted.dtype)
    tightest = np.where(larger, rank, rank.max() + 1).argmin(axis=0)
    largest = np.where(smaller, rank, -1).argmax(axis=0)
    found = np.where(smaller.any(axis=0), largest, memories.count[plans])
    return np.where(larger.any(axis=0), tightest, found)


def _end(memories: _Memories, plans: Integers, cache: Integers, time: int) -> None:
    """Free the memory of a cache, unless the cache that started last has taken it over."""
    left = memories.taken[plans] != cache
    plans, cache = plans[left], cache[left]
    memories.freed[memories.home[cache, plans], plans] = time
