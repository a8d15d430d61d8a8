"""Shared memory of the caches of all plans of a space: plans with equal loop nests share one program.

Every plan runs its own program (`hexconv.search.shared_memory`), and all programs advance one operation at a time.
Arrays hold what each plan has allocated so far. A free allocation has the time at which it was freed, since the rule
orders allocations of one size by that time.

Lifetimes depend on which loops of a nest run more than once (`hexconv.analyze.liveness`), not on how often they run. So
plans fall into few classes, and the closed form of single plans is computed once for each class.

A program is a list of operations. `START cache source`: the cache gets memory. It takes over the memory of `source`
where `source` ends in the same elementwise statement and has the same dtype and size. `END cache`: the memory of the
cache is free, unless another cache has taken it over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hexconv.analyze.block_nest import PlannedBlocks, planned_blocks
from hexconv.analyze.caches import has_accumulator, plain_footprints
from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.liveness import MATCH_RANGE, Statement, statements
from hexconv.lower.vtcm import GRANULE_BYTES
from hexconv.search.block_grid import BlockAxes, CacheGrid
from hexconv.search.space import Space
from hexconv.spec import Plan

NOTHING, START, END = 0, 1, 2
NO_SOURCE = -1
REMEMBERED = 1 << 14
"""The number of nests whose programs are kept: pieces of a chain and chains of a network have many in common."""


@dataclass(frozen=True)
class Programs:
    """One program for each class of plans, all padded to one length T.

    Attributes:
        of_plan: [N]: the class of every plan.
        operation: [T, classes]: NOTHING, START or END.
        cache: [T, classes]: which cache, by its place in the closed form's list.
        source: [T, classes]: whose memory a START may take over; NO_SOURCE for none.
    """

    of_plan: Integers
    operation: Integers
    cache: Integers
    source: Integers


@dataclass(frozen=True)
class _Nest:
    """A class of loop nests that have one program, with a plan as an example.

    Attributes:
        accumulators: per conv, whether its sums have a cache of their own.
        images: whether there is a loop over images.
        words: the word knobs of the plan.
        signature: a number that says which of the other loops there are.
        planned: an example of a chain and a plan with this nest, which is not compared.
    """

    accumulators: tuple[bool, ...]
    images: bool
    words: Plan
    signature: int
    planned: PlannedBlocks = field(compare=False)


def programs(axes: BlockAxes) -> Programs:
    """Return the programs of a space."""
    found, examples, of_plan = np.unique(_signatures(axes).ravel(), return_index=True, return_inverse=True)
    space, chain = axes.space, axes.chain
    accumulators = tuple(has_accumulator(chain, index) for index in range(len(chain.conv)))
    images, per_word = chain.input[0] > 1, space.size // len(space.words)
    lists = [
        _program(
            _Nest(accumulators, images, space.words[at // per_word], signature, planned_blocks(chain, space.plan(at)))
        )
        for signature, at in zip(found.tolist(), examples.tolist(), strict=True)
    ]
    length = max(map(len, lists))
    padding = (NOTHING, 0, NO_SOURCE)
    table = np.array([[*operations, *[padding] * (length - len(operations))] for operations in lists])
    operation, cache, source = table.transpose(2, 1, 0)
    return Programs(of_plan, operation, cache, source)


def _signatures(axes: BlockAxes) -> Integers:
    """Return [words, H, K] numbers that are equal only for nests that look alike."""
    signature = np.arange(len(axes.space.words))[:, None, None] * 2 + axes.rows(lambda planned: planned.reads_first > 0)
    for index, written in enumerate(axes.extents[1:]):
        slabs = axes.rows(lambda planned, index=index: planned.step_slabs[index])
        inside = (slabs > 1) | (axes.staged(index) > 1) | (written.column_blocks > 1)
        signature = signature * 8 + axes.steps(index) * 4 + (axes.tiles(index) > 1) * 2 + inside
    return np.broadcast_to(signature, axes.space.shape)


@lru_cache(REMEMBERED)
def _program(nest: _Nest) -> tuple[tuple[int, int, int], ...]:
    """Return the operations of all plans with one nest."""
    places = {cache.name: place for place, cache in enumerate(plain_footprints(nest.planned))}
    return tuple(_operations(statements(nest.planned), places))


def _operations(steps: Sequence[Statement], places: dict[str, int]) -> Iterator[tuple[int, int, int]]:
    """Walk over the nest, and return its operations as a flat list."""
    for step in steps:
        for name in step.starts:
            sources = [end for end in step.ends if end != name] if step.elementwise else []
            assert len(sources) <= 1, "an elementwise statement reads one cache"
            yield START, places[name], places[sources[0]] if sources else NO_SOURCE
        yield from _operations(step.inside, places)
        for name in step.ends:
            yield END, places[name], NO_SOURCE


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
        taken: [P]: the cache whose memory the last START took over.
    """

    bytes: Integers
    dtype: Integers
    freed: Integers
    count: Integers
    home: Integers
    taken: Integers


