"""The result of a search: the best plan, and the reason why each other plan was not chosen."""

from dataclasses import dataclass, replace

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.planned import Planned
from hexconv.search.grid import Figures, Grid
from hexconv.search.machine import rates
from hexconv.search.question import COSTS, Question, cost, ranked
from hexconv.search.space import Scope
from hexconv.spec import Chain

LEADING = 5
"""The number of leading plans that are kept."""


@dataclass(frozen=True)
class Excluded:
    """Plans that one bound excludes.

    Attributes:
        bound: the bound, in words.
        plans: the number of plans that it excludes.
    """

    bound: str
    plans: int


@dataclass(frozen=True)
class Proof:
    """Why there is no better plan.

    Attributes:
        method: `exhaustive`: the figures of every plan were computed.
        status: `optimal`, which follows from the method.
        scope: what was held fixed in all plans, and which knobs were turned.
        plans: the number of plans in the space.
        evaluated: the number of plans whose figures were computed: all but those that a bound excludes at once.
        fitting: the number of plans that fit.
        excluded: every plan but the answer, by the bound that excludes it.
        lower_bound: the bytes of traffic that no plan of any kind goes below; None for other objectives.
        model_error: how exact the model's packets are: nine of ten runs differ by no more than this share; None where
            there is no model.
        better_plans: how many plans, fitting or not, are better in the objective.
        least_better: the better plan with the least footprint; None if no plan is better.
        over_bytes: how far the footprint of that plan is above the limit.
        seconds: the time that the search took; 0 where it was not measured.
    """

    method: str
    status: str
    scope: Scope
    plans: int
    evaluated: int
    fitting: int
    excluded: tuple[Excluded, ...]
    lower_bound: int | None
    model_error: float | None
    better_plans: int
    least_better: Figures | None
    over_bytes: int | None
    seconds: float

    @property
    def plans_per_second(self) -> int:
        """The rate of the search."""
        return round(self.evaluated / max(self.seconds, 1e-9))


READ_MORE = "strips that read at least as much as the answer moves"
TOO_LARGE = "strips that keep more columns than fit"
"""Bounds that exclude plans whose figures aren't computed."""


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        best: the best plan that fits; None where nothing fits.
        leading: the best plans that differ in any figure, the best first.
        smallest: the plan with the least footprint, of those whose figures were computed.
        front: the plans on the Pareto front of footprint and traffic, of the same plans.
        proof: the proof that `best` is the best.
    """

    best: Figures | None
    leading: tuple[Figures, ...]
    smallest: Figures
    front: tuple[Figures, ...]
    proof: Proof

    def beside(self, bound: str, plans: int) -> "Found":
        """Return the same result where a bound excludes so many further plans, whose figures weren't computed."""
        if not plans:
            return self
        excluded = (*self.proof.excluded, Excluded(bound, plans))
        return replace(self, proof=replace(self.proof, plans=self.proof.plans + plans, excluded=excluded))

    @property
    def runner_up(self) -> Figures | None:
        """The second best plan that differs in any figure; None if there is none."""
        return next((figures for figures in self.leading if figures != self.best), None)


def choose(chain: Chain, grid: Grid, question: Question, lower_bound: int | None) -> Found:
    """Choose the best plan of a grid, and account for all others."""
    fitting = np.flatnonzero(grid.footprint_bytes <= question.vtcm_bytes)
    order = ranked(grid, fitting, question.objective)
    points = front(grid)
    best = grid.figures(int(order[0])) if len(order) else None
    equal = _equal(grid, order, question)
    better = _better(grid, order, question)
    least = grid.figures(int(ranked(grid, better, "footprint")[0])) if len(better) else None
    return Found(
        best=best,
        leading=_leading(grid, order, question),
        smallest=points[0],
        front=points,
        proof=Proof(
            method="exhaustive",
            status="optimal",
            scope=Scope.of(chain, grid.space),
            plans=grid.space.size,
            evaluated=grid.space.size,
            fitting=len(fitting),
            excluded=_account(grid, order, question, equal) if best else (),
            lower_bound=lower_bound,
            model_error=rates(question.plan.arch).error(Planned(chain, (best or points[0]).plan)),
            better_plans=len(better),
            least_better=least,
            over_bytes=least.footprint_bytes - question.vtcm_bytes if least else None,
            seconds=0.0,
        ),
    )


def _leading(grid: Grid, order: Integers, question: Question) -> tuple[Figures, ...]:
    """Return the first plans of an order that differ in any figure."""
    found: dict[tuple[float, ...], Figures] = {}
    for number in order:
        figures = grid.figures(int(number))
        found.setdefault(cost(figures, question.objective), figures)
        if len(found) == LEADING:
            break
    return tuple(found.values())


def _equal(grid: Grid, order: Integers, question: Question) -> int:
    """Count the plans at the head of the order that have the same figures."""
    same = np.ones(len(order), bool)
    for name in COSTS[question.objective]:
        values = getattr(grid, name)
        if values is not None and len(order):
            same &= (values[order] == values[order[0]]).astype(bool)
    return int(same.sum())


def _better(grid: Grid, order: Integers, question: Question) -> Integers:
    """Return the plans whose objective is less than the answer's; none of these plans fits."""
    objective = getattr(grid, COSTS[question.objective][0])
    if objective is None or not len(order):
        return np.array([], np.int64)
    return np.flatnonzero(objective < objective[order[0]])


def _account(grid: Grid, order: Integers, question: Question, equal: int) -> tuple[Excluded, ...]:
    """Count every plan but the answer under the first bound that excludes it."""
    first, second, third = COSTS[question.objective]
    values = getattr(grid, first)
    as_good = len(order) if values is None else int((values[order] == values[order[0]]).sum())
    return (
        Excluded(f"footprint over {question.vtcm_bytes} bytes", grid.space.size - len(order)),
        Excluded(f"fits, {first} above the answer's", len(order) - as_good),
        Excluded(f"fits, as good, {second} or {third} above the answer's", as_good - equal),
        Excluded("fits, equal in all figures, declared later", equal - 1),
    )


def front(grid: Grid) -> tuple[Figures, ...]:
    """Return the Pareto front of footprint and traffic over all plans, fitting or not.

    No other plan is better than one of these in one figure and at least as good in the other. The smallest footprint
    stands first; of plans equal in both, the one with the fewest MACs is kept.
    """
    return tuple(grid.figures(int(number)) for number in _lowest(grid))


def _lowest(grid: Grid) -> Integers:
    """Return the numbers of the plans on the front."""
    by_footprint = ranked(grid, np.arange(grid.space.size), "footprint")
    traffic = grid.traffic_bytes[by_footprint]
    least_before = np.minimum.accumulate(traffic)[:-1]
    return by_footprint[np.concatenate([[True], traffic[1:] < least_before]).astype(bool)]
