"""Lifetimes of caches in the loop nest of a plan, and which share memory by the rule of TVM's StorageRewrite.

A cache belongs to the innermost loop around everything that touches it, and lives from the first to the last statement
of that loop's body that touches it; a loop is one statement of the body around it. Ring buffers (`halo = "roll"`) and
caches of two slots (`buffering = "double"`) belong to the outermost level, whatever loops touch them: what they hold,
or what is still copied to or from them, outlives every step.

The nest is walked once (`hexconv.analyze.liveness` says when a cache starts and ends), and on the way

- a cache that starts takes, of the memory that its plan puts it into, the smallest free allocation that is large
  enough, else the largest free one of the same dtype (which then grows), if the two sizes are within a factor of 16;
  else it gets an allocation of its own;
- a statement that ends one cache and starts another, element by element, may run in place: same dtype, same size, same
  memory;
- a cache that ends sets its allocation free.

So the filter caches of a chain take turns in one allocation, and the output cache takes the input cache's. The
document's figures are those of the allocations (seed document 003, "Cache Usage": "the input cache is reused").

It is written from the plan alone and knows no TVM; `hexconv.analyze.liveness` reads lifetimes off it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hexconv.analyze.block_nest import PlannedBlocks
from hexconv.analyze.caches import DTYPE_BYTES, PredictedCache, has_accumulator, plain_footprints
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, accumulator, filter_cache, source_cache, target_cache
from hexconv.spec.places import Role, roles_in_vtcm


@dataclass(frozen=True)
class Leaf:
    """A statement that touches caches.

    Attributes:
        does: what it does: `read input`, `read filter 1`, `conv 1 init`, `conv 1`, `conv 1 epilogue`, `write output`.
        touches: names of caches, those that are read first.
        elementwise: whether it writes each element from the same element of what it reads.
        copies_in: whether it copies from memory to a cache.
    """

    does: str
    touches: tuple[str, ...]
    elementwise: bool = False
    copies_in: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop around statements and other loops."""

    extent: int
    body: "tuple[Node, ...]"


Node = Leaf | Loop
_READ_INPUT = Leaf("read input", (INPUT_CACHE,), copies_in=True)


def chain_nest(planned: PlannedBlocks) -> tuple[Node, ...]:
    """The whole nest. Loops of one iteration are left out, since they leave no trace in the lowered TIR.

    The first copy into a cache with two slots stands before the outermost statement that holds its other copies.
    """
    last = len(planned.chain.conv) - 1
    staged = [_read_filter(index) for index in range(last + 1)] if planned.plan.filters == "resident" else []
    body = _conv(planned, last, (Leaf("write output", (OUTPUT_CACHE,)),))
    whole = (*staged, *_loops((planned.extents[-1].batch,), body))
    nodes: list[Node] = []
    for node in whole:
        nodes += [leaf for leaf in _copies_in(node) if leaf.touches[0] in planned.doubled]
        nodes.append(node)
    return tuple(nodes)


def _read_filter(index: int) -> Leaf:
    """The statement that fills the cache of a filter from memory."""
    return Leaf(f"read filter {index + 1}", (filter_cache(index + 1),), copies_in=True)


def _copies_in(node: Node) -> Iterator[Leaf]:
    """The statements of a node that fill a cache from memory, in program order."""
    if isinstance(node, Loop):
        yield from (leaf for child in node.body for leaf in _copies_in(child))
    elif node.copies_in:
        yield node


def _conv(planned: PlannedBlocks, index: int, after: tuple[Node, ...] = ()) -> tuple[Node, ...]:
    """A conv in its outer loops: its source is made first, then its filter is read.

    A conv with one row step makes its source once for all of its channel tiles, whatever the order.

    Args:
        planned: the chain and its plan.
        index: the number of the conv, from 0.
        after: the statements that follow in each of its tiles.
    """
    channel_tiles, stripes = planned.channel_tiles[index], planned.row_steps[index]
    filter = () if planned.plan.filters == "resident" else (_read_filter(index),)
    tile = (*filter, *_blocks(planned, index), *after)
    source = _source(planned, index)
    if not planned.makes_source_again(index):
        ahead = (_READ_INPUT,) if index + 1 == planned.rings and planned.reads_first else ()
        return (*ahead, *_loops((stripes,), (*source, *_loops((channel_tiles,), tile))))
    return _loops((channel_tiles, stripes), (*source, *tile))


def _source(planned: PlannedBlocks, index: int) -> tuple[Node, ...]:
    """Read the input, or run the conv before in steps of its own."""
    if index == 0:
        return (_READ_INPUT,)
    return _conv(planned, index - 1)


