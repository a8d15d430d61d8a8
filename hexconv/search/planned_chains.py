"""Planned chains: the best plan of the whole, the best cut, the cases that run them; and many chains of a network.

A folder is a network: its case files are chains, in the order of its manifest, else of their names. One core runs one
chain at a time, so traffic, MACs and packets add up, and the largest footprint counts. What a call moves outside of
chains is added as the manifest lists it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hexconv.errors import InputError, Unsupported
from hexconv.model import MANIFEST, ChainEntry, Manifest, NotTaken
from hexconv.search.adds_apart import separate_cut
from hexconv.search.cuts import Cut, Cuts, Front, Piece, best_cuts
from hexconv.search.found import Found
from hexconv.search.grid import Figures, figures_of
from hexconv.search.levers import Shortfall, shortfall
from hexconv.search.question import COSTS, IN_VTCM, SLACK, Question, in_bands, placed, value
from hexconv.search.weighed_kernels import Weighed, best_weighed, computed, weighed
from hexconv.spec import Case, Chain, KernelChoice, Plan, nest_of
from hexconv.spec.kernels import Kernel
from hexconv.spec.plan import WITHOUT_TAG
from hexconv.spec.vectors import vectors_bytes
from hexconv.working import each


@dataclass(frozen=True)
class Winner:
    """A case that the search recommends, and its figures."""

    case: Case
    figures: Figures


DEFAULT, PLAN, CUT = "default", "plan", "cut"


@dataclass(frozen=True)
class Contender:
    """A plan or a cut that takes part in a race.

    Attributes:
        kind: `plan`, the whole chain; `default`, what a run takes without a plan; `cut`.
        cases: the cases to run: one, or the pieces of a cut.
        cut: the pieces and their figures.
    """

    kind: str
    cases: tuple[Case, ...]
    cut: Cut

    @property
    def model_packets(self) -> float:
        """The packets of all cases, by the model."""
        return self.cut.latency_packets


@dataclass(frozen=True)
class ContenderRun:
    """A simulator run of one contender.

    Attributes:
        contender: the contender that ran.
        packets: the packets of all its cases; None where a run is missing.
        said: why a run is missing; empty where none is.
    """

    contender: Contender
    packets: int | None
    said: str = ""

    @property
    def model_error(self) -> float | None:
        """The error of the model, as a share of the packets that the run took."""
        return self.contender.model_packets / self.packets - 1 if self.packets else None


@dataclass(frozen=True)
class Race:
    """The simulator runs of the candidate plans of a chain, the fewest packets first, then those that are missing.

    There are none where they could save too little of the packets of all chains.
    """

    runs: tuple[ContenderRun, ...]

    @cached_property
    def best(self) -> ContenderRun | None:
        """The run that moves the fewest bytes, of those with about the fewest packets; None where nothing was run."""
        ran = [(run, run.packets) for run in self.runs if run.packets is not None]
        if not ran:
            return None
        quick = [each for each in ran if each[1] <= ran[0][1] * (1 + SLACK)]
        return min(quick, key=lambda each: (each[0].contender.cut.traffic_bytes, each[1]))[0]

    @property
    def default(self) -> ContenderRun | None:
        """The run of what a run takes without a plan; None where that doesn't fit."""
        return next((run for run in self.runs if run.contender.kind == DEFAULT), None)


