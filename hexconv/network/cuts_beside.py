"""Cut chains anew where tensors stay in VTCM: what is between two pieces need not move, and smaller caches leave room.

A search of one chain cuts it where that moves the fewest bytes, as if memory held all that lies between pieces. Here
all pieces of all chains are ways through one program, with the tensors that stay (`hexconv.network.resident_sets`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, pairwise
from math import inf, prod

import numpy as np

from hexconv.analyze.needed import needed_work
from hexconv.network.arena import Life
from hexconv.network.plan_choices import PlanChoices
from hexconv.network.program_steps import Call, Operation, Program
from hexconv.network.resident_sets import Run, handed_bytes, least_way
from hexconv.search import Answer, Question
from hexconv.search.best_plan import REMEMBERED
from hexconv.search.cuts import MOST_WHOLE, Cut, Joint, Piece, Pieces, piece_of
from hexconv.search.grid import Figures
from hexconv.search.question import value
from hexconv.search.weighed_kernels import best_weighed
from hexconv.spec import Chain
from hexconv.spec.capacities import granules_bytes

FEWER_BYTES = "apart they move fewer bytes beside tensors that stay in VTCM"
FEWER_PACKETS = "apart they take fewer packets, and move no more beside tensors that stay in VTCM"


@lru_cache(REMEMBERED)
def plans_of(chain: Chain, question: Question, own: Figures | None = None) -> PlanChoices:
    """Return the plans that a chain may have beside tensors in VTCM: its own, and those of its front that fit.

    Where bytes are not all that counts, of these only plans that are no slower than its own.
    """
    found = best_weighed(chain, question)
    own = own or found.best
    others = found.front if question.objective == "traffic" else found.quick
    slowest = value(own, question.quickness, question) if own and question.objective != "traffic" else inf
    fitting = (
        plan
        for plan in others
        if plan.footprint_bytes <= question.vtcm_bytes and value(plan, question.quickness, question) <= slowest
    )
    return PlanChoices(chain, tuple(dict.fromkeys(filter(None, (own, *fitting)))))


def least_cuts(
    program: Program,
    answers: Sequence[Answer],
    choices: Mapping[str, PlanChoices],
    stay: Mapping[str, Life],
    question: Question,
    moved_bytes: int,
) -> dict[str, Answer]:
    """Return the answers that are cut anew so that all steps move fewer bytes, as far as no address is in the way.

    Args:
        program: the steps, as chains are cut now.
        answers: the chains of the program.
        choices: the plans of each call, by the name of its case.
        stay: the tensors that may stay.
        question: the limit and the objective.
        moved_bytes: what all steps move by these cuts; nothing is looked for where that is all that is needed.
    """
    runs = list(_runs(program, answers, choices))
    if moved_bytes <= _needed_bytes(program, runs, stay):
        return {}
    way, _ = least_way(program, [run for _, run in runs], stay, question.vtcm_bytes)
    if way is None or way.cost[0] >= moved_bytes:
        return {}
    found: dict[str, Answer] = {}
    for answer, run in runs:
        if answer and answer.cuts.best:
            taken = [each for each in way.steps if each.piece and each.piece[0] == run.first]
            ends = [(each.piece[1], each.piece[2], each.plan) for each in taken if each.piece and each.plan]
            pieces = tuple(Piece(start + 1, end, run.pieces[start, end].chain, plan) for start, end, plan in ends)
            if [piece.name for piece in pieces] != [piece.name for piece in answer.cuts.best.pieces]:
                found[answer.name] = _by(answer, Cut(pieces), FEWER_BYTES)
    return found


def quickest_cut(answer: Answer) -> Answer | None:
    """Return an answer by its quickest cut; None where that is its own, or where runs decided."""
    quickest = next(iter(answer.cuts.quick), None)
    if quickest is None or answer.is_counted or answer.cuts.best in (None, quickest):
        return None
    return _by(answer, quickest, FEWER_PACKETS)


def _by(answer: Answer, cut: Cut, why: str) -> Answer:
    """Return an answer by another cut, whose joints are all there for one reason."""
    joints = tuple(Joint(one.name, other.name, why) for one, other in pairwise(cut.pieces))
    return replace(answer, cuts=replace(answer.cuts, best=cut, joints=joints))


def _runs(
    program: Program, answers: Sequence[Answer], choices: Mapping[str, PlanChoices]
) -> Iterator[tuple[Answer | None, Run]]:
    """Yield the calls of each chain, with all its pieces; calls that no others may stand for have their plans alone."""
    places = {step.node: at for at, step in enumerate(program.steps) if isinstance(step, Call)}
    taken = set[int]()
    for answer in answers:
        names = [winner.case.name for winner in answer.winners]
        at = [places[name] for name in names if name in places and name in choices]
        if not at or len(at) < len(names) or at != list(range(at[0], at[0] + len(at))):
            continue
        if any(winner.case.settled.storage != "vtcm" for winner in answer.winners):
            continue
        taken.update(at)
        yield answer, Run(at[0], at[-1], tuple(_between(answer.chain)), _pieces(answer))
    for name, at in places.items():
        if at not in taken and name in choices:
            yield None, Run(at, at, (), {(0, 1): choices[name]})


def _between(chain: Chain) -> Iterator[int]:
    """Yield the bytes that the result of each conv but the last takes in VTCM."""
    for index, shape in enumerate(chain.shapes[1:-1]):
        yield granules_bytes(prod(shape) * np.dtype(chain.output_dtype(index)).itemsize)


def _pieces(answer: Answer) -> dict[tuple[int, int], PlanChoices]:
    """Return the plans of all pieces that were searched, and fit."""
    pieces = Pieces(answer.chain, answer.question)
    search = pieces.found if pieces.count <= MOST_WHOLE else pieces.promising
    found = {}
    for start, end in combinations(range(pieces.count + 1), 2):
        if (piece := search(start, end)) and piece.best:
            found[start, end] = plans_of(piece_of(answer.chain, start, end), answer.question)
    return found


def _needed_bytes(program: Program, runs: Sequence[tuple[Answer | None, Run]], stay: Mapping[str, Life]) -> int:
    """Return what all steps move at least, whatever stays."""
    total, called = 0, set[int]()
    for answer, run in runs:
        chain = answer.chain if answer else run.pieces[0, 1].chain
        needed = dict(needed_work(chain).traffic_bytes)
        ends = {"input": program.steps[run.first].sources[0], "output": program.steps[run.last].result}
        total += sum(size for name, size in needed.items() if name not in ends or ends[name].buffer not in stay)
        called.update(range(run.first, run.last + 1))
    for at, step in enumerate(program.steps):
        if at not in called:
            total += sum(program.moved_bytes(step))
            total -= sum(handed_bytes(step, stay)) if isinstance(step, Operation) else 0
    return total
