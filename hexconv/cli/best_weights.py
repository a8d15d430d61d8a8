"""The weights that `hexconv best -o DIR` writes beside its answers: each piece of a chain has those of its convs."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hexconv.run.given import given, weights_beside
from hexconv.search import Answer
from hexconv.verify.job import weights_of


def weights_files(answer: Answer, source: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of `NAME.npz` for every answer of a chain, if `NAME.npz` lies beside its case file.

    Args:
        answer: what was found for the chain.
        source: the case file of the chain.
        folder: the folder of the answers.

    Raises:
        InputError: the weights don't belong to the chain.
    """
    beside = weights_beside(source)
    weights = given(answer.chain, beside, None).weights if beside else None
    if not beside or not weights:
        return
    for name, first, convs in _answers(answer):
        path = folder / f"{name}.npz"
        if path.resolve() != beside.resolve():
            content = io.BytesIO()
            np.savez(content, allow_pickle=False, **weights_of(weights, first, convs))
            yield path.name, content.getvalue()


def _answers(answer: Answer) -> Iterator[tuple[str, int, int]]:
    """Yield the name of every answer, the number of convs of the chain before its own, and how many convs it has."""
    pieces = answer.cuts.best.pieces if answer.cuts.best else ()
    for piece, winner in zip(pieces, answer.winners, strict=True):
        yield winner.case.name, piece.first - 1, len(piece.chain.conv)
