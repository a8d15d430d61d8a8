"""Which cache lives when: the statements of one walk through the loop nest, and the first and last of each cache.

A cache belongs to the innermost loop around everything that touches it and lives from the first to the last statement
of that loop's body that touches it; where that statement is a loop, to that loop's end (`hexconv.analyze.sharing` has
the rule, and what it leads to). Rings and resident filters belong to the outermost level.

The caches of HVX kernels are all allocated for the whole run: one statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze.hvx import hvx_footprints
from hexconv.analyze.nest import Leaf, Loop, Node, chain_nest
from hexconv.analyze.sharing import ROLLED
from hexconv.spec import Chain, Plan, kernel_of


@dataclass(frozen=True)
class Life:
    """When one cache lives.

    Attributes:
        cache: its name.
        first: index of the first statement of its life.
        last: index of the last one, included.
    """

    cache: str
    first: int
    last: int


@dataclass(frozen=True)
class Timeline:
    """One walk through the loop nest, every loop body once.

    Attributes:
        statements: what happens, in program order: `read input`, `read filter 1`, `conv 1`, ..., `write output`.
        lives: of every cache, in the order of their starts.
    """

    statements: tuple[str, ...]
    lives: tuple[Life, ...]

    def alive(self, statement: int) -> tuple[str, ...]:
        """Names of the caches that live at a statement."""
        return tuple(life.cache for life in self.lives if life.first <= statement <= life.last)


def lifetimes(chain: Chain, plan: Plan) -> Timeline:
    """The statements of a plan's loop nest and the lives of its caches.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128)
    >>> timeline = lifetimes(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> timeline.statements[:4]
    ('read input', 'read filter 1', 'conv 1 init', 'conv 1')
    >>> timeline.alive(5)
    ('intermediate1', 'filter2_cache', 'output_cache')
    """
    if kernel_of(chain, plan) == "hvx":
        return Timeline(("run",), tuple(Life(cache.name, 0, 0) for cache in hvx_footprints(chain, plan)))
    nest = chain_nest(chain, plan)
    leaves = list(_leaves(nest))
    kept = ROLLED if plan.halo == "roll" else ()
    rings = frozenset(name for leaf in leaves for name in leaf.touches if name.startswith(kept) and kept)
    lives = sorted(_lives(nest, 0, frozenset(), rings), key=lambda life: (life.first, life.last))
    return Timeline(tuple(_names(leaves)), tuple(lives))


def _leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    """All statements, in program order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from _leaves(node.body)


def _lives(nodes: Sequence[Node], start: int, outside: frozenset[str], rings: frozenset[str]) -> Iterator[Life]:
    """The lives of the caches that belong to one loop body and to those inside of it.

    Args:
        nodes: the body.
        start: index of its first statement.
        outside: caches that a loop further out owns.
        rings: caches that this body owns whatever touches them.
    """
    spans: list[tuple[int, int]] = []
    users: dict[str, list[int]] = {}
    for at, node in enumerate(nodes):
        inside = list(_leaves((node,)))
        begin = spans[-1][1] if spans else start
        spans.append((begin, begin + len(inside)))
        for name in dict.fromkeys(name for leaf in inside for name in leaf.touches):
            users.setdefault(name, []).append(at)
    mine = frozenset(name for name, at in users.items() if len(at) > 1 or name in rings) - outside
    for name in users:
        if name in mine:
            yield Life(name, spans[users[name][0]][0], spans[users[name][-1]][1] - 1)
    for node, (begin, _) in zip(nodes, spans, strict=True):
        if isinstance(node, Loop):
            yield from _lives(node.body, begin, outside | mine, frozenset())


def _names(leaves: Sequence[Leaf]) -> Iterator[str]:
    """What each statement does."""
    computing = 0
    for index, leaf in enumerate(leaves):
        first = leaf.touches[0]
        if leaf.elementwise:
            yield f"conv {computing} epilogue"
        elif len(leaf.touches) > 1:
            yield f"conv {computing}"
        elif first == "input_cache":
            yield "read input"
        elif first.startswith("filter"):
            yield f"read filter {first.removeprefix('filter').removesuffix('_cache')}"
        elif index == len(leaves) - 1:
            yield "write output"
        else:
            computing += 1
            yield f"conv {computing} init"
