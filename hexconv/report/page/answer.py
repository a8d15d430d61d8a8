"""The head of the page: the traffic of all cases together, and the worst cases, with a better plan for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hexconv.analyze import needed_work
from hexconv.errors import HexconvError
from hexconv.lower.vtcm import capacity_of
from hexconv.report.costs import PlanCost
from hexconv.report.units import in_bytes
from hexconv.report.words import plan_words
from hexconv.search import Question, best_plan
from hexconv.spec import Case, Plan

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
    yield f"In {agreeing} of {len(known)} cases, TVM allocates what the formulas predict."
    yield f"{fitting} of {len(known)} plans fit the VTCM of their architecture."
    moved, needed = sum(one.cost.traffic_bytes for one in known), sum(one.needed_bytes for one in known)
    least = sum(one.extra_bytes <= 0 for one in known)
    reach = f"{least} of {len(known)} reach that"
    yield f"Together they move {in_bytes(moved)}. No plans move less than {in_bytes(needed)}; {reach}."


def _worst(known: Known) -> Worst:
    """Return the line of one case that moves too much."""
    times = known.cost.traffic_bytes / known.needed_bytes
    problem = f"moves {in_bytes(known.cost.traffic_bytes)}, {times:.2f} times what is needed"
    return Worst(known.case.name, known.case.name, problem, _help(known))


def _help(known: Known) -> str:
    """Return a sentence that names the plan that fits with the least traffic, if it is better than the case's own."""
    plan = known.case.settled
    kept = Plan(kernel=plan.kernel, arch=plan.arch, vtcm_bytes=plan.vtcm_bytes)
    try:
        best = best_plan(known.case.chain, Question(capacity_of(plan), plan=kept)).best
    except HexconvError as reason:
        return f"No better plan is known: {reason}"
    if best is None or best.traffic_bytes >= known.cost.traffic_bytes:
        return "No plan that fits moves less."
    kernel = best.plan.kernel if best.plan.rows else None  # stripes of rows are said with the kernel that has them
    words = plan_words(replace(best.plan, kernel=kernel, storage="global", arch="v68", vtcm_bytes=None))
    return f"{words} would move {in_bytes(best.traffic_bytes)} in {in_bytes(best.footprint_bytes)}."
