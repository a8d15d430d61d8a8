"""Plan the chains of a model as `hexconv best` does; each becomes the cases that it runs as, with their weights."""

from collections.abc import Iterator
from dataclasses import replace

from hexconv.errors import Unsupported
from hexconv.model import Imported
from hexconv.network.members import Member
from hexconv.run.given import Given, bounded
from hexconv.run.tensors import random_tensors
from hexconv.search import Answer, Question, plan_all
from hexconv.verify.job import weights_of


def members_of(imported: Imported, question: Question) -> tuple[Member, ...]:
    """Plan all chains of a model.

    Args:
        imported: the model.
        question: the limit of VTCM, where they are to run, and on how many threads.

    Raises:
        Unsupported: no plan serves a chain, or no plan fits VTCM.
    """
    arrays = [imported.weights(index) for index in range(len(imported.cases))]
    cases = [
        replace(case, chain=bounded(case.chain, weights)) for case, weights in zip(imported.cases, arrays, strict=True)
    ]
    network = plan_all(cases, question, kernel=question.plan.kernel)
    if network.refused:
        raise Unsupported(f"{network.refused[0].name}: {network.refused[0].reason}")
    named = {answer.name: answer for answer in network.planned}
    return tuple(
        Member(run, tuple(_pieces(named[case.name], weights, question)))
        for case, run, weights in zip(cases, imported.runs, arrays, strict=True)
    )


def _pieces(answer: Answer, weights: dict, question: Question) -> Iterator:
    """Yield the cases of the best cut, each with its own weights."""
    cut = answer.cuts.best
    if cut is None:
        limit = question.vtcm_bytes
        raise Unsupported(f"{answer.name}: no plan fits {limit} bytes of VTCM; hexconv best says what would")
    for piece, winner in zip(cut.pieces, answer.pieces(cut), strict=True):
        own = Given(weights_of(weights, piece.first - 1, len(piece.chain.conv)))
        yield winner.case, own.over(random_tensors(winner.case.chain))
