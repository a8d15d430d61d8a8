"""Who shares memory with whom: lifetimes from the loop nest, then the rule by which TVM's StorageRewrite reuses memory.

A cache belongs to the innermost loop around everything that touches it, and lives from the first to the last statement
of that loop's body that touches it. Walking the nest once,

- a cache that starts takes the smallest free allocation that is large enough, else the largest free one of the same
  dtype (which then grows), if the two sizes are within a factor of 16; else it gets an allocation of its own;
- a statement that ends one cache and starts another, element by element, may run in place: same dtype, same size;
- a cache that ends sets its allocation free.

Rings (`halo = "roll"`) belong to the outermost level, whatever loops touch them.

So the filter caches of a chain take turns in one allocation, and the output cache takes the input cache's. The
document's figures are those of the allocations (seed document 003, "Cache Usage": "the input cache is reused").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hexconv.analyze.footprint import DTYPE_BYTES, PredictedCache, cache_footprints
from hexconv.analyze.nest import Leaf, Loop, Node, chain_nest
from hexconv.spec import Chain, Plan

MATCH_RANGE = 16
"""How much smaller or larger than a cache a free allocation may be."""


ROLLED = ("input", "intermediate")
"""Roles of the caches that a rolling halo keeps."""


@dataclass(frozen=True)
class PredictedAllocation:
    """One physical allocation.

    Attributes:
        holds: names of its caches, in the order of their first use.
        dtype: of the first of them.
        bytes: of the largest of them.
    """

    holds: tuple[str, ...]
    dtype: str
    bytes: int

    @property
    def elements(self) -> int:
        """Elements of `dtype`."""
        return self.bytes // DTYPE_BYTES[self.dtype]


@dataclass
class _Memory:
    """An allocation while the walk goes on."""

    dtype: str
    bytes: int
    holds: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Step:
    """One statement of some loop's body: the caches that start and end with it."""

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    elementwise: bool
    inside: "tuple[_Step, ...]"


def shared_allocations(chain: Chain, plan: Plan) -> tuple[PredictedAllocation, ...]:
    """The physical allocations of a chain under a plan, in the order in which they are made.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> [(a.holds, a.elements) for a in shared_allocations(chain, Plan())]
    [(('intermediate1',), 65536), (('input_cache', 'output_cache'), 65536), (('filter1_cache', 'filter2_cache'), 4096)]
    """
    caches = {cache.name: cache for cache in cache_footprints(chain, plan)}
    memories = _Memories(caches)
    rings = {name for name, cache in caches.items() if plan.halo == "roll" and cache.role in ROLLED}
    memories.walk(_steps(chain_nest(chain, plan), rings=frozenset(rings)))
    return tuple(PredictedAllocation(tuple(m.holds), m.dtype, m.bytes) for m in memories.all)


def _steps(
    nodes: Sequence[Node], outside: frozenset[str] = frozenset(), rings: frozenset[str] = frozenset()
) -> tuple[_Step, ...]:
    """The statements of one loop body.

    Args:
        nodes: the body.
        outside: caches that a loop further out owns.
        rings: caches that this body owns though only one of its statements may touch them.
    """
    touched = [list(dict.fromkeys(_touches(node))) for node in nodes]
    shared = {name for names in touched for name in names if sum(name in other for other in touched) > 1}
    mine = {name for name in shared | rings if name not in outside}
    steps = []
    for index, (node, names) in enumerate(zip(nodes, touched, strict=True)):
        before = {name for other in touched[:index] for name in other}
        after = {name for other in touched[index + 1 :] for name in other}
        steps.append(
            _Step(
                starts=tuple(name for name in names if name in mine and name not in before),
                ends=tuple(name for name in names if name in mine and name not in after),
                elementwise=isinstance(node, Leaf) and node.elementwise,
                inside=_steps(node.body, outside | mine) if isinstance(node, Loop) else (),
            )
        )
    return tuple(steps)


def _touches(node: Node) -> Iterator[str]:
    """All caches that a node touches, in program order."""
    if isinstance(node, Leaf):
        yield from node.touches
        return
    for child in node.body:
        yield from _touches(child)


class _Memories:
    """The allocations made so far, and which of them are free."""

    def __init__(self, caches: dict[str, PredictedCache]) -> None:
        self._caches = caches
        self._home: dict[str, _Memory] = {}
        self._free: list[_Memory] = []
        self.all: list[_Memory] = []

    def walk(self, steps: Sequence[_Step]) -> None:
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
        """Put a cache into an allocation."""
        memory.bytes = max(memory.bytes, self._caches[name].bytes)
        memory.holds.append(name)
        self._home[name] = memory

    def _in_place(self, step: _Step, name: str) -> str | None:
        """A cache that ends with this step and whose memory `name` can take element by element."""
        cache = self._caches[name]
        same = (
            source
            for source in step.ends
            if source in self._home
            and self._home[source].dtype == cache.dtype
            and self._home[source].bytes == cache.bytes
        )
        return next(same, None) if step.elementwise else None

    def _find(self, cache: PredictedCache) -> _Memory:
        """A free allocation by StorageRewrite's rule, or a new one."""
        size = cache.bytes
        larger = [memory for memory in self._free if size <= memory.bytes <= size * MATCH_RANGE]
        smaller = [m for m in reversed(self._free) if size // MATCH_RANGE <= m.bytes < size and m.dtype == cache.dtype]
        for memory in (*larger, *smaller):
            self._free.remove(memory)
            return memory
        memory = _Memory(cache.dtype, 0)
        self.all.append(memory)
        return memory
