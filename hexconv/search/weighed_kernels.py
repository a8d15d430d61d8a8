"""Weigh kernels for a chain: the best plan of each that serves it, and the one that costs less by the objective.

    best plan on hmx    T 1,513,641
    best plan on hvx    T   619,566    <- the answer

A question names the kernels that it weighs beside that of its plan (`hexconv.search.question.Question.weighs`). Their
plans make one front, so that a cut may take another kernel for each of its pieces (`hexconv.search.cuts`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hexconv.errors import InputError, Unsupported
from hexconv.search.best_plan import REMEMBERED, best_plan
from hexconv.search.found import DIGITS, LEADING, Found, Proof
from hexconv.search.grid import Figures
from hexconv.search.question import COSTS, Question, cost, value
from hexconv.spec import Chain
from hexconv.spec.kernel_choice import refusals
from hexconv.spec.kernels import KERNELS, Kernel

WORDS = {"time_packets": "T", "latency_packets": "packets", "traffic_bytes": "bytes", "footprint_bytes": "VTCM bytes"}
"""How figures are called where kernels are held against each other; T is the time in packets of one thread."""


@lru_cache(REMEMBERED)
def best_weighed(chain: Chain, question: Question) -> Found:
    """Search every plan of a chain, of all kernels that the question weighs.

    Raises:
        InputError: as `best_plan`.
        Unsupported: no plan of any of them can serve the chain.
    """
    found = tuple(by_kernel(chain, question).values())
    return found[0] if len(found) == 1 else _together(found, question)


@lru_cache(REMEMBERED)
def by_kernel(chain: Chain, question: Question) -> Mapping[Kernel, Found]:
    """Search the plans of a chain kernel by kernel, of those that the question weighs and that serve the chain.

    Where none does, the chain gets what the question's own plan falls back to.

    Raises:
        InputError: as `best_plan`.
        Unsupported: no plan of any of them can serve the chain.
    """
    found: dict[Kernel, Found] = {}
    refusals: list[Unsupported] = []
    for asked in question.by_kernel:
        own = computed(chain, asked.plan.kernel, question)
        if (kernel := asked.plan.kernel) and asked.settled(own).plan.kernel == kernel:
            try:
                found[kernel] = _in_threads(own, asked)
            except Unsupported as refusal:
                refusals.append(refusal)
    if found:
        return found
    if refusals:
        raise refusals[0]
    alone = replace(question, weighs=())
    return {alone.settled(chain).plan.kernel or "plain": best_plan(chain, alone)}


def _in_threads(chain: Chain, question: Question) -> Found:
    """Search the plans of a kernel; on the matrix engine one thread serves where the sums of several don't fit."""
    found = best_plan(chain, question)
    if found.best or question.plan.kernel != "hmx" or question.plan.threads == 1:
        return found
    return best_plan(chain, replace(question, plan=replace(question.plan, threads=1)))


@lru_cache(REMEMBERED)
def computed(chain: Chain, kernel: Kernel | None, question: Question) -> Chain:
    """Return what a kernel computes of a chain: on the matrix engine by its own convert, where the question says so.

    Where the engine has no convert for a conv of the chain, all of them are requantised exactly.
    """
    if question.engine == "exact" or kernel != "hmx":
        return chain
    try:
        convs = (
            replace(conv, requantize=conv.requantize and replace(conv.requantize, engine=question.engine))
            for conv in chain.conv
        )
        converted = replace(chain, conv=tuple(convs))
    except InputError:  # such as of int16
        return chain
    return chain if any(refusals(converted, kernel)) else converted


def _together(found: Sequence[Found], question: Question) -> Found:
    """Return the results of several kernels as one: the best of all plans, and the fronts of all."""
    fitting = [one.best for one in found if one.best]
    quick = _lowered((plan for one in found for plan in one.quick), question.quickness, "traffic_bytes", question)
    best = _best(fitting, quick, question)
    own = next((one for one in found if one.best is best), found[0])
    leading = sorted((plan for one in found for plan in one.leading), key=lambda plan: cost(plan, question))
    return replace(
        own,
        best=best,
        leading=tuple([best, *(plan for plan in leading if plan != best)][:LEADING]) if best else (),
        smallest=min((one.smallest for one in found), key=lambda plan: plan.footprint_bytes),
        front=_lowered((plan for one in found for plan in one.front), "footprint_bytes", "traffic_bytes", question),
        quick=quick,
        fewest_packets=min(one.fewest_packets for one in found),
        proof=_all_proofs(own.proof, [one.proof for one in found]),
    )


