"""Plan a model: the pieces of each chain that the search recommends, and the program that calls them in order.

    imported model, question  ->  Adds that are parts of chains  ->  a plan for each chain
                              ->  steps: calls of pieces, operators between them

`verify`, `build`, `best` and the page ask `plan` the same question, so that what is checked is what is built and shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod

from hexconv.errors import HexconvError, InputError, Unsupported
from hexconv.model import Imported
from hexconv.model.manifest import OperatorEntry
from hexconv.network.call_costs import price_of_add
from hexconv.network.cuts_beside import least_cuts, plans_of, quickest_cut
from hexconv.network.hand_over import HandOver, candidates, hand_over
from hexconv.network.operator_table import TABLE, with_integers
from hexconv.network.plan_choices import PlanChoices
from hexconv.network.program import Member, Reading
from hexconv.network.program_steps import INPUT, Call, Operation, Other, Program
from hexconv.network.resident_sets import handed_bytes
from hexconv.network.simplified import simplified
from hexconv.run.given import Given, bounded, weights_of
from hexconv.run.tensors import Array, Tensors
from hexconv.search import Answer, PlannedNetwork, Question, plan_all
from hexconv.search.adds_apart import adds_apart
from hexconv.search.cuts import Cut, Piece
from hexconv.search.grid import Figures
from hexconv.search.question import of_pieces
from hexconv.spec import Case, Target
from hexconv.spec.choices import DEFAULT_OBJECTIVE, Engine, Kernel, Objective


def question_of(
    vtcm_bytes: int,
    objective: Objective = DEFAULT_OBJECTIVE,
    target: Target = "hexagon",
    threads: int = 1,
    kernel: Kernel | None = None,
    engine: Engine = "exact",
) -> Question:
    """Return the question that a search answers for each chain of a model.

    Args:
        vtcm_bytes: the VTCM that the caches of a chain may take.
        objective: the figure that a plan is to have least of.
        target: where the chains are to run.
        threads: how many threads each chain is to have on Hexagon; on this machine it has one.
        kernel: the kernel that pieces are to get; hmx where it serves and costs no more than hvx. None for the fastest.
        engine: how the matrix engine requantises.

    Raises:
        InputError: more threads are asked for than the plan's architecture has contexts.
    """
    asked = of_pieces(threads if target == "hexagon" else 1, kernel, engine)
    return Question(vtcm_bytes, objective, target=target, **asked)


@dataclass(frozen=True)
class PlannedModel:
    """A model whose chains are planned.

    Attributes:
        imported: the model.
        question: the question that was asked for each chain.
        network: the answers, and the costs of a call.
        members: its chains in order, each with the pieces that it runs as, or why it has none.
        handed: the tensors that stay in VTCM from one step to a later one.
    """

    imported: Imported
    question: Question
    network: PlannedNetwork
    members: tuple[Member, ...]
    handed: HandOver = field(default_factory=HandOver)

    @cached_property
    def as_read(self) -> Program:
        """The steps as the model's nodes tell them, before they are simplified."""
        return Reading(self.imported.graph, self.members, self.imported.network.model).read(TABLE)

    @cached_property
    def open_program(self) -> Program:
        """The steps of the whole network; its `others` are left to the caller.

        Raises:
            InputError: an input has an open size.
        """
        steps = with_integers(simplified(self.as_read))
        handed = {
            "residents": self.handed.residents,
            "vtcm_bytes": self.handed.vtcm_bytes if self.handed.residents else 0,
        }
        return replace(steps, differences=self.imported.network.differences, **handed)

    @cached_property
    def program(self) -> Program:
        """The steps of the whole network, which hexconv computes all of.

        Raises:
            InputError: an input or an output has an open size.
            Unsupported: there is no operator for some nodes, or no plan for some chains; all are named.
        """
        found = self.open_program
        if found.others or found.lost:
            told = dict.fromkeys((*found.lost, *said_of(found.others)))
            cure = "" if found.lost else "; --stubs leaves them to functions that you write"
            raise Unsupported(f"{self.imported.network.model}: {'; '.join(told)}{cure}")
        return found

    @cached_property
    def account(self) -> PlannedNetwork:
        """The answers for chains that a call runs or lacks, and its operators outside of them, as the program has them.

        A chain that has a plan and is left to the caller all the same costs a call nothing.
        """
        program, manifest = self.open_program, self.network.manifest
        calls, others = ({step.node for step in steps} for steps in (program.calls, program.others))
        names = [each.tensor for each in program.residents]
        entries = tuple(
            OperatorEntry(
                node=step.node,
                op=step.operator,
                reads_bytes=moved[0] - handed[0],
                writes_bytes=moved[1] - handed[1],
                elements=prod(step.result.extents),
            )
            for step in program.computed
            if isinstance(step, Operation)
            for moved, handed in [(program.moved_bytes(step), handed_bytes(step, names))]
        )
        known = replace(manifest, operator=entries) if manifest else None
        saved = {"chains": self.handed.chains_bytes, "operators": self.handed.operators_bytes}
        planned = tuple(
            answer
            for answer in self.network.planned
            if (answer.winners[0].case.name in calls if answer.winners else answer.name in others)
        )
        return replace(self.network, planned=planned, manifest=known, handed_bytes=saved)

    def leaving(self, reasons: Mapping[str, str]) -> "PlannedModel":
        """Return the model with some chains left to the caller, by the names of their cases, each with the reason."""
        members = (
            replace(member, pieces=(), refused=reasons[name]) if (name := member.case.name) in reasons else member
            for member in self.members
        )
        return handed_over(replace(self, members=tuple(members), handed=HandOver()))


