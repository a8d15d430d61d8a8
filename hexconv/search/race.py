"""The best plans by the model of latency, run: the fastest is the answer.

Contenders are the best five plans of the whole chain, what `hexconv run` takes where no plan is stated, if that fits,
and the best cut, its pieces one after the other. Where a run is missing its reason is kept, and the model decides.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hexconv.search.grid import Figures, evaluate
from hexconv.search.laps import CUT, DEFAULT, PLAN, Contender, Lap, Race
from hexconv.search.machine import rates
from hexconv.search.pieces import Cut, Piece
from hexconv.search.planned import Planned
from hexconv.search.question import placed
from hexconv.search.space import Space
from hexconv.spec import Case, Chain, Plan


def contenders(planned: Planned) -> tuple[Contender, ...]:
    """What to run of a chain, the best by the model first; nothing where the answer is no latency on Hexagon."""
    question = planned.question
    if question.objective != "latency" or question.target == "llvm":
        return ()
    return tuple([*_plans(planned), *_default(planned), *_cut(planned)])


def _plans(planned: Planned) -> Iterator[Contender]:
    for figures in planned.found.leading:
        plan = placed(figures.plan, figures.footprint_bytes)
        yield Contender(PLAN, (_case(planned, plan),), figures, figures.latency_packets)


def _default(planned: Planned) -> Iterator[Contender]:
    if planned.question.caches != "all-in-vtcm":
        return  # what a run takes without a plan says nothing of where caches lie
    case = Case(planned.name, planned.chain, Plan(), target=planned.question.target, states_plan=False)
    figures = figures_of(case.chain, case.settled)
    if figures.footprint_bytes <= planned.question.vtcm_bytes:
        yield Contender(DEFAULT, (_case(planned, case.settled),), figures, figures.latency_packets)


def _cut(planned: Planned) -> Iterator[Contender]:
    cut = planned.cuts.best
    if cut and len(cut.pieces) > 1:
        cases = tuple(winner.case for winner in planned.pieces(cut))
        yield Contender(CUT, cases, None, cut.latency_packets)


def _case(planned: Planned, plan: Plan) -> Case:
    return Case(planned.name, planned.chain, plan, target=planned.question.target)


def figures_of(chain: Chain, plan: Plan) -> Figures:
    """The figures of one plan."""
    words = replace(plan, k_split=1, h_split=1, rows=None)
    h_splits, rows = ([], (plan.rows,)) if plan.rows else ([plan.h_split], ())
    space = Space((words,), np.array(h_splits, int), np.array([plan.k_split]), rows)
    return evaluate(chain, space, rates(plan.arch)).figures(0)


def decided(planned: Planned, laps: Sequence[Lap]) -> Planned:
    """A chain with the answer that its race gives."""
    race = Race(tuple(sorted(laps, key=lambda lap: (lap.packets is None, lap.packets or 0))))
    whole = race.whole.contender.figures if race.whole else None
    if race.fastest is None or whole is None:
        return replace(planned, race=race)
    found = replace(planned.found, best=whole)
    if race.fastest.contender.kind == CUT:
        return replace(planned, race=race, found=found)
    together = Cut((Piece(1, len(planned.chain.conv), planned.chain, whole),))
    return replace(planned, race=race, found=found, cuts=replace(planned.cuts, best=together, joints=()))
