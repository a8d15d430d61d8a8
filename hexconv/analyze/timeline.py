"""When each cache lives, in words: the statements of one walk through the loop nest, and the lives of the caches.

`hexconv.analyze.liveness` has the rule. The caches of HVX kernels are all allocated for the whole run: one statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze.liveness import Life, lives_of
from hexconv.analyze.nest import Leaf, Node, chain_nest
from hexconv.analyze.planned import Planned


@dataclass(frozen=True)
class Timeline:
    """One walk through the loop nest, in which every loop body is run once.

    Attributes:
        statements: what happens, in program order: `read input`, `read filter 1`, `conv 1`, ..., `write output`.
        lives: when each cache lives, in the order of their starts.
    """

    statements: tuple[str, ...]
    lives: tuple[Life, ...]

    def alive(self, statement: int) -> tuple[str, ...]:
        """Names of the caches that live at a statement."""
        return tuple(life.cache for life in self.lives if life.first <= statement <= life.last)


def timeline_of(planned: Planned) -> Timeline:
    """The statements of a plan's loop nest and the lives of its caches.

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> timeline = timeline_of(Planned(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()))
    >>> timeline.statements[:4]
    ('read input', 'read filter 1', 'conv 1 init', 'conv 1')
    >>> timeline.alive(5)
    ('intermediate1', 'filter2_cache', 'output_cache')
    """
    if planned.nest != "blocks":
        return Timeline(("run",), tuple(Life(cache.name, 0, 0) for cache in planned.caches))
    return Timeline(tuple(leaf.does for leaf in _leaves(chain_nest(planned.blocks))), lives_of(planned.blocks))


def _leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    """All statements, in program order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from _leaves(node.body)
