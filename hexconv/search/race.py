"""Run the best plans by the model of latency; the fastest run is the answer.

Contenders are the best five plans of the whole chain, what `hexconv run` takes where no plan is stated, if that fits,
and the best cut, its pieces one after the other. Where a run is missing its reason is kept, and the model decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hexconv.search.cuts import Cut, Piece
from hexconv.search.grid import Figures, evaluate
from hexconv.search.machine import rates
from hexconv.search.plan_runs import CUT, DEFAULT, PLAN, Contender, Lap, Race
from hexconv.search.planned_chains import Answer
from hexconv.search.question import placed
from hexconv.search.space import Space
from hexconv.spec import Case, Chain, Plan


def contenders(answer: Answer) -> tuple[Contender, ...]:
    """Return what to run of a chain, the model's best first; nothing unless the objective is latency on Hexagon."""
    question = answer.question
    if question.objective != "latency" or question.target == "llvm":
        return ()
    return tuple([*_plans(answer), *_default(answer), *_cut(answer)])


def _plans(answer: Answer) -> Iterator[Contender]:
    for figures in answer.found.leading:
        plan = placed(figures.plan, figures.footprint_bytes)
        yield Contender(PLAN, (_case(answer, plan),), figures, figures.latency_packets)


def _default(answer: Answer) -> Iterator[Contender]:
    if answer.question.caches != "all-in-vtcm":
        return  # The plan that a run takes by default doesn't say where caches lie.
    case = Case(answer.name, answer.chain, Plan(), target=answer.question.target, states_plan=False)
    figures = figures_of(case.chain, case.settled)
    if figures.footprint_bytes <= answer.question.vtcm_bytes:
        yield Contender(DEFAULT, (_case(answer, case.settled),), figures, figures.latency_packets)


def _cut(answer: Answer) -> Iterator[Contender]:
    cut = answer.cuts.best
    if cut and len(cut.pieces) > 1:
        cases = tuple(winner.case for winner in answer.pieces(cut))
        yield Contender(CUT, cases, None, cut.latency_packets)


def _case(answer: Answer, plan: Plan) -> Case:
    return Case(answer.name, answer.chain, plan, target=answer.question.target)


def figures_of(chain: Chain, plan: Plan) -> Figures:
    """The figures of one plan."""
    words = replace(plan, k_split=1, h_split=1, rows=None)
    h_splits, rows = ([], (plan.rows,)) if plan.rows else ([plan.h_split], ())
    space = Space((words,), np.array(h_splits, int), np.array([plan.k_split]), rows)
    return evaluate(chain, space, rates(plan.arch)).figures(0)


def decided(answer: Answer, laps: Sequence[Lap]) -> Answer:
    """Return a planned chain whose answer is the winner of its race."""
    race = Race(tuple(sorted(laps, key=lambda lap: (lap.packets is None, lap.packets or 0))))
    whole = race.whole.contender.figures if race.whole else None
    if race.fastest is None or whole is None:
        return replace(answer, race=race)
    found = replace(answer.found, best=whole)
    if race.fastest.contender.kind == CUT:
        return replace(answer, race=race, found=found)
    together = Cut((Piece(1, len(answer.chain.conv), answer.chain, whole),))
    return replace(answer, race=race, found=found, cuts=replace(answer.cuts, best=together, joints=()))
