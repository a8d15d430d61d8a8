"""The recurrence over the ways to cut a chain: the best way to cut the first convs, from the best ways to cut fewer."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Way = TypeVar("Way")


def best_ways(
    count: int,
    nothing: Way,
    extended: Callable[[Way, int, int], Iterable[Way]],
    cost: Callable[[Way], Any] = lambda way: way,
) -> dict[int, Way]:
    """Return the best way to cut the first 0, 1, ... `count` convs, where there is one; of equal ways the first.

    Args:
        count: the number of convs.
        nothing: the way to cut no conv.
        extended: from a way to cut the first `start` convs, `start` and `end`, the ways that have convs
            `start` .. `end - 1` as one piece more.
        cost: what is to be least.

    >>> best_ways(3, 0, lambda before, start, end: [before + (end - start) ** 2])
    {0: 0, 1: 1, 2: 2, 3: 3}
    """
    best = {0: nothing}
    for end in range(1, count + 1):
        ways = [way for start, before in best.items() for way in extended(before, start, end)]
        if ways:
            best[end] = min(ways, key=cost)
    return best
