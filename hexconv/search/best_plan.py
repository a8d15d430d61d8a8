"""The best plan of one chain: every plan of its space is looked at, so that the answer is exact among them."""

import time
from dataclasses import replace
from functools import lru_cache

from hexconv.analyze.needed import needed_work
from hexconv.compute.computable import check_supported
from hexconv.errors import InputError
from hexconv.search.found import READ_MORE, TOO_LARGE, Found, choose
from hexconv.search.grid import Grid, evaluate, joined
from hexconv.search.machine import rates
from hexconv.search.question import Question
from hexconv.search.row_grid import nest_footprint
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
    bound = lower_bound(chain, question)
    grid = evaluate(chain, space, rates(question.plan.arch))
    found = choose(chain, grid, question, bound)
    if _may_gain_by_strips(found, question, bound):
        found = _in_strips(chain, grid, question, found)
    return replace(found, proof=replace(found.proof, seconds=time.perf_counter() - started))


def _may_gain_by_strips(found: Found, question: Question, bound: int | None) -> bool:
    """Whether strips of columns are looked at, too: they hold less, and may move less than rows that are made again."""
    if found.best is None or question.objective == "footprint":
        return True
    return bound is not None and found.best.traffic_bytes > bound


def _in_strips(chain: Chain, grid: Grid, question: Question, found: Found) -> Found:
    """Look at strips of columns too; `grid` and `found` are those of whole rows."""
    passed_over, too_large, bound = 0, 0, lower_bound(chain, question)
    least = found.best.traffic_bytes if found.best else None
    grids = [grid]
    for strip in kinds_of_strips(chain, question.plan):
        space = replace(grid.space, strips=(strip,))
        if bound is not None and least is not None and least_bytes(chain, strip) >= least:
            passed_over += space.size
        elif least is not None and least_footprint(chain, space) > question.vtcm_bytes:
            too_large += space.size
        else:
            grids.append(evaluate(chain, space, rates(question.plan.arch)))
            least = _least_traffic(grids[-1], question, least)
    if len(grids) > 1:
        found = choose(chain, joined(grids), question, bound)
    return found.beside(READ_MORE, passed_over).beside(TOO_LARGE, too_large)


def _least_traffic(grid: Grid, question: Question, before: int | None) -> int | None:
    """Return the least traffic of plans that fit, those of a grid and those before it; None where none fits."""
    fitting = grid.traffic_bytes[grid.footprint_bytes <= question.vtcm_bytes]
    known = [] if before is None else [before]
    return min([*known, *([int(fitting.min())] if len(fitting) else [])], default=None)


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


def lower_bound(chain: Chain, question: Question) -> int | None:
    """Return the lower bound of traffic in bytes; None for the footprint, and for the latency, which is a model."""
    return sum(needed_work(chain).traffic_bytes.values()) if question.objective == "traffic" else None
