"""When each cache is live, found by a walk through the loop nest of a plan.

A cache belongs to the innermost loop around everything that touches it, and lives from the first to the last statement
of that loop's body that touches it; a loop is one statement of the body around it. Ring buffers (`halo = "roll"`) and
caches of two slots (`buffering = "double"`) belong to the outermost level, whatever loops touch them: what they hold,
or what is still copied to or from them, outlives every step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze.blocks import PlannedBlocks
from hexconv.analyze.nest import Leaf, Loop, Node, chain_nest
from hexconv.spec.names import source_cache


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

    >>> from hexconv.analyze.rolled_blocks import planned_blocks
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
