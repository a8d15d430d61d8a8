"""The loop nest of a plan as a tree: which caches are touched where, and how often a loop runs.

It is written from the plan alone and knows no TVM; `hexconv.analyze.sharing` reads lifetimes off it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze.footprint import doubled_caches, has_accumulator
from hexconv.analyze.slabs import row_steps, stripe_slabs
from hexconv.spec import Chain, Plan, tensor_extents
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


def chain_nest(chain: Chain, plan: Plan) -> tuple[Node, ...]:
    """The whole nest. Loops of one iteration are left out, since they leave no trace in the lowered TIR.

    The first copy into a cache with two slots stands before the outermost statement that holds its other copies.
    """
    last, doubled = len(chain.conv) - 1, doubled_caches(chain, plan)
    staged = [_read_filter(index) for index in range(last + 1)] if plan.filters == "resident" else []
    body = _conv(chain, plan, last, (Leaf("write output", (OUTPUT_CACHE,)),))
    whole = (*staged, *_loops((tensor_extents(chain)[-1].batch,), body))
    nodes: list[Node] = []
    for node in whole:
        nodes += [leaf for leaf in _copies_in(node) if leaf.touches[0] in doubled]
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


def _conv(chain: Chain, plan: Plan, index: int, after: tuple[Node, ...] = ()) -> tuple[Node, ...]:
    """A conv in its outer loops: its source is made first, then its filter is read.

    A conv with one row step makes its source once for all of its channel tiles, whatever the order.

    Args:
        chain: the chain.
        plan: the plan.
        index: the number of the conv, from 0.
        after: the statements that follow in each of its tiles.
    """
    channel_tiles = -(-tensor_extents(chain)[index + 1].channel_blocks // plan.k_split)
    stripes = row_steps(chain, plan, index)
    filter = () if plan.filters == "resident" else (_read_filter(index),)
    tile = (*filter, *_blocks(chain, plan, index), *after)
    source = _source(chain, plan, index)
    if plan.order == "h_outer" or stripes == 1:
        return _loops((stripes,), (*source, *_loops((channel_tiles,), tile)))
    return _loops((channel_tiles, stripes), (*source, *tile))


def _source(chain: Chain, plan: Plan, index: int) -> tuple[Node, ...]:
    """Read the input, or run the conv before in steps of its own."""
    if index == 0:
        return (Leaf("read input", (INPUT_CACHE,), copies_in=True),)
    return _conv(chain, plan, index - 1)


def _blocks(chain: Chain, plan: Plan, index: int) -> tuple[Node, ...]:
    """The loops over the blocks of one step; their statements are init, compute and, if there is one, the epilogue."""
    target = target_cache(index + 1, len(chain.conv))
    source = source_cache(index + 1)
    sums = accumulator(index + 1) if has_accumulator(chain, index) else target
    conv = f"conv {index + 1}"
    body: list[Node] = [Leaf(f"{conv} init", (sums,)), Leaf(conv, (sums, source, filter_cache(index + 1)))]
    if sums != target:
        body.append(Leaf(f"{conv} epilogue", (sums, target), elementwise=True))
    return _loops(_step(plan, chain, index), body)


def _step(plan: Plan, chain: Chain, index: int) -> tuple[int, int, int]:
    """The extents of the loops ko_inner, ho_inner and wo."""
    tensor, slabs = tensor_extents(chain)[index + 1], stripe_slabs(chain, plan)[index + 1]
    return min(plan.k_split, tensor.channel_blocks), min(plan.h_split, slabs), tensor.column_blocks


def _loops(extents: Sequence[int], body: Sequence[Node]) -> tuple[Node, ...]:
    """Put `body` inside of loops of these extents, without the loops of one iteration."""
    nodes = tuple(body)
    for extent in reversed(extents):
        nodes = (Loop(extent, nodes),) if extent > 1 else nodes
    return nodes
