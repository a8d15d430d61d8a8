"""Why no plan of a chain fits, by the terms of the smallest, and what would make it fit, each with its demand."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hexconv.analyze.fit import Term, vtcm_terms
from hexconv.lower.vtcm import capacities_bytes
from hexconv.search.best import best_plan
from hexconv.search.cuts import Cuts
from hexconv.search.found import Found
from hexconv.search.question import Question, has_places
from hexconv.spec import Chain, Plan
from hexconv.spec.kernels import Kernel


@dataclass(frozen=True)
class Change:
    """Something else to ask for: what, and the VTCM that is then needed."""

    what: str
    demand_bytes: int


@dataclass(frozen=True)
class Shortfall:
    """Nothing fits: why, and what would.

    Attributes:
        demand_bytes: of the smallest plan of all.
        vtcm_bytes: what there is.
        gap_bytes: how much is missing.
        terms: what that demand is made of, largest first.
        levers: changes that bring it under.
    """

    demand_bytes: int
    vtcm_bytes: int
    gap_bytes: int
    terms: tuple[Term, ...]
    levers: tuple[Change, ...]


def shortfall(chain: Chain, question: Question, found: Found, cuts: Cuts) -> Shortfall:
    """Why nothing fits. Every knob of the search has been turned; what is left is what the search holds fixed.

    Args:
        chain: that is planned.
        question: about this chain: its plan names the kernel that is used.
        found: of the whole chain.
        cuts: of the chain in pieces.
    """
    least = found.smallest
    return Shortfall(
        demand_bytes=least.footprint_bytes,
        vtcm_bytes=question.vtcm_bytes,
        gap_bytes=least.footprint_bytes - question.vtcm_bytes,
        terms=vtcm_terms(chain, least.plan),
        levers=tuple([*_cut(cuts), *_kernel(chain, question), *_architecture(least.footprint_bytes, question)]),
    )


def _cut(cuts: Cuts) -> Iterator[Change]:
    """The best cut, where one fits."""
    if cuts.best:
        pieces = " | ".join(piece.name for piece in cuts.best.pieces)
        yield Change(f"cut: {pieces}", cuts.best.footprint_bytes)


def _kernel(chain: Chain, question: Question) -> Iterator[Change]:
    """The other kernel, where it serves the chain and takes less."""
    plan = question.plan
    kernel: Kernel = "hvx" if plan.kernel in (None, "plain") else "plain"
    other = Plan(kernel=kernel, storage=plan.storage, arch=plan.arch, vtcm_bytes=plan.vtcm_bytes)
    asked = replace(question, objective="footprint", plan=other)
    if asked.settled(chain).plan.kernel == kernel and (fits := best_plan(chain, asked).best):
        yield Change(f'kernel = "{kernel}"', fits.footprint_bytes)


def _architecture(demand_bytes: int, question: Question) -> Iterator[Change]:
    """The first architecture whose VTCM holds the smallest plan; none for kernels that have no caches there."""
    if not has_places(question.plan):
        return
    for arch, capacity in capacities_bytes().items():
        if question.vtcm_bytes < capacity and demand_bytes <= capacity:
            yield Change(f'arch = "{arch}" with all of its {capacity} bytes', demand_bytes)
            return