@dataclass(frozen=True)
class Answer:
    """The answer to a question about one chain.

    Attributes:
        name: the name of the chain.
        chain: the chain.
        question: the question that was asked.
        found: the result for the whole chain as one piece.
        cuts: the results for the chain in pieces.
        shortfall: why the whole chain does not fit; None where it does.
        race: the runs of the plans that the model puts first; None where nothing was to be run.
        all_in_vtcm: the best plan of the whole chain with all caches in VTCM, where other places were tried too; None
            where no such plan fits.
        cut_in_vtcm: the best cut with all caches in VTCM, likewise.
        unplanned: what `hexconv run` takes where no plan is stated; None where it doesn't fit.
        other_speeds: for the objective time, the answer where memory is half and twice as fast.
    """

    name: str
    chain: Chain
    question: Question
    found: Found
    cuts: Cuts
    shortfall: Shortfall | None
    race: Race | None = None
    all_in_vtcm: Figures | None = None
    cut_in_vtcm: Cut | None = None
    unplanned: Figures | None = None
    other_speeds: tuple["OtherSpeed", ...] = ()

    @property
    def kernels(self) -> tuple[KernelChoice, ...]:
        """The kernel of every conv: of the pieces of the answer, or of the whole chain where nothing fits."""
        if self.question.weighs and self.winners:
            return tuple(choice for winner in self.winners for choice in winner.case.kernels)
        chains = [winner.case.chain for winner in self.winners] or [self.chain]
        return tuple(choice for chain in chains for choice in self.question.kernels(chain))

    @cached_property
    def weighed(self) -> tuple[Weighed, ...]:
        """What each piece of the best cut costs on each kernel; none where no kernels were weighed."""
        pieces = self.cuts.best.pieces if self.cuts.best else ()
        found = (weighed(piece.name, piece.chain, piece.figures, self.question) for piece in pieces)
        return tuple(one for one in found if one)

    @property
    def is_counted(self) -> bool:
        """Whether runs decided for its plans."""
        return bool(self.race and self.race.best)

    @property
    def fused(self) -> Winner | None:
        """The whole chain under its best plan."""
        whole = self.found.best and Piece(1, len(self.chain.conv), self.chain, self.found.best)
        return self._winner(self.name, whole) if whole else None

    def pieces(self, cut: Cut) -> tuple[Winner, ...]:
        """Return the pieces of a cut as cases, named after the chain and their convs."""
        whole = len(cut.pieces) == 1
        names = (self.name if whole else f"{self.name}-{piece.name}" for piece in cut.pieces)
        return tuple(self._winner(name, piece) for name, piece in zip(names, cut.pieces, strict=True))

    def cases(self, cut: Cut) -> tuple[Case, ...]:
        """Return the cases that run a cut."""
        return tuple(winner.case for winner in self.pieces(cut))

    @property
    def winners(self) -> tuple[Winner, ...]:
        """The recommended cases: the whole chain, or the pieces of a better cut; empty if nothing fits."""
        return self.pieces(self.cuts.best) if self.cuts.best else ()

    @property
    def is_cut(self) -> bool:
        """Whether the answer is a chain in pieces."""
        return len(self.winners) > 1

    @cached_property
    def separate(self) -> Cut | None:
        """The chain with every conv in its own piece, and Adds between them; None where a conv doesn't fit."""
        return separate_cut(self.chain, self.question)

    @property
    def saved_bytes(self) -> int | None:
        """The traffic of all convs apart minus that of the best cut; None where either does not fit."""
        before, after = self.separate, self.cuts.best
        return before.traffic_bytes - after.traffic_bytes if before and after else None

    def _winner(self, name: str, piece: Piece) -> Winner:
        chain, figures, question = piece.chain, piece.figures, self.question
        found, plan = weighed(piece.name, chain, figures, question), placed(figures.plan, figures.footprint_bytes)
        chain = computed(chain, figures.plan.kernel, question)
        return Winner(Case(name, chain, plan, target=question.target, weighed=found.why if found else ""), figures)


def plan_chain(case: Case, question: Question) -> Answer:
    """Plan one chain.

    Args:
        case: the chain and its name; of its plan only the kernel and the architecture are kept.
        question: the limit and the objective; its plan is the case's.

    Raises:
        InputError: the kernel has no figures for the objective.
        Unsupported: no plan can serve the chain.
    """
    question = question.about(case.chain)
    answer, quickest = _planned(case, question)
    if question.caches == "as-needed" and _is_short_of_vtcm(answer):
        try:
            outside = _planned(case, replace(question, caches="anywhere"))
        except Unsupported:  # there are more of such plans than a search looks at
            if answer.cuts.best is None:
                raise
            answer = replace(answer, question=replace(question, caches="all-in-vtcm"))
        else:
            if _is_better(outside[0].cuts.best, answer.cuts.best, question):
                answer, quickest = outside
    return _beside_others(answer, quickest)


MUCH = 1.5
"""An answer that moves more than so many times the needed bytes may move less with caches outside of VTCM."""


def _is_short_of_vtcm(answer: Answer) -> bool:
    """Whether caches outside of VTCM may help: nothing fits, or an answer of HVX kernels moves many bytes."""
    best = answer.cuts.best
    if best is None:
        return True
    is_of_rows = all(nest_of(piece.chain, piece.figures.plan) == "rows" for piece in best.pieces)
    moves_much = best.traffic_bytes > MUCH * answer.found.proof.lower_bound
    return is_of_rows and moves_much and answer.question.objective != "footprint"


