"""The result of a search: the best plan, and the reason why each other plan was not chosen."""

from dataclasses import dataclass, replace

import numpy as np
from pydantic import computed_field

from hexconv.analyze.exact import Integers
from hexconv.analyze.planned import Planned
from hexconv.search.grid import Figures, Grid
from hexconv.search.question import COSTS, Question, ranked, value
from hexconv.search.space import Scope
from hexconv.spec import Chain

DIGITS = 3
"""The decimal places to which packets and times of a front are compared: sums of floats differ beyond them."""
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
        method: `exhaustive`: the figures of every plan were computed, but for strips that were passed over.
        status: `optimal` among these.
        scope: what was held fixed in all plans, and which knobs were turned.
        plans: the number of plans in the space.
        evaluated: the number of plans whose figures were computed: all but those in strips that were passed over.
        fitting: the number of plans that fit.
        excluded: every plan but the answer, by the bound that excludes it.
        lower_bound: the bytes of traffic that no plan of any kind goes below.
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
    lower_bound: int
    model_error: float | None
    better_plans: int
    least_better: Figures | None
    over_bytes: int | None
    seconds: float

    @computed_field
    @property
    def plans_per_second(self) -> int:
        """The rate of the search."""
        return round(self.evaluated / max(self.seconds, 1e-9))