def _blocks(planned: PlannedBlocks, index: int) -> tuple[Node, ...]:
    """The loops over the blocks of one step; their statements are init, compute and, if there is one, the epilogue."""
    target, source = target_cache(index + 1, len(planned.chain.conv)), source_cache(index + 1)
    sums = accumulator(index + 1) if has_accumulator(planned.chain, index) else target
    conv = f"conv {index + 1}"
    body: list[Node] = [Leaf(f"{conv} init", (sums,)), Leaf(conv, (sums, source, filter_cache(index + 1)))]
    if sums != target:
        body.append(Leaf(f"{conv} epilogue", (sums, target), elementwise=True))
    slabs = planned.step_slabs[index]
    ko_inner, ho_inner, wo = planned.staged_blocks[index], slabs, planned.extents[index + 1].column_blocks
    return _loops((ko_inner, ho_inner, wo), body)


def _loops(extents: Sequence[int], body: Sequence[Node]) -> tuple[Node, ...]:
    """Put `body` inside of loops of these extents, without the loops of one iteration."""
    nodes = tuple(body)
    for extent in reversed(extents):
        nodes = (Loop(extent, nodes),) if extent > 1 else nodes
    return nodes


@dataclass(frozen=True)
class Statement:
    """One statement of some loop's body.

    Attributes:
        starts: caches that become live with it.
        ends: caches that are dead after it.
        elementwise: whether it writes each element from the same element of what it reads.
        inside: the statements of its body, where it is a loop.
    """

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    elementwise: bool
    inside: "tuple[Statement, ...]"


@dataclass(frozen=True)
class Life:
    """The statements during which one cache lives, numbered in program order, loops run once.

    Attributes:
        cache: the name of the cache.
        first: the index of the first statement of its life.
        last: the index of the last statement of its life, included.
    """

    cache: str
    first: int
    last: int


def statements(planned: PlannedBlocks) -> tuple[Statement, ...]:
    """The outermost statements of a plan's nest."""
    rings = {source_cache(number) for number in range(1, planned.rings + 1)}
    return _statements(chain_nest(planned), outermost=planned.doubled | rings)


def lives_of(planned: PlannedBlocks) -> tuple[Life, ...]:
    """When each cache is live, by start. In a loop that runs again it lives in each iteration anew, or outlives them.

    >>> from hexconv.analyze.block_nest import planned_blocks
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> lives = lives_of(planned_blocks(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()))
    >>> [(life.cache, life.first, life.last) for life in lives][:3]
    [('input_cache', 0, 3), ('filter1_cache', 1, 3), ('intermediate1', 1, 6)]
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    _walk(statements(planned), 0, first, last)
    lives = (Life(name, first[name], last[name]) for name in first)
    return tuple(sorted(lives, key=lambda life: (life.first, life.last)))


def _walk(body: Sequence[Statement], now: int, first: dict[str, int], last: dict[str, int]) -> int:
    """Note when each cache of a body starts and ends; its first statement is number `now`. Return the next number."""
    for statement in body:
        first |= dict.fromkeys(statement.starts, now)
        end = _walk(statement.inside, now, first, last) if statement.inside else now + 1
        last |= dict.fromkeys(statement.ends, end - 1)
        now = end
    return now


def _statements(
    nodes: Sequence[Node], outside: frozenset[str] = frozenset(), outermost: frozenset[str] = frozenset()
) -> tuple[Statement, ...]:
    """The statements of one loop body.

    Args:
        nodes: the body.
        outside: caches that a loop further out owns.
        outermost: caches that this body owns though only one of its statements may touch them.
    """
    touched = [list(dict.fromkeys(_touches(node))) for node in nodes]
    last = {name: index for index, names in enumerate(touched) for name in names}
    first = {name: index for index, names in reversed([*enumerate(touched)]) for name in names}
    shared = {name for name in first if first[name] < last[name]}
    mine = {name for name in shared | outermost if name not in outside}
    body = []
    for index, (node, names) in enumerate(zip(nodes, touched, strict=True)):
        body.append(
            Statement(
                starts=tuple(name for name in names if name in mine and first[name] == index),
                ends=tuple(name for name in names if name in mine and last[name] == index),
                elementwise=isinstance(node, Leaf) and node.elementwise,
                inside=_statements(node.body, outside | mine) if isinstance(node, Loop) else (),
            )
        )
    return tuple(body)


def _touches(node: Node) -> Iterator[str]:
    """All caches that a node touches, in program order."""
    if isinstance(node, Leaf):
        yield from node.touches
        return
    for child in node.body:
        yield from _touches(child)


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

    >>> from hexconv.analyze.block_nest import planned_blocks
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
