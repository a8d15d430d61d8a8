"""The best plan of one chain: every plan is looked at, but for strips of columns that promise nothing.

The answer is exact among the plans that are looked at. `reports.plans` holds it against all.
"""

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import get_args

import numpy as np

from hexconv.analyze.needed import needed_work
from hexconv.compute.computable import check_supported
from hexconv.errors import InputError
from hexconv.search.alike import first_alike
from hexconv.search.found import PASSED_OVER, Found, choose, quickest
from hexconv.search.grid import Figures, Grid, evaluate, joined
from hexconv.search.question import IN_VTCM, SLACK, Question, cost, first_ranked, value
from hexconv.search.space import Space, Strip, kinds_of_strips, least_bytes
from hexconv.spec import Chain
from hexconv.spec.knobs import ColumnHalo

REMEMBERED = 4096
"""The number of chains whose results are kept: networks repeat their blocks."""


def best_plan(chain: Chain, question: Question) -> Found:
    """Search every plan of a chain; questions that settle to the same search share its result.

    Raises:
        InputError: `question` is no `Question`, or the kernel has no figures for its objective.
        Unsupported: no plan can serve the chain, or it has too many to look at.
    """
    if not isinstance(question, Question):  # pyright: ignore[reportUnnecessaryIsInstance]  # of who checks no types
        raise InputError("best_plan: question", repr(question), "Question(vtcm_bytes), from hexconv")
    settled = question.settled(chain)
    settled.check(chain)
    return searched(chain, replace(settled, caches="all-in-vtcm") if settled.caches in IN_VTCM else settled)


@lru_cache(REMEMBERED)
def searched(chain: Chain, question: Question) -> Found:
    """Search every plan of a chain for a settled question.

    Raises:
        Unsupported: no plan can serve the chain, or it has too many to look at.
    """
    check_supported(chain)
    if (first := first_alike(chain, question.plan)) != chain:
        return searched(first, question)
    started = time.perf_counter()
    space = Space.of(chain, question.plan, question.storages)
    space.check(chain)
    found = _in_strips(chain, evaluate(chain, space, question.rates), question)
    return replace(found, proof=replace(found.proof, seconds=time.perf_counter() - started))


def _in_strips(chain: Chain, grid: Grid, question: Question) -> Found:
    """Choose among plans of whole rows, whose grid is given, and those in strips of columns."""
    passed_over = 0
    grids, known = [grid], _Known(question, float(grid.latency_packets.min()), None, ()).beside(grid)
    kinds, stale = kinds_of_strips(chain, question.plan.kernel), dict.fromkeys(get_args(ColumnHalo), 0)
    narrowest, fitting = {strip.column_halo: strip for strip in kinds}, dict[ColumnHalo, int]()

    def in_strips(strip: Strip) -> Grid:
        return evaluate(chain, replace(grid.space, strips=(strip,)), question.rates)

    def is_over(strip: Strip, least: int) -> bool:
        if stale[strip.column_halo] < MOST_STALE or known.may_move_less(least) or strip in narrowest.values():
            return False
        return words_fitting(in_strips(narrowest[strip.column_halo]), question) == fitting[strip.column_halo]

    waiting: list[Strip] = []
    for strip in kinds:
        least = least_bytes(chain, strip)
        if known.may_gain(least) and is_over(strip, least):
            waiting.append(strip)
            continue
        if not known.may_gain(least):
            passed_over += replace(grid.space, strips=(strip,)).size
            continue
        grids.append(in_strips(strip))
        gained, fitting[strip.column_halo] = known.beside(grids[-1]), words_fitting(grids[-1], question)
        is_stale = fitting[strip.column_halo] and question.objective != "footprint" and gained is known
        stale[strip.column_halo] = stale[strip.column_halo] + 1 if is_stale else 0
        if strip in narrowest.values() and gained.best != known.best:
            again = [each for each in waiting if each.column_halo == strip.column_halo]
            waiting = [each for each in waiting if each not in again]
            grids += [in_strips(each) for each in again]
        known = gained
    passed_over += sum(replace(grid.space, strips=(strip,)).size for strip in waiting)
    return choose(chain, joined(grids), question, lower_bound(chain)).beside(PASSED_OVER, passed_over)


MOST_STALE = 8
"""After so many kinds of strips in a row that fit and are no better, narrower ones of that kind are passed over, but
for those that may move fewer bytes where these are asked for, and where the narrowest ones fit with further words. The
narrowest ones, which have room for the highest stripes, are looked at in any case; where they are better than all
others, so are those that were passed over before them."""


def words_fitting(grid: Grid, question: Question) -> int:
    """Count the combinations of words of which some plan fits: narrower strips have room for more of them."""
    fits = grid.footprint_bytes <= question.vtcm_bytes
    words = len(grid.space.in_strips(0).words)
    return int(np.reshape(fits, (words, -1)).any(axis=1).sum()) if words else 0


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
        """Whether strips that move at least so many bytes may be better.

        They compute what whole rows do, and more: they take about as many packets as the quickest plan of whole rows,
        where memory doesn't count. It is no bound; `reports.plans` tells what a search of all strips gains.
        """
        if self.best is None or self.question.objective == "footprint":
            return True
        least, question = self.fewest_packets * (1 + SLACK), self.question
        if question.objective == "traffic" and least_bytes > self.best.traffic_bytes:
            return False
        if question.objective == "time":
            least = max(least / question.plan.threads, least_bytes / question.beta)
        return not any(
            plan.traffic_bytes <= least_bytes and value(plan, question.quickness, question) <= least
            for plan in self.quick
        )

    def may_move_less(self, least_bytes: int) -> bool:
        """Whether the least traffic is asked for, and strips that move at least so many bytes may have less."""
        if self.best is None or self.question.objective != "traffic":
            return False
        return least_bytes < self.best.traffic_bytes

    def beside(self, grid: Grid) -> "_Known":
        """Return what is known where plans of another grid are looked at, too; the same if none of them is better."""
        fitting = np.flatnonzero(grid.footprint_bytes <= self.question.vtcm_bytes)
        if not len(fitting):
            return self
        first = grid.figures(first_ranked(grid, fitting, self.question))
        best = min(filter(None, (self.best, first)), key=lambda figures: cost(figures, self.question))
        quick = tuple(plan for plan in quickest(grid, fitting, self.question) if not self._is_beaten(plan))
        return self if best is self.best and not quick else replace(self, best=best, quick=(*self.quick, *quick))

    def _is_beaten(self, plan: Figures) -> bool:
        """Whether a known plan is about as quick, and moves no more."""
        time = value(plan, self.question.quickness, self.question) * (1 + SLACK)
        return any(
            other.traffic_bytes <= plan.traffic_bytes and value(other, self.question.quickness, self.question) <= time
            for other in self.quick
        )


def lower_bound(chain: Chain) -> int:
    """Return the lower bound of traffic in bytes: each needed byte once."""
    return sum(needed_work(chain).traffic_bytes.values())