PASSED_OVER = "narrower strips that were passed over: no better by what they read, or behind four kinds that were none"
"""Why the figures of some plans aren't computed (`hexconv.search.best_plan`); no bound excludes them."""


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        best: the best plan that fits; None where nothing fits.
        leading: the best plans that differ in any figure, the best first.
        smallest: the plan with the least footprint, of those whose figures were computed.
        front: the plans on the Pareto front of footprint and traffic, of the same plans.
        quick: the plans that fit on the Pareto front of packets (or time, where that is the objective) and traffic,
            the quickest first.
        fewest_packets: the fewest packets of a plan, fitting or not.
        proof: the proof that `best` is the best.
    """

    best: Figures | None
    leading: tuple[Figures, ...]
    smallest: Figures
    front: tuple[Figures, ...]
    quick: tuple[Figures, ...]
    fewest_packets: float
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


def choose(chain: Chain, grid: Grid, question: Question, lower_bound: int) -> Found:
    """Choose the best plan of a grid, and account for all others."""
    fitting = np.flatnonzero(grid.footprint_bytes <= question.vtcm_bytes)
    order, by_footprint = ranked(grid, fitting, question), replace(question, objective="footprint")
    points = front(grid, question)
    best = grid.figures(int(order[0])) if len(order) else None
    better = _better(grid, order, question)
    least = grid.figures(int(ranked(grid, better, by_footprint)[0])) if len(better) else None
    return Found(
        best=best,
        leading=_leading(grid, order, question),
        smallest=points[0],
        front=points,
        quick=quickest(grid, fitting, question),
        fewest_packets=float(grid.latency_packets.min()),
        proof=Proof(
            method="exhaustive",
            status="optimal",
            scope=Scope.of(chain, grid.space),
            plans=grid.space.size,
            evaluated=grid.space.size,
            fitting=len(fitting),
            excluded=_account(grid, order, question) if best else (),
            lower_bound=lower_bound,
            model_error=question.rates.error(Planned(chain, (best or points[0]).plan)),
            better_plans=len(better),
            least_better=least,
            over_bytes=least.footprint_bytes - question.vtcm_bytes if least else None,
            seconds=0.0,
        ),
    )


def _leading(grid: Grid, order: Integers, question: Question) -> tuple[Figures, ...]:
    """Return the first plans of an order that differ in any figure."""
    found: dict[tuple[float, ...], int] = {}
    costs = [value(grid, name, question) for name in COSTS[question.objective]]
    for number in order:
        found.setdefault(tuple(column[number] for column in costs), int(number))
        if len(found) == LEADING:
            break
    return tuple(map(grid.figures, found.values()))


def _better(grid: Grid, order: Integers, question: Question) -> Integers:
    """Return the plans with less of the objective than any that fits."""
    if not len(order):
        return np.array([], np.int64)
    objective = value(grid, COSTS[question.objective][0], question)
    return np.flatnonzero(objective < objective[order].min())


def _account(grid: Grid, order: Integers, question: Question) -> tuple[Excluded, ...]:
    """Count every plan but the answer under the first bound that excludes it."""
    first, second, third = COSTS[question.objective]
    objective = value(grid, first, question)[order]
    slack = question.slack
    as_good = order[(objective <= objective.min() * (1 + slack) if slack else objective == objective[0]).astype(bool)]
    compared = (second, third, *([first] if slack else []))
    same = [value(grid, name, question)[as_good] == value(grid, name, question)[order[0]] for name in compared]
    equal = int(np.all([each.astype(bool) for each in same], axis=0).sum())
    within = f" by more than {100 * slack:g} %" if slack else ""
    return (
        Excluded(f"footprint over {question.vtcm_bytes} bytes", grid.space.size - len(order)),
        Excluded(f"fits, {first} above the {'fewest' if slack else 'answer'}'s{within}", len(order) - len(as_good)),
        Excluded(f"fits, as good, {second} or {third} above those of the model's first", len(as_good) - equal),
        Excluded("fits, equal in all figures, declared later", equal - 1),
    )


def quickest(grid: Grid, fitting: Integers, question: Question) -> tuple[Figures, ...]:
    """Return the Pareto front of some plans in packets (or time) and bytes.

    Of plans that move equally few bytes in about the same time, the one with the fewest packets stands for all.
    """
    fitting, moved, times = _promising(grid, fitting, question)
    packets, sizes = (column[fitting].astype(float) for column in (grid.latency_packets, grid.footprint_bytes))
    found: list[int] = []
    for point in lowered(np.lexsort((sizes, packets, moved, times)), moved):
        alike = np.flatnonzero((moved == moved[point]) & (times <= times[point] * (1 + question.slack / 2)))
        found.append(int(fitting[alike[np.lexsort((sizes[alike], packets[alike]))[0]]]))
    return tuple(map(grid.figures, found))


def _promising(grid: Grid, fitting: Integers, question: Question) -> tuple[Integers, Integers, Integers]:
    """Return those of some plans that may be on their front, or stand for such a one, with their bytes and times.

    No plan of the front moves more than the quickest one does, nor takes longer than the one that moves the least, and
    those that stand for one are longer by no more than what counts as equal.
    """
    moved = grid.traffic_bytes[fitting].astype(float)
    times = value(grid, question.quickness, question)[fitting].astype(float).round(DIGITS)
    if not len(fitting):
        return fitting, moved, times
    most_moved, longest = moved[times == times.min()].min(), times[moved == moved.min()].min()
    kept = (moved <= most_moved) & (times <= longest * (1 + question.slack / 2))
    return fitting[kept], moved[kept], times[kept]


def lowered(order: Integers, values: Integers) -> Integers:
    """Return those of an order of plans whose value is less than that of all before it.

    >>> lowered(np.array([2, 0, 1, 3]), np.array([5, 6, 7, 3])).tolist()
    [2, 0, 3]
    """
    along = values[order]
    return order[np.concatenate([[True], along[1:] < np.minimum.accumulate(along)[:-1]]).astype(bool)[: len(order)]]


def front(grid: Grid, question: Question) -> tuple[Figures, ...]:
    """Return the Pareto front of footprint and traffic over all plans, fitting or not.

    No other plan is better than one of these in one figure and at least as good in the other. The smallest footprint
    stands first; of plans equal in both, the one with the fewest packets is kept.
    """
    by_footprint = ranked(grid, np.arange(grid.space.size), replace(question, objective="footprint"))
    return tuple(grid.figures(int(number)) for number in lowered(by_footprint, grid.traffic_bytes))
