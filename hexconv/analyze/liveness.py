"""Lifetimes of caches in the nest of blocks of a plan, from its loops.

A cache belongs to the innermost loop around everything that touches it, and lives from the first to the last statement
of that loop's body that touches it; a loop is one statement of the body around it. Ring buffers (`halo = "roll"`) and
caches of two slots (`buffering = "double"`) belong to the outermost level, whatever loops touch them: what they hold,
or what is still copied to or from them, outlives every step.

It is written from the plan alone and knows no TVM. Which caches share memory follows (`hexconv.analyze.shared_memory`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.analyze.block_grid import BlockAxes, blocks_doubled
from hexconv.analyze.plan_axes import way_of
from hexconv.spec.extents import added_at
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, accumulator, filter_cache, source_cache, target_cache


@dataclass(frozen=True)
class Leaf:
    """A statement that touches caches.

    Attributes:
        does: what it does: `read input`, `read filter 1`, `conv 1 init`, `conv 1`, `conv 1 epilogue`, `write output`.
        touches: names of caches, those that are read first.
        elementwise: the caches from whose elements it writes those at the same place of another.
        copies_in: whether it copies from memory to a cache.
    """

    does: str
    touches: tuple[str, ...]
    elementwise: tuple[str, ...] = ()
    copies_in: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop of several trips around statements and other loops."""

    body: "tuple[Node, ...]"


Node = Leaf | Loop
_READ_INPUT = Leaf("read input", (INPUT_CACHE,), copies_in=True)


@dataclass(frozen=True)
class ConvLoops:
    """Which loops of a conv make several trips; a loop of one leaves no trace in the lowered TIR.

    Attributes:
        steps: the loop over its row steps.
        tiles: the loop over its channel tiles.
        inside: a loop over the blocks of one step; where sums lie in rows, over its rows of blocks.
        across: a loop over the blocks of such a row, of its own for the sums, and for the epilogue.
        has_accumulator: whether its sums have a cache of their own.
        makes: the tensors that are made in its steps: what it reads, and those that it or convs inside add.
        adds: the tensor that it adds, if any.
        adds_in_place: whether an element of that tensor stands where its sum does.
        has_filter: whether it is no pool.
    """

    steps: bool
    tiles: bool
    inside: bool
    across: bool
    has_accumulator: bool
    makes: tuple[int, ...]
    adds: int | None = None
    adds_in_place: bool = False
    has_filter: bool = True


@dataclass(frozen=True)
class NestLoops:
    """All on which lifetimes depend: equal nests have equal lifetimes, however many trips their loops make.

    Attributes:
        images: whether there is a loop over images.
        convs: the loops of each conv.
        by_channels: whether channel tiles are outermost, so that a conv of several row steps has its source made again;
            with rings, those alone of the conv whose steps are the stripes.
        is_resident: whether filters are staged once, before all loops.
        rings: how many tensors have rings, the input first.
        reads_first: whether steps come first that only read the input.
        doubled: the names of the caches with two slots.
    """

    images: bool
    convs: tuple[ConvLoops, ...]
    by_channels: bool
    is_resident: bool
    rings: int
    reads_first: bool
    doubled: frozenset[str]


def loops_of(axes: BlockAxes, number: int = 0) -> NestLoops:
    """Return the loops of plan `number` of a grid."""
    word, h, k = map(int, np.unravel_index(number, axes.plans.shape))
    plan = axes.plans.words[word]
    stripes = axes.stripes[way_of(plan)]
    convs: list[ConvLoops] = []
    for index in axes.convs:
        rows = int(axes.staged(index)[0, 0, k]) * int(stripes.step_slabs[index, h]) > 1
        columns = axes.extents[index + 1].column_blocks > 1
        inside, across = (rows, columns) if axes.sums_in_rows else (rows or columns, False)
        tiles, sums = bool(axes.tiles(index)[0, 0, k] > 1), axes.has_accumulator(index)
        makes = tuple(tensor for tensor, home in enumerate(axes.chain.homes) if home == index)
        add = axes.chain.conv[index].add
        known = (bool(stripes.row_steps[index, h] > 1), tiles, inside, across, sums)
        in_place = add is not None and added_at(axes.chain, index) == (0, 0)
        has_filter = index + 1 in axes.chain.filters
        convs.append(ConvLoops(*known, makes, add.tensor if add else None, in_place, has_filter))
    return NestLoops(
        images=axes.extents[-1].batch > 1,
        convs=tuple(convs),
        by_channels=plan.order == "k_outer",
        is_resident=plan.filters == "resident",
        rings=int(stripes.rings[h]),
        reads_first=bool(stripes.reads_first[h] > 0),
        doubled=blocks_doubled(axes, number),
    )


def chain_nest(loops: NestLoops) -> tuple[Node, ...]:
    """The whole nest. The first copy into a cache with two slots stands before the statement that holds its others."""
    last = len(loops.convs) - 1
    staged = [node for index in range(last + 1) for node in _read_filter(loops, index)] if loops.is_resident else []
    body = _conv(loops, last, (Leaf("write output", (OUTPUT_CACHE,)),))
    whole = (*staged, *_loop(loops.images and not _rolls_in_tiles(loops, last), body))
    nodes: list[Node] = []
    for node in whole:
        nodes += [leaf for leaf in _copies_in(node) if leaf.touches[0] in loops.doubled]
        nodes.append(node)
    return tuple(nodes)