Decide = Callable[[PlannedNetwork], PlannedNetwork]


def plan(imported: Imported, question: Question, decide: Decide = lambda network: network) -> PlannedModel:
    """Plan a model; an Add is part of a chain where that costs least (`hexconv.search.adds_apart`).

    A chain that no plan serves costs itself alone: its member says why.

    Args:
        imported: the model.
        question: the limit of VTCM, the objective, where chains are to run, and on how many threads.
        decide: a function that replaces answers, such as by runs of plans that the model can't part.

    Raises:
        InputError: the model's weights can't be read.
    """
    imported, members = _with_adds(imported, question)
    cases = [member.case for member in members if not member.refused]
    network = decide(plan_all(cases, question, imported.network, question.plan.kernel))
    answers = {answer.name: answer for answer in network.planned}
    refused = {each.name: each.reason for each in network.refused}
    planned = tuple(_planned(member, answers, refused) for member in members)
    return handed_over(PlannedModel(imported, question, network, planned))


def handed_over(planned: PlannedModel) -> PlannedModel:
    """Choose which tensors stay in VTCM from one step to a later one, and plan chains beside them.

    For least traffic chains are planned and cut anew, where that saves more than it costs. For least latency a chain
    has, of the plans that are no slower, the one that moves the least beside what stays, then the one of the fewest
    packets; or all chains have their quickest cuts, where all that these move besides lies in VTCM. For least time
    plans stay: what else there is gains less than counts as equal. For the least footprint nothing stays.
    """
    if planned.question.objective == "footprint":
        return planned
    try:
        found = _hand_over(planned)
    except InputError:  # whoever asks for its steps is told
        return planned
    cut = _cut_anew(planned, found.cost[0])
    if cut and (other := _hand_over(cut)).residents and other.cost < found.cost:
        planned, found = cut, other
    return _by(planned, planned.open_program, found) if found.residents else planned


def _hand_over(planned: PlannedModel) -> HandOver:
    in_vectors = planned.question.objective != "traffic"
    return hand_over(planned.open_program, dict(_choices(planned)), planned.question.vtcm_bytes, in_vectors)


def _cut_anew(planned: PlannedModel, moved_bytes: int) -> PlannedModel | None:
    """Return a model with other cuts, which may cost less beside tensors that stay; None if there are none.

    For least traffic those by which all steps may move less than so many bytes, for least latency the quickest ones.
    """
    program, question = planned.open_program, planned.question
    anew: Mapping[str, Answer] = {}
    if question.objective == "traffic":
        choices = dict(_choices(planned))
        stay = candidates(program, choices, question.vtcm_bytes, in_vectors=False)
        anew = least_cuts(program, planned.network.planned, choices, stay, question, moved_bytes)
    elif question.objective == "latency":
        found = (quickest_cut(answer) for answer in planned.network.planned)
        anew = {answer.name: answer for answer in found if answer}
    if not anew:
        return None
    answers = tuple(anew.get(answer.name, answer) for answer in planned.network.planned)
    members = (
        replace(member, pieces=tuple(_pieces(anew[name], member.weights)))
        if (name := member.case.name) in anew
        else member
        for member in planned.members
    )
    return replace(planned, network=replace(planned.network, planned=answers), members=tuple(members))


def _choices(planned: PlannedModel) -> Iterator[tuple[str, PlanChoices]]:
    """Yield the name and the plans of each piece: its own, and where it may be planned again those of its front.

    A plan that runs decided for stays.
    """
    used = {step.node for step in planned.open_program.calls}
    for answer in planned.network.planned:
        for winner in answer.winners:
            chain, name = winner.case.chain, winner.case.name
            if name in used and _is_planned_again(answer) and winner.case.settled.storage == "vtcm":
                yield name, plans_of(chain, answer.question, winner.figures)
            elif name in used:
                yield name, PlanChoices(chain, (winner.figures,))