def _is_better(cut: Cut | None, other: Cut | None, question: Question) -> bool:
    """Whether a cut is better than another one by more than what counts as equal."""
    if cut is None or other is None:
        return cut is not None
    first = COSTS[question.objective][0]
    return value(cut, first, question) < value(other, first, question) * (1 - SLACK)


def _planned(case: Case, question: Question) -> tuple[Answer, Cut | None]:
    """Plan one chain, its caches placed in one way; and return the best cut before it is held against no plan."""
    found, cuts = best_weighed(case.chain, question), best_cuts(case.chain, question)
    missing = None if found.best else shortfall(case.chain, question.settled(case.chain), found, cuts)
    default = _unplanned(case, question)
    held = _no_worse(cuts, default, case.chain, question)
    return Answer(case.name, case.chain, question, found, held, missing, unplanned=default), cuts.best


def _beside_others(answer: Answer, quickest: Cut | None) -> Answer:
    """Return the answer to a question beside what it would be with all caches in VTCM, and with memory of other speeds.

    Args:
        answer: the answer.
        quickest: the best cut before it was held against no plan.
    """
    chain, question = answer.chain, answer.question
    usual = None if question.caches in IN_VTCM else replace(question, caches="all-in-vtcm")
    return replace(
        answer,
        all_in_vtcm=best_weighed(chain, usual).best if usual else None,
        cut_in_vtcm=best_cuts(chain, usual).best if usual else None,
        other_speeds=other_speeds(chain, question, quickest) if quickest and question.objective == "time" else (),
    )


PAID = 0.01
"""The share of the least time that is paid for an answer that isn't worse than no plan in bytes nor in packets."""


def _no_worse(cuts: Cuts, default: Figures | None, chain: Chain, question: Question) -> Cuts:
    """Return the cuts by one that isn't worse than no plan in bytes nor in packets, where the quickest is in either.

    A plan may be quicker by the model of time alone: its steps hide more of their copies. It stays the answer where all
    others take more than `PAID` longer, and where another kernel than that of no plan is asked for.
    """
    if question.objective != "time" or not default or not cuts.best or not _is_worse(cuts.best, default):
        return cuts
    if question.plan.kernel not in (None, default.plan.kernel):
        return cuts
    whole = Cut((Piece(1, len(chain.conv), chain, default),))
    most = cuts.best.time_packets(question.beta) * (1 + PAID)
    others = [cut for cut in (*cuts.quick, whole) if not _is_worse(cut, default)]
    quick = [cut for cut in others if cut.time_packets(question.beta) <= most]
    return cuts.by(min(quick, key=lambda cut: cut.traffic_bytes, default=cuts.best))


def _is_worse(cut: Cut, default: Figures) -> bool:
    """Whether a cut moves more bytes, or takes more packets."""
    return cut.traffic_bytes > default.traffic_bytes or cut.latency_packets > default.latency_packets


def _unplanned(case: Case, question: Question) -> Figures | None:
    """Return the figures of what a run takes where no plan is stated; None where it doesn't fit."""
    if question.caches not in IN_VTCM:
        return None  # It doesn't say where caches lie.
    asked, threads = question.plan, question.plan.threads
    settled = Case(case.name, case.chain, in_bands(threads), target=question.target, states_plan=False).settled
    figures = figures_of(case.chain, replace(settled, arch=asked.arch), question.rates)
    return figures if figures.footprint_bytes <= question.vtcm_bytes else None


SPEEDS = (0.5, 2.0)
"""How fast memory may be, as a share of what is expected, where an answer says how it would change."""


@dataclass(frozen=True)
class OtherSpeed:
    """The answer where memory is faster or slower than expected.

    Attributes:
        bytes_per_packet: the bytes that copies move in the time of a packet.
        answer_packets: the time that the answer takes then, in packets.
        least_packets: the time of the best plan then.
        best: that plan.
    """

    bytes_per_packet: float
    answer_packets: float
    least_packets: float
    best: Cut


def other_speeds(chain: Chain, question: Question, cut: Cut) -> tuple[OtherSpeed, ...]:
    """Plan a chain for memory of half and of twice the speed, and hold the answer against it."""
    found = []
    for share in SPEEDS:
        speed = question.beta * share
        best = best_cuts(chain, replace(question, bytes_per_packet=speed)).best
        assert best, "what fits doesn't depend on how fast memory is"
        found.append(OtherSpeed(speed, cut.time_packets(speed), best.time_packets(speed), best))
    return tuple(found)