def _read_filter(loops: NestLoops, index: int) -> tuple[Leaf, ...]:
    """The statement that fills the cache of a filter from memory, where there is one."""
    read = Leaf(f"read filter {index + 1}", (filter_cache(index + 1),), copies_in=True)
    return (read,) if loops.convs[index].has_filter else ()


def _copies_in(node: Node) -> Iterator[Leaf]:
    """The statements of a node that fill a cache from memory, in program order."""
    if isinstance(node, Loop):
        yield from (leaf for child in node.body for leaf in _copies_in(child))
    elif node.copies_in:
        yield node


def _conv(loops: NestLoops, index: int, after: tuple[Node, ...] = ()) -> tuple[Node, ...]:
    """A conv in its outer loops: its source is made first, then its filter is read.

    A conv with one row step makes its source once for all of its channel tiles, whatever the order. Where stripes roll
    inside of channel tiles, these stand around the stripes alone, those of the last conv around all images too, and the
    filter is read before all stripes of a tile.

    Args:
        loops: the loops of the nest.
        index: the number of the conv, from 0.
        after: the statements that follow in each of its tiles.
    """
    conv = loops.convs[index]
    filter = () if loops.is_resident else _read_filter(loops, index)
    computed = (*_blocks(loops, index), *after)
    tile = (*filter, *computed)
    source = tuple(node for tensor in conv.makes for node in (_conv(loops, tensor - 1) if tensor else (_READ_INPUT,)))
    if loops.by_channels and conv.steps and not loops.rings:
        return _loop(conv.tiles, _loop(conv.steps, (*source, *tile)))
    ahead = (_READ_INPUT,) if index + 1 == loops.rings and loops.reads_first else ()
    if _rolls_in_tiles(loops, index):
        stripes = (*ahead, *_loop(conv.steps, (*source, *computed)))
        is_last = index + 1 == len(loops.convs)
        return _loop(conv.tiles, (*filter, *_loop(loops.images and is_last, stripes)))
    return (*ahead, *_loop(conv.steps, (*source, *_loop(conv.tiles, tile))))


def _rolls_in_tiles(loops: NestLoops, index: int) -> bool:
    """Whether the stripes that roll inside of channel tiles are the steps of a conv."""
    return loops.by_channels and index + 1 == loops.rings


def _blocks(loops: NestLoops, index: int) -> tuple[Node, ...]:
    """The loop over the blocks of one step; its statements are init, compute and, if there is one, the epilogue."""
    target, source = target_cache(index + 1, len(loops.convs)), source_cache(index + 1)
    sums = accumulator(index + 1) if loops.convs[index].has_accumulator else target
    conv = f"conv {index + 1}"
    weights = (filter_cache(index + 1),) if loops.convs[index].has_filter else ()
    across = loops.convs[index].across
    body = [*_loop(across, [Leaf(f"{conv} init", (sums,)), Leaf(conv, (sums, source, *weights))])]
    if sums != target:
        adds = loops.convs[index].adds
        other = () if adds is None else (source_cache(adds + 1),)
        in_place = (sums, *(other if loops.convs[index].adds_in_place else ()))
        body += _loop(across, [Leaf(f"{conv} epilogue", (sums, *other, target), elementwise=in_place)])
    return _loop(loops.convs[index].inside, body)


def _loop(is_run_again: bool, body: Sequence[Node]) -> tuple[Node, ...]:
    """Put `body` inside of a loop, if that makes several trips."""
    return (Loop(tuple(body)),) if is_run_again else tuple(body)


@dataclass(frozen=True)
class Statement:
    """One statement of some loop's body.

    Attributes:
        starts: caches that become live with it.
        ends: caches that are dead after it.
        elementwise: of the caches that are dead after it, those whose elements it writes at the same place of another.
        inside: the statements of its body, where it is a loop.
    """

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    elementwise: tuple[str, ...]
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


def statements(loops: NestLoops) -> tuple[Statement, ...]:
    """The outermost statements of a plan's nest."""
    rings = {source_cache(number) for number in range(1, loops.rings + 1)}
    return _statements(chain_nest(loops), outermost=loops.doubled | rings)


def lives_of(loops: NestLoops) -> tuple[Life, ...]:
    """When each cache is live, by start. In a loop that runs again it lives in each iteration anew, or outlives them.

    >>> from hexconv.analyze.block_grid import blocks_of_plan
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> lives = lives_of(loops_of(blocks_of_plan(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())))
    >>> [(life.cache, life.first, life.last) for life in lives][:3]
    [('input_cache', 0, 3), ('filter1_cache', 1, 3), ('intermediate1', 1, 6)]
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    _walk(statements(loops), 0, first, last)
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
    body: list[Statement] = []
    for index, (node, names) in enumerate(zip(nodes, touched, strict=True)):
        ends = tuple(name for name in names if name in mine and last[name] == index)
        body.append(
            Statement(
                starts=tuple(name for name in names if name in mine and first[name] == index),
                ends=ends,
                elementwise=tuple(name for name in node.elementwise if name in ends) if isinstance(node, Leaf) else (),
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