def _is_planned_again(answer: Answer) -> bool:
    """Whether the chain may have other plans beside tensors that stay: not for least time, nor where runs decided."""
    return answer.question.objective in ("traffic", "latency") and not answer.is_counted


def _by(planned: PlannedModel, program: Program, found: HandOver) -> PlannedModel:
    """Return a model whose tensors stay in VTCM, with the plans beside them."""
    answers = tuple(_replanned(answer, found.plans) for answer in planned.network.planned)
    cases = {winner.case.name: winner.case for answer in answers for winner in answer.winners}
    members = tuple(
        replace(member, pieces=tuple((cases.get(case.name, case), weights) for case, weights in member.pieces))
        for member in planned.members
    )
    steps = (replace(step, case=cases[step.node]) if isinstance(step, Call) else step for step in program.steps)
    model = replace(planned, network=replace(planned.network, planned=answers), members=members, handed=found)
    whole = replace(program, steps=tuple(steps), residents=found.residents, vtcm_bytes=found.vtcm_bytes)
    vars(model).update(open_program=whole)  # the same steps, which need not be read again
    return model


def _replanned(answer: Answer, plans: Mapping[str, Figures]) -> Answer:
    """Return an answer by other plans of its pieces."""
    if answer.cuts.best is None:
        return answer
    pieces = (
        Piece(piece.first, piece.last, piece.chain, plans.get(winner.case.name, piece.figures))
        for piece, winner in zip(answer.cuts.best.pieces, answer.winners, strict=True)
    )
    return replace(answer, cuts=replace(answer.cuts, best=Cut(tuple(pieces), answer.cuts.best.added_bytes)))


def _with_adds(imported: Imported, question: Question) -> tuple[Imported, tuple[Member, ...]]:
    """Return the model with the Adds in its chains that cost less there than as operators; and its chains."""
    joined, apart = imported.joining(), set[str]()
    members = members_of(joined)
    for member in members:
        adds = {index for index, unit in enumerate(member.run.units) if unit.joined}
        if adds and not member.refused:
            adds = adds_apart(member.case.chain, question, partial(price_of_add, question=question))
        apart |= {member.run.units[index].result for index in adds}
    chosen = joined.joining(apart)
    return chosen, members if chosen is joined else members_of(chosen)


def members_of(imported: Imported) -> tuple[Member, ...]:
    """Return the chains of a model with their weights, and the limits that these have, before they are planned.

    Raises:
        InputError: the model's weights can't be read.
    """
    return tuple(_member(imported, index) for index in range(len(imported.cases)))


def _member(imported: Imported, index: int) -> Member:
    case, run, weights = imported.cases[index], imported.runs[index], imported.weights(index)
    dtype = imported.graph.type_of(run.result).dtype
    try:
        return Member(replace(case, chain=bounded(case.chain, weights)), run, weights, dtype)
    except HexconvError as refusal:  # no kernel has room for the sums of these weights
        return Member(case, run, weights, dtype, refused=str(refusal))


def _planned(member: Member, answers: Mapping[str, Answer], refused: Mapping[str, str]) -> Member:
    """Return a chain with the pieces of its best cut, or with the reason why it has none."""
    name = member.case.name
    if member.refused or name in refused:
        return replace(member, refused=member.refused or refused[name])
    if pieces := tuple(_pieces(answers[name], member.weights)):
        return replace(member, pieces=pieces)
    limit = answers[name].question.vtcm_bytes
    return replace(member, refused=f"no plan fits {limit} bytes of VTCM; hexconv best says what would")


def _pieces(answer: Answer, weights: Mapping[str, Array]) -> Iterator[tuple[Case, Tensors]]:
    """Yield the cases of the best cut, each with its own weights."""
    cut = answer.cuts.best
    for piece, winner in zip(cut.pieces, answer.pieces(cut), strict=True) if cut else ():
        own = Given(weights_of(weights, piece.first - 1, len(piece.chain.conv)))
        yield winner.case, own.whole(winner.case.chain)


def said_of(others: Sequence[Operation]) -> Iterator[str]:
    """Yield what hexconv does not compute: kinds of operators with their number, then what it refuses, and why."""
    told = {step.node: step.told(Other) for step in others if step.told(Other).op != INPUT}
    kinds: dict[str, list[str]] = {}
    for node, other in told.items():
        if not other.reason:
            kinds.setdefault(other.op, []).append(node)
    unknown = ", ".join(f"{op} ({len(names)}, such as {names[0]})" for op, names in kinds.items())
    known = ", ".join(sorted(op for op in TABLE if "." not in op))
    if unknown:
        yield f"no operator computes {unknown}; there are operators for {known}"
    yield from (f"{other.op} {node}: {other.reason}" for node, other in told.items() if other.reason)