@dataclass(frozen=True)
class Refused:
    """A chain that no plan can serve, and why.

    Attributes:
        name: the name of its case.
        reason: why no plan can serve it, in words.
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Total:
    """The costs of one call: of all chains, and of the operators outside of them where the manifest lists any.

    Attributes:
        chains: the number of chains that were planned.
        convs: the number of convs in these chains.
        pieces: the number of fused pieces in the plan.
        before_bytes: the bytes that a call moves with every conv apart; None where a conv does not fit.
        after_bytes: the same as planned.
        saved_bytes: the difference of both.
        chains_before_bytes: the part of `before_bytes` that chains move: their traffic.
        chains_after_bytes: the same part of `after_bytes`.
        vectors_bytes: the biases, multipliers, shifts, slopes and tables of all chains, a part of their traffic.
        operators: the number of operators outside of chains.
        operators_before_bytes: the part of `before_bytes` that operators outside of chains read and write.
        operators_after_bytes: the same part of `after_bytes`.
        handed_bytes: the bytes that a call would move besides by the same plans, if no tensor stayed in VTCM.
        footprint_bytes: the footprint of the largest piece.
        macs: the MACs as planned.
        plans: the number of plans that were searched.
        seconds: the time that the searches took.
    """

    chains: int
    convs: int
    pieces: int
    before_bytes: int | None
    after_bytes: int | None
    saved_bytes: int | None
    chains_before_bytes: int | None
    chains_after_bytes: int | None
    vectors_bytes: int
    operators: int
    operators_before_bytes: int
    operators_after_bytes: int
    handed_bytes: int
    footprint_bytes: int
    macs: int
    plans: int
    seconds: float


@dataclass(frozen=True)
class PlannedNetwork:
    """Chains, planned.

    Attributes:
        planned: the result for each chain.
        refused: the chains that no plan can serve.
        manifest: the manifest of the model that the chains come from; None where there is no model.
        seconds: the time that planning took.
        handed_bytes: the bytes that `chains`, and `operators` outside of them, don't move since tensors stay in VTCM.
    """

    planned: tuple[Answer, ...]
    refused: tuple[Refused, ...]
    manifest: Manifest | None
    seconds: float
    handed_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every chain has a plan, in one piece or cut."""
        return not self.refused and all(chain.cuts.best for chain in self.planned)

    @property
    def total(self) -> Total:
        """The costs of one call; chains without a plan are left out."""
        cuts = [chain.cuts.best for chain in self.planned if chain.cuts.best]
        operators = self.manifest.operators_bytes if self.manifest else 0
        before = _sum([chain.separate for chain in self.planned])
        after = _sum([chain.cuts.best for chain in self.planned])
        of_chains, of_operators = (self.handed_bytes.get(part, 0) for part in ("chains", "operators"))
        after = None if after is None else after - of_chains
        operators_before = operators + of_operators
        return Total(
            chains=len(self.planned),
            convs=sum(len(chain.chain.conv) for chain in self.planned),
            pieces=sum(len(cut.pieces) for cut in cuts),
            before_bytes=None if before is None else before + operators_before,
            after_bytes=None if after is None else after + operators,
            saved_bytes=None if before is None or after is None else before - after + of_operators,
            chains_before_bytes=before,
            chains_after_bytes=after,
            vectors_bytes=sum(sum(vectors_bytes(answer.chain).values()) for answer in self.planned),
            operators=len(self.manifest.operator) if self.manifest else 0,
            operators_before_bytes=operators_before,
            operators_after_bytes=operators,
            handed_bytes=of_chains + of_operators,
            footprint_bytes=max((cut.footprint_bytes for cut in cuts), default=0),
            macs=sum(cut.macs for cut in cuts),
            plans=sum(chain.cuts.plans for chain in self.planned),
            seconds=self.seconds,
        )

    @cached_property
    def front(self) -> Front:
        """All chains together: what no other choice of their cuts beats in packets (or time) and in bytes.

        It is empty where a chain has no plan.
        """
        known = Front.nothing()
        for answer in self.planned:
            question, cuts = answer.question, answer.cuts.quick
            times = np.array([value(cut, question.quickness, question) for cut in cuts])
            known = known.extended(0, times, np.array([cut.traffic_bytes for cut in cuts], np.int64))
            known = Front.joined([known]) if len(known.times) else known
        return known

    def end_of(self, name: str) -> ChainEntry | None:
        """Return what ended a chain, where the manifest says."""
        chains = self.manifest.chain if self.manifest else ()
        return next((end for end in chains if end.case == name), None)

    @property
    def not_taken(self) -> tuple[NotTaken, ...]:
        """Return the convs of the model that are in no chain."""
        return self.manifest.not_taken if self.manifest else ()


