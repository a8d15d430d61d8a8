"""Find the least memory that allows less traffic: under that limit some cut moves less than the best one does now.

Less memory never allows less traffic, so bisection finds the limit among the footprints on the fronts of all pieces.
Each limit is tried by the recurrence of `hexconv.search.recurrence`.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from hexconv.search.pieces import Cut, Pieces
from hexconv.search.recurrence import best_ways

Steps = dict[tuple[int, int], list[tuple[int, int]]]
"""By piece (first conv, one past its last): footprints and traffic of its front, the smallest footprint first."""


@dataclass(frozen=True)
class Margin:
    """The next lower traffic, and the memory that it takes.

    Attributes:
        footprint_bytes: the least limit that allows less traffic.
        over_bytes: how far that limit is above the given one.
        traffic_bytes: the least traffic under that limit.
    """

    footprint_bytes: int
    over_bytes: int
    traffic_bytes: int


def margin(pieces: Pieces, cut: Cut) -> Margin | None:
    """Find the least memory that allows less traffic than a cut has; None where no memory does."""
    steps, now, limit = _steps(pieces), cut.traffic_bytes, pieces.question.vtcm_bytes
    limits = sorted({footprint for front in steps.values() for footprint, _ in front if footprint > limit})
    least = partial(_least_traffic, steps, pieces.count)
    found = bisect_left(limits, True, key=lambda size: (moved := least(size)) is not None and moved < now)
    if found == len(limits):
        return None
    traffic = least(limits[found])
    assert traffic is not None, "a limit under which a cut exists"
    return Margin(limits[found], limits[found] - limit, traffic)


def _steps(pieces: Pieces) -> Steps:
    """Return the fronts of all pieces that may be part of a cut with less traffic."""
    steps: Steps = {}
    for start, end in combinations(range(pieces.count + 1), 2):
        found = pieces.promising(start, end)
        steps[start, end] = [(one.footprint_bytes, one.traffic_bytes) for one in found.front] if found else []
    return steps


def _least_traffic(steps: Steps, count: int, limit: int) -> int | None:
    """Return the least traffic of any cut of `count` convs under a limit; None where nothing fits."""

    def extended(moved: int, start: int, end: int) -> list[int]:
        return [moved + traffic for footprint, traffic in steps[start, end] if footprint <= limit]

    return best_ways(count, 0, extended).get(count)
