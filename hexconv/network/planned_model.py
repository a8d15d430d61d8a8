"""Plan a model: the pieces of each chain that the search recommends, and the program that calls them in order.

    imported model, question  ->  a plan for each chain  ->  steps: calls of pieces, operators between them

`verify`, `build`, `best` and the page ask `plan` the same question, so that what is checked is what is built and shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from hexconv.errors import HexconvError, Unsupported
from hexconv.model import Imported
from hexconv.network.integers import with_integers
from hexconv.network.nodes import TABLE
from hexconv.network.program import Member, Missing, Reading, simplified
from hexconv.network.program_steps import Program
from hexconv.run.given import Given, bounded, weights_of
from hexconv.run.tensors import Array, Tensors, random_tensors
from hexconv.search import Answer, PlannedNetwork, Question, plan_all
from hexconv.spec import Case, Plan, Target
from hexconv.spec.choices import Objective


def question_of(
    vtcm_bytes: int, objective: Objective = "traffic", target: Target = "hexagon", threads: int = 1
) -> Question:
    """Return the question that a search answers for each chain of a model.

    Args:
        vtcm_bytes: the VTCM that the caches of a chain may take.
        objective: the figure that a plan is to have least of.
        target: where the chains are to run.
        threads: how many threads each chain is to have on Hexagon; on this machine it has one.

    Raises:
        InputError: more threads are asked for than the plan's architecture has contexts.
    """
    if target == "hexagon" and threads > 1:
        return Question(vtcm_bytes, objective, Plan(kernel="hvx", threads=threads), target)
    return Question(vtcm_bytes, objective, target=target)


@dataclass(frozen=True)
class PlannedModel:
    """A model whose chains are planned.

    Attributes:
        imported: the model.
        question: the question that was asked for each chain.
        network: the answers, and the costs of a call.
        members: its chains in order, each with the pieces that it runs as, or why it has none.
    """

    imported: Imported
    question: Question
    network: PlannedNetwork
    members: tuple[Member, ...]

    @property
    def refused(self) -> tuple[Missing, ...]:
        """The chains that no plan serves or that fit in none, and why."""
        return tuple(Missing("chain", member.case.name, member.refused) for member in self.members if member.refused)

    @cached_property
    def _read(self) -> tuple[Program | None, tuple[Missing, ...]]:
        if self.refused:
            return None, self.refused
        reading = Reading(self.imported.graph, self.members, self.imported.network.model)
        program = reading.read(TABLE)
        told = replace(program, differences=self.imported.network.differences) if program else None
        return told, tuple(reading.missing)

    @property
    def missing(self) -> tuple[Missing, ...]:
        """What keeps the model from being a program: chains without a plan, else nodes that no operator computes."""
        return self._read[1]

    @property
    def as_read(self) -> Program | None:
        """The steps as the model's nodes tell them, before they are simplified; None where something is missing."""
        return self._read[0]

    @cached_property
    def program(self) -> Program:
        """The steps of the whole network.

        Raises:
            InputError: a tensor has an open size.
            Unsupported: there is no operator for some nodes, or no plan for some chains; all are named.
        """
        program, missing = self._read
        if program is None or missing:
            raise Unsupported(f"{self.imported.network.model}: {said_of(missing)}")
        return with_integers(simplified(program))


def plan(imported: Imported, question: Question) -> PlannedModel:
    """Plan a model. A chain that no plan serves costs itself alone: its member says why.

    Args:
        imported: the model.
        question: the limit of VTCM, the objective, where chains are to run, and on how many threads.

    Raises:
        InputError: the model's weights can't be read.
    """
    arrays = [imported.weights(index) for index in range(len(imported.cases))]
    limited = [_limited(case, weights) for case, weights in zip(imported.cases, arrays, strict=True)]
    cases = [each for each in limited if isinstance(each, Case)]
    network = plan_all(cases, question, imported.network, question.plan.kernel)
    answers = {answer.name: answer for answer in network.planned}
    refused = {each.name: each.reason for each in network.refused}
    members = []
    for case, run, weights, own in zip(imported.cases, imported.runs, arrays, limited, strict=True):
        dtype = imported.graph.type_of(run.units[-1].result).dtype
        if isinstance(own, str):
            members.append(Member(case, run, weights, dtype, refused=own))
        elif answer := answers.get(case.name):
            pieces = tuple(_pieces(answer, weights))
            why = "" if pieces else f"no plan fits {question.vtcm_bytes} bytes of VTCM; hexconv best says what would"
            members.append(Member(own, run, weights, dtype, pieces, why))
        else:
            members.append(Member(own, run, weights, dtype, refused=refused[case.name]))
    return PlannedModel(imported, question, network, tuple(members))


def _limited(case: Case, weights: dict[str, Array]) -> Case | str:
    """Return a case with the limits of its weights; or why no kernel has room for their sums."""
    try:
        return replace(case, chain=bounded(case.chain, weights))
    except HexconvError as refusal:
        return str(refusal)


def _pieces(answer: Answer, weights: Mapping[str, Array]) -> Iterator[tuple[Case, Tensors]]:
    """Yield the cases of the best cut, each with its own weights."""
    cut = answer.cuts.best
    for piece, winner in zip(cut.pieces, answer.pieces(cut), strict=True) if cut else ():
        own = Given(weights_of(weights, piece.first - 1, len(piece.chain.conv)))
        yield winner.case, own.over(random_tensors(winner.case.chain))


def said_of(missing: tuple[Missing, ...]) -> str:
    """Say what keeps a model from being a program: kinds of operators with their number, then what is refused.

    >>> said_of((Missing("Softmax", "s1"), Missing("Softmax", "s2"), Missing("Pad", "p", "it reflects")))[:50]
    'no operator computes Softmax (2, such as s1); ther'
    """
    kinds: dict[str, list[str]] = {}
    for each in missing:
        if not each.reason:
            kinds.setdefault(each.op, []).append(each.node)
    unknown = ", ".join(f"{op} ({len(names)}, such as {names[0]})" for op, names in kinds.items())
    refused = [f"{each.op} {each.node}: {each.reason}" for each in missing if each.reason]
    known = ", ".join(sorted(op for op in TABLE if "." not in op))
    told = [f"no operator computes {unknown}; there are operators for {known}"] if unknown else []
    return "; ".join([*told, *refused])
