"""The loop nest of a plan as a tree: which caches are touched where, and how often a loop runs.

It is written from the plan alone and knows no TVM; `hexconv.analyze.sharing` reads lifetimes off it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze.footprint import doubled_caches, has_accumulator, row_steps, stripe_slabs
from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, accumulator, filter_cache, source_cache, target_cache


@dataclass(frozen=True)
class Leaf:
    """A statement that touches caches.

    Attributes:
        touches: names of caches, those that are read first.
        elementwise: whether it writes each element from the same element of what it reads.
        copies_in: whether it copies from memory to a cache.
    """

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
    staged = [_copy_in(filter_cache(index + 1)) for index in range(last + 1)] if plan.filters == "resident" else []
    body = _conv(chain, plan, last, (Leaf((OUTPUT_CACHE,)),))
    whole = (*staged, *_loops((tensor_extents(chain)[-1].batch,), body))
    return tuple(part for node in whole for part in (*(_copy_in(n) for n in _copied_in(node) if n in doubled), node))


def _copy_in(cache: str) -> Leaf:
    """The statement that fills a cache from memory."""
    return Leaf((cache,), copies_in=True)


def _copied_in(node: Node) -> Iterator[str]:
    """The caches that a node fills from memory, in program order."""
    if isinstance(node, Loop):
        yield from (name for child in node.body for name in _copied_in(child))
    elif node.copies_in:
        yield from node.touches


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
    filter = () if plan.filters == "resident" else (_copy_in(filter_cache(index + 1)),)
    tile = (*filter, *_blocks(chain, plan, index), *after)
    source = _source(chain, plan, index)
    if plan.order == "h_outer" or stripes == 1:
        return _loops((stripes,), (*source, *_loops((channel_tiles,), tile)))
    return _loops((channel_tiles, stripes), (*source, *tile))


def _source(chain: Chain, plan: Plan, index: int) -> tuple[Node, ...]:
    """Read the input, or run the conv before in steps of its own."""
    if index == 0:
        return (_copy_in(INPUT_CACHE),)
    return _conv(chain, plan, index - 1)


def _blocks(chain: Chain, plan: Plan, index: int) -> tuple[Node, ...]:
    """The loops over the blocks of one step; their statements are init, compute and, if there is one, the epilogue."""
    target = target_cache(index + 1, len(chain.conv))
    source = source_cache(index + 1)
    sums = accumulator(index + 1) if has_accumulator(chain, index) else target
    body: list[Node] = [Leaf((sums,)), Leaf((sums, source, filter_cache(index + 1)))]
    if sums != target:
        body.append(Leaf((sums, target), elementwise=True))
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
