"""The loop nest of a plan as a tree: which caches are touched where, and how often a loop runs.

It is written from the plan alone and knows no TVM; `hexconv.analyze.liveness` reads lifetimes off it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.footprint import has_accumulator
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, accumulator, filter_cache, source_cache, target_cache


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
