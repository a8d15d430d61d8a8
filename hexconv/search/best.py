"""The best plan of one chain: every plan of its space is looked at, so that the answer is exact."""

import time
from dataclasses import replace
from functools import lru_cache

from hexconv.analyze.needed import needed_work
from hexconv.compute.limits import check_supported
from hexconv.errors import InputError
from hexconv.search.found import Found, choose
from hexconv.search.grid import Grid, evaluate, joined
from hexconv.search.machine import rates
from hexconv.search.question import Question
from hexconv.search.space import Space
from hexconv.search.strips import kinds_of_strips, least_bytes
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
    if found.best is None or (bound is not None and found.best.traffic_bytes > bound):
        found = _in_strips(chain, grid, question, found)
    return replace(found, proof=replace(found.proof, seconds=time.perf_counter() - started))


def _in_strips(chain: Chain, grid: Grid, question: Question, found: Found) -> Found:
    """Look at strips of columns too; `grid` and `found` are those of whole rows."""
    passed_over, bound = 0, lower_bound(chain, question)
    for strip in kinds_of_strips(chain, question.plan):
        space = replace(grid.space, strips=(strip,))
        if bound is not None and found.best and least_bytes(chain, strip) >= found.best.traffic_bytes:
            passed_over += space.size
        else:
            grid = joined(grid, evaluate(chain, space, rates(question.plan.arch)))
            found = choose(chain, grid, question, bound)
    return found.beside(passed_over)


def lower_bound(chain: Chain, question: Question) -> int | None:
    """Return the lower bound of traffic in bytes; None for the footprint, and for the latency, which is a model."""
    return sum(needed_work(chain).traffic_bytes.values()) if question.objective == "traffic" else None