def allocated_bytes(space: Space, caches: tuple[CacheGrid, ...], programs: Programs) -> Integers:
    """Return [N]: the bytes of VTCM of each plan, every allocation in whole granules."""
    dtypes = list(dict.fromkeys(cache.dtype for cache in caches))
    dtype = np.array([dtypes.index(cache.dtype) for cache in caches])
    parts = []
    for first in range(0, space.size, AT_A_TIME):
        numbers = np.arange(first, min(first + AT_A_TIME, space.size))
        parts.append(_footprints(_sizes(space, caches, numbers, len(programs.operation)), dtype, programs, numbers))
    return np.concatenate(parts)


def _sizes(space: Space, caches: tuple[CacheGrid, ...], numbers: Integers, length: int) -> Integers:
    """Return [caches, P]: the bytes of each cache of some plans."""
    at = np.unravel_index(numbers, space.shape)
    sizes = [np.broadcast_to(cache.bytes, space.shape)[at] for cache in caches]
    # A size and a time are compared as one number.
    exact = integer_type(max(int(size.max()) for size in sizes) * MATCH_RANGE * (length + 1))
    return np.array(sizes, dtype=exact)


def _footprints(sizes: Integers, dtype: Integers, programs: Programs, numbers: Integers) -> Integers:
    """Run the programs of some plans to their end; return [P] footprints."""
    kinds = programs.of_plan[numbers]
    memories = _none_yet(sizes)
    for time, operations in enumerate(programs.operation):
        now = operations[kinds]
        cache, source = programs.cache[time][kinds], programs.source[time][kinds]
        starting, ending = np.flatnonzero(now == START), np.flatnonzero(now == END)
        if len(starting):
            _start(memories, starting, cache[starting], source[starting], sizes, dtype, time)
        _end(memories, ending, cache[ending], time)
    return (ceil_divide(memories.bytes, GRANULE_BYTES) * GRANULE_BYTES).sum(axis=0)


def _none_yet(sizes: Integers) -> _Memories:
    """Return the state without allocations, with room for one per cache."""
    shape = sizes.shape
    return _Memories(
        bytes=np.zeros(shape, sizes.dtype),
        dtype=np.zeros(shape, np.int64),
        freed=np.full(shape, IN_USE),
        count=np.zeros(shape[1], np.int64),
        home=np.zeros(shape, np.int64),
        taken=np.full(shape[1], -1),
    )


def _start(
    memories: _Memories,
    plans: Integers,
    cache: Integers,
    source: Integers,
    sizes: Integers,
    dtype: Integers,
    time: int,
) -> None:
    """Put a cache of each of some plans into an allocation."""
    size, kind = sizes[cache, plans], dtype[cache]
    above = memories.home[source, plans]
    same = (memories.bytes[above, plans] == size) & (memories.dtype[above, plans] == kind)
    in_place = (source >= 0) & same
    memory = np.where(in_place, above, _found(memories, plans, size, kind, time))
    memories.taken[plans] = np.where(in_place, source, -1)
    is_new = memory == memories.count[plans]
    memories.count[plans] += is_new
    memories.dtype[memory, plans] = np.where(is_new, kind, memories.dtype[memory, plans])
    memories.bytes[memory, plans] = np.maximum(memories.bytes[memory, plans], size)
    memories.freed[memory, plans] = IN_USE
    memories.home[cache, plans] = memory


def _found(memories: _Memories, plans: Integers, size: Integers, kind: Integers, time: int) -> Integers:
    """Return the free allocation that StorageRewrite's rule takes, or the number of the next new one."""
    most = int(memories.count[plans].max())
    if not most:
        return memories.count[plans]
    held, freed = memories.bytes[:most, plans], memories.freed[:most, plans]
    free, rank = freed != IN_USE, held * (time + 1) + freed
    larger = free & (size <= held) & (held <= size * MATCH_RANGE)
    smaller = free & (held < size) & (held >= size // MATCH_RANGE) & (memories.dtype[:most, plans] == kind)
    tightest = np.where(larger, rank, rank.max() + 1).argmin(axis=0)
    largest = np.where(smaller, rank, -1).argmax(axis=0)
    found = np.where(smaller.any(axis=0), largest, memories.count[plans])
    return np.where(larger.any(axis=0), tightest, found)


def _end(memories: _Memories, plans: Integers, cache: Integers, time: int) -> None:
    """Free the memory of a cache, unless the cache that started last has taken it over."""
    left = memories.taken[plans] != cache
    plans, cache = plans[left], cache[left]
    memories.freed[memories.home[cache, plans], plans] = time
