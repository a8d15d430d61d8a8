"""The head of the page: the traffic of all cases together, and the worst cases, with a better plan for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.analyze import needed_work
from hexconv.errors import HexconvError
from hexconv.report.costs import PlanCost
from hexconv.report.words import changed_knobs, counted, in_bytes, knob_words, times
from hexconv.search import Question, best_plan
from hexconv.spec import Case
from hexconv.spec.capacities import capacity_of

MOST_WORST = 3
WASTEFUL_SHARE = 0.01
"""The share of the needed bytes that a case must move in excess to get a line."""


@dataclass(frozen=True)
class Known:
    """What the head of the page needs to know about one case.

    Attributes:
        case: the case.
        cost: the cost of its plan.
        agrees: whether the closed form and TVM give the same sizes of caches.
    """

    case: Case
    cost: PlanCost
    agrees: bool

    @property
    def needed_bytes(self) -> int:
        """The traffic if every needed byte is moved once: the lower bound."""
        return sum(needed_work(self.case.chain).traffic_bytes.values())

    @property
    def extra_bytes(self) -> int:
        """The traffic above the lower bound, which another plan might save."""
        return self.cost.traffic_bytes - self.needed_bytes


@dataclass(frozen=True)
class Worst:
    """A case or chain that moves more than it must: its name, the case to link to, by how much, and what would help."""

    name: str
    case: str
    problem: str
    help: str


@dataclass(frozen=True)
class Answer:
    """The head of the page.

    Attributes:
        totals: sentences about all cases.
        worst: the cases with the most bytes to save, the worst one first.
    """

    totals: tuple[str, ...]
    worst: tuple[Worst, ...]

    @classmethod
    def of(cls, known: Sequence[Known]) -> "Answer":
        """Sum up the cases of a page."""
        wasteful = [one for one in known if one.extra_bytes > WASTEFUL_SHARE * one.needed_bytes]
        wasteful.sort(key=lambda one: one.extra_bytes, reverse=True)
        return cls(tuple(_totals(known)), tuple(map(_worst, wasteful[:MOST_WORST])))


def _totals(known: Sequence[Known]) -> Iterator[str]:
    """Yield sentences about all cases together."""
    agreeing, fitting = sum(one.agrees for one in known), sum(one.cost.fits for one in known)
    yield f"In {agreeing} of {counted(len(known), 'case')}, TVM allocates what the formulas predict."
    yield f"{fitting} of {counted(len(known), 'plan')} {'fits' if fitting == 1 else 'fit'} VTCM."
    moved, extra = sum(one.cost.traffic_bytes for one in known), sum(one.extra_bytes for one in known)
    who = "It moves" if len(known) == 1 else "Together they move"
    beyond = f"{in_bytes(extra)} above the lower bound of all plans" if extra else "the lower bound of all plans"
    reached = sum(not one.extra_bytes for one in known)
    reach = f"; {reached} of {len(known)} {'reaches' if reached == 1 else 'reach'} it"
    yield f"{who} {in_bytes(moved)}, {beyond}{reach if extra and len(known) > 1 else ''}."


def _worst(known: Known) -> Worst:
    """Return the line of one case that moves too much."""
    much = times(known.cost.traffic_bytes, known.needed_bytes)
    problem = f"moves {in_bytes(known.cost.traffic_bytes)}, {much} times what is needed"
    return Worst(known.case.name, known.case.name, problem, _help(known))


def _help(known: Known) -> str:
    """Return a sentence that names what to change for the plan that fits with the least traffic, if it moves less."""
    try:
        best = best_plan(known.case.chain, Question(capacity_of(known.case.settled), plan=known.case.settled)).best
    except HexconvError as reason:
        return f"No better plan is known: {reason}"
    if best is None or best.traffic_bytes >= known.cost.traffic_bytes:
        return "No searched plan that fits moves less."
    knobs = knob_words(changed_knobs(known.case, best.plan))
    return f"With {knobs} it would move {in_bytes(best.traffic_bytes)} in {in_bytes(best.footprint_bytes)}."