def _best(fitting: Sequence[Figures], quick: Sequence[Figures], question: Question) -> Figures | None:
    """Return the best of the best plans of kernels; where times are about equal, the one that moves fewer bytes."""
    if not question.slack or not fitting:
        return min(fitting, key=lambda plan: cost(plan, question), default=None)
    most = value(quick[0], question.quickness, question) * (1 + question.slack)
    as_quick = [plan for plan in fitting if value(plan, question.quickness, question) <= most]
    return min(as_quick, key=lambda plan: (plan.traffic_bytes, plan.latency_packets, plan.footprint_bytes))


def _lowered(plans: Iterable[Figures], first: str, second: str, question: Question) -> tuple[Figures, ...]:
    """Return the plans that no other one beats in two figures, the least of the first figure first."""

    def figures(plan: Figures) -> tuple[float, float]:
        return round(float(value(plan, first, question)), DIGITS), float(value(plan, second, question))

    kept: list[Figures] = []
    for plan in sorted(plans, key=figures):
        if not kept or figures(plan)[1] < figures(kept[-1])[1]:
            kept.append(plan)
    return tuple(kept)


def _all_proofs(own: Proof, proofs: Sequence[Proof]) -> Proof:
    """Return the proof of the kernel that was chosen, over the plans of all."""
    names = ("plans", "evaluated", "fitting", "seconds")
    return replace(own, **{name: sum(getattr(proof, name) for proof in proofs) for name in names})


@dataclass(frozen=True)
class Weighed:
    """A piece of a chain, and what it costs at least on each kernel that was weighed.

    Attributes:
        piece: the name of the piece, such as `conv1`.
        kernel: the kernel that it got.
        figure: the figure that the objective compares first, such as `time_packets`.
        least: by kernel, the least of this figure; of the kernel that it got, that of its plan.
        moved_bytes: by kernel, the bytes that this plan moves.
        refused: by kernel, why another one that was to be weighed does not serve the piece, or does not fit.
    """

    piece: str
    kernel: Kernel
    figure: str
    least: dict[Kernel, float]
    moved_bytes: dict[Kernel, int]
    refused: dict[Kernel, str]

    @property
    def why(self) -> str:
        """Say why the piece got its kernel, in figures."""
        others: list[Kernel] = [kernel for kernel in self.least if kernel != self.kernel]
        said = f"{WORDS[self.figure]} {self.least[self.kernel]:,.0f}"
        against = " and ".join(f"{self.least[kernel]:,.0f} on {kernel.upper()}" for kernel in others)
        if not others:
            return "; ".join((said, *self.refused.values()))
        if all(self.least[kernel] >= self.least[self.kernel] for kernel in others) or self.figure == "traffic_bytes":
            return f"{said} against {against}"
        moved = " and ".join(f"{self.moved_bytes[kernel]:,}" for kernel in others)
        return f"{said} against {against}, as quick, bytes {self.moved_bytes[self.kernel]:,} against {moved}"

    @property
    def told(self) -> str:
        """Say which kernel the piece got, and why: `conv1 on HVX: T 619,566 against 1,513,641 on HMX`."""
        return f"{self.piece} on {self.kernel.upper()}: {self.why}{KERNELS[self.kernel].caveat}"


def weighed(piece: str, chain: Chain, figures: Figures, question: Question) -> Weighed | None:
    """Hold the plan of a piece against the best plans of the other kernels; None where none was weighed.

    Args:
        piece: the name of the piece.
        chain: the piece.
        figures: its plan.
        question: the question that it answers.
    """
    if not question.weighs:
        return None
    figure, found = COSTS[question.objective][0], by_kernel(chain, question)
    kernel: Kernel = figures.plan.kernel or "plain"
    plans: dict[Kernel, Figures] = {kernel: figures}
    plans |= {name: one.best for name, one in found.items() if one.best and name != kernel}
    weighed: list[Kernel] = [asked.plan.kernel or "plain" for asked in question.by_kernel]
    return Weighed(
        piece,
        kernel,
        figure,
        {name: float(value(plan, figure, question)) for name, plan in plans.items()},
        {name: plan.traffic_bytes for name, plan in plans.items()},
        {name: _why_not(chain, name, name in found) for name in weighed if name not in plans},
    )


def _why_not(chain: Chain, kernel: Kernel, is_served: bool) -> str:
    """Say why a kernel has no plan for a piece."""
    refusal = next(filter(None, refusals(chain, kernel)), "")
    return refusal or f"{kernel} has no plan {'that fits' if is_served else 'for it'}"
