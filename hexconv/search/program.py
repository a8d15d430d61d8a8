"""The lifetimes of caches for all plans of a space: plans whose loop nests look alike share one program.

Lifetimes depend on which loops of a nest run more than once (`hexconv.analyze.nest`), not on how often they run. So
plans fall into few classes, and the closed form of single plans is computed once for each class.

A program is a list of operations. `START cache source`: the cache gets memory. It takes over the memory of `source`
where `source` ends in the same elementwise statement and has the same dtype and size. `END cache`: the memory of the
cache is free, unless another cache has taken it over.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.exact import Integers
from hexconv.analyze.footprint import has_accumulator, plain_footprints
from hexconv.analyze.liveness import Statement, statements
from hexconv.analyze.rolled_blocks import planned_blocks
from hexconv.search.block_axes import BlockAxes
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
