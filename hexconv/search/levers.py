"""Explain why no plan of a chain fits: the terms of the smallest plan, and the changes that would make it fit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hexconv.analyze.fit import Term, vtcm_terms
from hexconv.analyze.planned import Planned
from hexconv.search.best_plan import best_plan
from hexconv.search.cuts import Cuts
from hexconv.search.found import Found
from hexconv.search.question import Question
from hexconv.spec import Chain, Plan
from hexconv.spec.capacities import CAPACITIES_BYTES
from hexconv.spec.kernels import Kernel


@dataclass(frozen=True)
class Change:
    """A change to the question that lets a plan fit.

    Attributes:
        what: what to ask for instead, in words.
        demand_bytes: the bytes of VTCM that are then needed.
    """

    what: str
    demand_bytes: int


@dataclass(frozen=True)
class Shortfall:
    """The explanation where no plan fits.

    Attributes:
        demand_bytes: the footprint of the smallest plan.
        vtcm_bytes: the limit.
        gap_bytes: the bytes that are missing.
        terms: the terms of the smallest footprint, largest first.
        levers: the changes that bring the footprint under the limit.
    """

    demand_bytes: int
    vtcm_bytes: int
    gap_bytes: int
    terms: tuple[Term, ...]
    levers: tuple[Change, ...]


def shortfall(chain: Chain, question: Question, found: Found, cuts: Cuts) -> Shortfall:
    """Explain why nothing fits. The search has turned its knobs already, so the changes are to what it holds fixed.

    Args:
        chain: the chain that is planned.
        question: the question about this chain; its plan names the kernel that is used.
        found: the result for the whole chain.
        cuts: the results for the chain in pieces.
    """
    least = found.smallest
    return Shortfall(
        demand_bytes=least.footprint_bytes,
        vtcm_bytes=question.vtcm_bytes,
        gap_bytes=least.footprint_bytes - question.vtcm_bytes,
        terms=vtcm_terms(Planned(chain, least.plan)),
        levers=tuple([*_cut(cuts), *_kernel(chain, question), *_architecture(least.footprint_bytes, question)]),
    )


def _cut(cuts: Cuts) -> Iterator[Change]:
    """Suggest the best cut, where one fits."""
    if cuts.best:
        pieces = " | ".join(piece.name for piece in cuts.best.pieces)
        yield Change(f"cut: {pieces}", cuts.best.footprint_bytes)


def _kernel(chain: Chain, question: Question) -> Iterator[Change]:
    """Suggest the other kernel, where it serves the chain and has a smaller footprint."""
    plan = question.plan
    kernel: Kernel = "hvx" if plan.kernel in (None, "plain") else "plain"
    other = Plan(kernel=kernel, storage=plan.storage, arch=plan.arch, vtcm_bytes=plan.vtcm_bytes)
    asked = replace(question, objective="footprint", plan=other)
    if asked.settled(chain).plan.kernel == kernel and (fits := best_plan(chain, asked).best):
        yield Change(f'kernel = "{kernel}"', fits.footprint_bytes)


def _architecture(demand_bytes: int, question: Question) -> Iterator[Change]:
    """Suggest the first architecture whose VTCM holds the smallest plan."""
    for arch, capacity in CAPACITIES_BYTES.items():
        if question.vtcm_bytes < capacity and demand_bytes <= capacity:
            yield Change(f'arch = "{arch}" with all of its {capacity} bytes', demand_bytes)
            return
