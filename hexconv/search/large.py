"""Plan spaces too large to look at whole: OR-tools CP-SAT proposes, the closed forms dispose.

The words of a plan, and which convs take more than one row step, split the space into parts. Within a part traffic and
MACs are sums of a table over h_split times a table over k_split (`hexconv.search.work`), so the solver's objective is
exact. Of the footprint it knows a lower bound: caches that one statement touches are live together. Each plan that it
proposes is then evaluated exactly, together with all that differ from it in one split only; the solver goes on without
them, and has to be better than the best so far. When it finds no more, in any part, the best so far is optimal.

Where the footprint itself is to be least, the bound is what the solver makes least, in the same way.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hexconv.search.exact import Integers
from hexconv.search.found import Found, Proof
from hexconv.search.grid import Figures, evaluate
from hexconv.search.machine import Rates
from hexconv.search.model import PartModel
from hexconv.search.objective import cost, ranked
from hexconv.search.pareto import lowest
from hexconv.search.question import Question
from hexconv.search.space import Space
from hexconv.search.stripes import stripes
from hexconv.search.tables import part_tables
from hexconv.spec import Chain

LARGEST_GRID = 1_000_000
"""Plans that are looked at one by one: some seconds' worth. CP-SAT serves spaces above it."""

SECONDS = 60.0
"""For the solver, over all parts."""

EVERYTHING = 2**62
"""A limit that every footprint is under."""


@dataclass
class _Best:
    """What the search has so far.

    Attributes:
        ranking: the best plan of every row evaluated, the best first.
        front: footprint against traffic of all plans evaluated.
        evaluated: how many these are.
        fitting: how many of them fit.
    """

    ranking: list[Figures]
    front: list[Figures]
    evaluated: int = 0
    fitting: int = 0


def search_large(chain: Chain, question: Question, machine: Rates, lower_bound: float | None) -> Found:
    """The best plan of a space that is not looked at whole."""
    space, deadline = Space.of(chain, question.plan), time.monotonic() + SECONDS
    best, closed = _search(chain, space, question, machine, deadline)
    if not best.ranking:
        # Nothing fits, as far as the solver went: what is the least that anything needs?
        anything = replace(question, objective="footprint", vtcm_bytes=EVERYTHING)
        best, closed_too = _search(chain, space, anything, machine, deadline)
        return _found(space, replace(best, fitting=0), None, closed and closed_too, lower_bound)
    return _found(space, best, best.ranking[0], closed, lower_bound)


def _search(chain: Chain, space: Space, question: Question, machine: Rates, deadline: float) -> tuple[_Best, bool]:
    """All parts of a space, one after the other; and whether every one was closed."""
    best, closed = _Best([], []), True
    _evaluate(chain, replace(space, h_splits=space.h_splits[:1]), question, machine, best)
    for part in _parts(chain, space):
        model = PartModel.of(part_tables(chain, part, question, machine), question)
        closed &= _search_part(chain, part, model, machine, best, deadline)
    return best, closed


def _parts(chain: Chain, space: Space) -> Iterator[Space]:
    """Plans of the same words, and of the same convs with more than one row step."""
    several = np.stack([steps > 1 for steps in stripes(chain, space).row_steps], axis=1)
    patterns, of_split = np.unique(several, axis=0, return_inverse=True)
    for words in space.words:
        for pattern in range(len(patterns)):
            yield Space((words,), space.h_splits[of_split.ravel() == pattern], space.k_splits)


def _search_part(chain: Chain, part: Space, model: PartModel, machine: Rates, best: _Best, deadline: float) -> bool:
    """Propose and evaluate until nothing better is left; whether that is certain."""
    by_k = len(part.k_splits) >= len(part.h_splits)
    while proposal := model.propose(best.ranking[0] if best.ranking else None, deadline - time.monotonic()):
        h, k = proposal
        row = replace(part, h_splits=part.h_splits[[h]]) if by_k else replace(part, k_splits=part.k_splits[[k]])
        _evaluate(chain, row, model.question, machine, best)
        model.without(h if by_k else None, None if by_k else k)
    return model.closed


def _evaluate(chain: Chain, row: Space, question: Question, machine: Rates, best: _Best) -> None:
    """The exact figures of a row of plans."""
    grid = evaluate(chain, row, machine)
    fitting: Integers = np.flatnonzero(grid.footprint_bytes <= question.vtcm_bytes)
    best.evaluated += row.size
    best.fitting += len(fitting)
    chosen = [grid.figures(int(number)) for number in ranked(grid, fitting, question.objective)[:2]]
    best.ranking = sorted([*best.ranking, *chosen], key=lambda figures: cost(figures, question.objective))[:2]
    points = [grid.figures(int(number)) for number in lowest(grid)]
    best.front = _lower_front([*best.front, *points])


def _lower_front(points: list[Figures]) -> list[Figures]:
    """Of some plans those that none beats in footprint and traffic."""
    front: list[Figures] = []
    for figures in sorted(points, key=lambda figures: cost(figures, "footprint")):
        if not front or figures.traffic_bytes < front[-1].traffic_bytes:
            front.append(figures)
    return front


def _found(space: Space, best: _Best, answer: Figures | None, closed: bool, lower_bound: float | None) -> Found:
    """The result, with what is certain of it."""
    proof = Proof(
        method="cp-sat",
        status="optimal" if closed else "feasible",
        plans=space.size,
        evaluated=best.evaluated,
        fitting=best.fitting,
        excluded=(),
        lower_bound=lower_bound,
        better_plans=None,
        least_better=None,
        over_bytes=None,
        seconds=0.0,
    )
    runner_up = best.ranking[1] if answer and len(best.ranking) > 1 else None
    smallest = best.front[0]
    return Found(answer, runner_up, smallest, tuple(best.front), proof)