def _sum(cuts: Sequence[Cut | None]) -> int | None:
    """Return the traffic of all cuts; None where one does not fit."""
    fitting = [cut.traffic_bytes for cut in cuts if cut]
    return sum(fitting) if len(fitting) == len(cuts) else None


def planned_manifest(network: PlannedNetwork) -> Manifest | None:
    """Return the manifest of a model's planned cases; None without a model.

    Each piece of a cut is a chain, which the next one goes on from; chains without a plan are left out.
    """
    if network.manifest is None:
        return None
    names = {answer.name: [winner.case.name for winner in answer.winners] for answer in network.planned}
    entries = [
        entry
        for answer in network.planned
        if answer.cuts.best and (end := network.end_of(answer.name))
        for entry in _entries(end, answer.cuts, names)
    ]
    return replace(network.manifest, chain=tuple(entries))


def _entries(end: ChainEntry, cuts: Cuts, names: Mapping[str, Sequence[str]]) -> Iterator[ChainEntry]:
    """Yield the entries of the pieces of one chain; `names` are the cases of each chain."""
    pieces = cuts.best.pieces if cuts.best else ()
    reasons = [*(f"its plan cuts it: {joint.reason}" for joint in cuts.joints), end.reason]
    before = tuple(names[other][-1] for other in end.after if names.get(other))
    for case, piece, reason in zip(names[end.case], pieces, reasons, strict=True):
        convs = end.convs[piece.first - 1 : piece.last]
        is_last = piece.last == len(end.convs)
        yield replace(
            end,
            case=case,
            convs=convs,
            input=end.input if piece.first == 1 else f"result of {end.convs[piece.first - 2]}",
            output=end.output if is_last else f"result of {convs[-1]}",
            ended_by=end.ended_by if is_last else "cut",
            reason=reason,
            after=before,
        )
        before = (case,)


def folder_cases(folder: Path) -> tuple[list[Case], Manifest | None]:
    """Read the chains of a folder, and the manifest where there is one.

    Raises:
        InputError: the folder has no case file, or a case file can't be used.
    """
    if (folder / MANIFEST).exists():
        known = Manifest.load(folder)
        return known.cases(folder), known
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise InputError.because(f"{folder}: this folder has no case file", "name a folder of TOML case files")
    return [Case.load(path) for path in paths], None


def plan_all(
    cases: Iterable[Case], question: Question, known: Manifest | None = None, kernel: Kernel | None = None
) -> PlannedNetwork:
    """Plan chains one by one; a chain that no plan can serve does not stop the others.

    Args:
        cases: the chains; of their plans only the kernel and the architecture are kept.
        question: the limit, the objective, and the number of Hexagon threads that a plan is to have.
        known: the manifest of the model that the chains come from.
        kernel: the kernel to use instead of the cases' own.
    """
    started = time.perf_counter()
    planned, refused = [], []
    for case in each(list(cases), "planning", lambda case: case.name):
        try:
            plan = _fixed(case.plan, kernel or case.plan.kernel, question.vtcm_bytes, question.plan.threads)
            planned.append(plan_chain(case, replace(question, plan=plan)))
        except Unsupported as reason:
            refused.append(Refused(case.name, str(reason)))
    return PlannedNetwork(tuple(planned), tuple(refused), known, time.perf_counter() - started)


def _fixed(plan: Plan, kernel: Kernel | None, vtcm_bytes: int, threads: int) -> Plan:
    """Return the part of a case's plan that a search keeps, with all caches in VTCM.

    Where it is not known how much VTCM an architecture has, it gets as much as the question's limit.
    """
    stated = plan.vtcm_bytes or (vtcm_bytes if plan.arch in WITHOUT_TAG else None)
    kernel = kernel or ("hvx" if threads > 1 else None)  # the fastest that obeys threads
    return Plan(kernel=kernel, storage="vtcm", arch=plan.arch, vtcm_bytes=stated, threads=threads)
