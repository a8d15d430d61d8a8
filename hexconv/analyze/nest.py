"""The loop nest of a plan as a tree: which caches are touched where, and how often a loop runs.

It is written from the plan alone and knows no TVM; `hexconv.analyze.sharing` reads lifetimes off it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.analyze.footprint import PredictedCache, cache_footprints, row_steps
from hexconv.spec import Chain, Plan, tensor_extents


@dataclass(frozen=True)
class Leaf:
    """A statement that touches caches.

    Attributes:
        touches: names of caches, those that are read first.
        elementwise: whether it writes each element from the same element of what it reads.
    """

    touches: tuple[str, ...]
    elementwise: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop around statements and other loops."""

    extent: int
    body: "tuple[Node, ...]"


Node = Leaf | Loop


def chain_nest(chain: Chain, plan: Plan) -> tuple[Node, ...]:
    """The whole nest, loops of one iteration left out (they leave no trace in the lowered TIR)."""
    last = len(chain.conv) - 1
    staged = [Leaf((f"filter{index + 1}_cache",)) for index in range(last + 1)] if plan.filters == "resident" else []
    body = _conv(chain, plan, last, (Leaf(("output_cache",)),))
    return (*staged, *_loops((tensor_extents(chain)[-1].batch,), body))


def _conv(chain: Chain, plan: Plan, index: int, after: tuple[Node, ...] = ()) -> tuple[Node, ...]:
    """A conv in its outer loops: its source is made first, then its filter is read.

    A conv with one row step makes its source once for all of its channel tiles, whatever the order.

    Args:
        chain: the chain.
        plan: the plan.
        index: of the conv.
        after: what follows in each of its tiles.
    """
    channel_tiles = -(-tensor_extents(chain)[index + 1].channel_blocks // plan.k_split)
    stripes = row_steps(chain, plan, index)
    filter = () if plan.filters == "resident" else (Leaf((f"filter{index + 1}_cache",)),)
    tile = (*filter, *_blocks(chain, plan, index), *after)
    source = _source(chain, plan, index)
    if plan.order == "h_outer" or stripes == 1:
        return _loops((stripes,), (*source, *_loops((channel_tiles,), tile)))
    return _loops((channel_tiles, stripes), (*source, *tile))


def _source(chain: Chain, plan: Plan, index: int) -> tuple[Node, ...]:
    """Read the input, or run the conv before in steps of its own."""
    if index == 0:
        return (Leaf(("input_cache",)),)
    return _conv(chain, plan, index - 1)


def _blocks(chain: Chain, plan: Plan, index: int) -> tuple[Node, ...]:
    """The blocks of one step: init, compute and, where there is one, the epilogue."""
    caches = {cache.name: cache for cache in cache_footprints(chain, plan)}
    target = "output_cache" if index == len(chain.conv) - 1 else f"intermediate{index + 1}"
    source = f"intermediate{index}" if index else "input_cache"
    sums = f"accumulator{index + 1}" if f"accumulator{index + 1}" in caches else target
    body: list[Node] = [Leaf((sums,)), Leaf((sums, source, f"filter{index + 1}_cache"))]
    if sums != target:
        body.append(Leaf((sums, target), elementwise=True))
    return _loops(_step(plan, chain, index, caches[target]), body)


def _step(plan: Plan, chain: Chain, index: int, target: PredictedCache) -> tuple[int, int, int]:
    """Extents of ko_inner, ho_inner and wo."""
    tensor = tensor_extents(chain)[index + 1]
    return min(plan.k_split, tensor.channel_blocks), min(plan.h_split, target.shape[1]), tensor.column_blocks


def _loops(extents: Sequence[int], body: Sequence[Node]) -> tuple[Node, ...]:
    """`body` inside of loops of these extents, those of one iteration left out."""
    nodes = tuple(body)
    for extent in reversed(extents):
        nodes = (Loop(extent, nodes),) if extent > 1 else nodes
    return nodes
