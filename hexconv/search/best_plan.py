"""The best plan of one chain: every plan of its space is looked at, so that the answer is exact among them."""

import time
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hexconv.analyze.needed import needed_work
from hexconv.compute.computable import check_supported
from hexconv.errors import InputError
from hexconv.search.found import READ_MORE, TOO_LARGE, Found, choose, quickest
from hexconv.search.grid import Figures, Grid, evaluate, joined, nest_footprint
from hexconv.search.machine import rates
from hexconv.search.question import SLACK, Question, cost, ranked, value
from hexconv.search.space import Space, kinds_of_strips, least_bytes
from hexconv.spec import Chain

REMEMBERED = 4096
"""The number of chains whose results are kept: networks repeat their blocks."""


@lru_cache(REMEMBERED)
def best_plan(chain: Chain, question: Question) -> Found:
    """Search every plan of a chain.

    Raises:
        InputError: `question` is no `Question`, or the kernel has no figures for its objective.
        Unsupported: no plan can serve the chain, or it has too many to look at.
    """
    if not isinstance(question, Question):
        raise InputError("best_plan: question", repr(question), "Question(vtcm_bytes), from hexconv")
    question = question.settled(chain)
    question.check(chain)
    check_supported(chain)
    started = time.perf_counter()
    space = Space.of(chain, question.plan, question.storages)
    space.check(chain)
    bound = lower_bound(chain)
    grid = evaluate(chain, space, rates(question.plan.arch))
    found = _in_strips(chain, grid, question, choose(chain, grid, question, bound))
    return replace(found, proof=replace(found.proof, seconds=time.perf_counter() - started))


def _in_strips(chain: Chain, grid: Grid, question: Question, found: Found) -> Found:
    """Look at strips of columns too; `grid` and `found` are those of whole rows."""
    passed_over, too_large, bound = 0, 0, lower_bound(chain)
    grids, known = [grid], _Known(question, found.fewest_packets, found.best, found.quick)
    for strip in kinds_of_strips(chain, question.plan):
        space = replace(grid.space, strips=(strip,))
        if not known.may_gain(least_bytes(chain, strip)):
            passed_over += space.size
        elif known.best and least_footprint(chain, space) > question.vtcm_bytes:
            too_large += space.size
        else:
            grids.append(evaluate(chain, space, rates(question.plan.arch)))
            known = known.beside(grids[-1])
    if len(grids) > 1:
        found = choose(chain, joined(grids), question, bound)
    return found.beside(READ_MORE, passed_over).beside(TOO_LARGE, too_large)


@dataclass(frozen=True)
class _Known:
    """The best plans that were found before all strips are looked at.

    Attributes:
        question: the question.
        fewest_packets: the fewest packets of a plan of whole rows, whatever its memory.
        best: the best plan; None where none fits.
        quick: plans that fit, which no other one beats in packets and in bytes.
    """

    question: Question
    fewest_packets: float
    best: Figures | None
    quick: tuple[Figures, ...]

    def may_gain(self, least_bytes: int) -> bool:
        """Whether plans that move at least so many bytes may be better.

        Strips read and compute what whole rows do, and more: they take about as many packets as the quickest plan of
        whole rows, where memory doesn't count. It is no bound; `reports.plans` tells what a search of all strips gains.
        """
        if self.best is None or self.question.objective == "footprint":
            return True
        least, question = self.fewest_packets * (1 + SLACK), self.question
        if question.objective == "time":
            least = max(least / question.plan.threads, least_bytes / question.beta)
        return not any(
            plan.traffic_bytes <= least_bytes and value(plan, question.quickness, question) <= least
            for plan in self.quick
        )

    def beside(self, grid: Grid) -> "_Known":
        """Return what is known where the plans of another grid are looked at, too."""
        fitting = np.flatnonzero(grid.footprint_bytes <= self.question.vtcm_bytes)
        if not len(fitting):
            return self
        first = grid.figures(int(ranked(grid, fitting, self.question)[0]))
        best = min(filter(None, (self.best, first)), key=lambda figures: cost(figures, self.question))
        return replace(self, best=best, quick=(*self.quick, *quickest(grid, fitting, self.question)))


def least_footprint(chain: Chain, space: Space) -> int:
    """Return a lower bound of the footprints of plans in one kind of strips, in bytes; 0 where no column is kept.

    Caches grow with the height of a stripe, with second slots and with the share of a filter that is staged at a time.
    """
    (strip,) = space.strips
    if strip is None or strip.column_halo == "recompute":
        return 0
    words = tuple(
        words
        for words in space.words
        if strip.goes_with(words) and words.buffering == "single" and words.filters == "per_tile"
    )
    lowest = replace(space, words=words, rows=space.rows[:1], h_splits=space.h_splits[:0])
    return int(nest_footprint(chain, lowest.in_strips(0)).min())


def lower_bound(chain: Chain) -> int:
    """Return the lower bound of traffic in bytes: each needed byte once."""
    return sum(needed_work(chain).traffic_bytes.values())
