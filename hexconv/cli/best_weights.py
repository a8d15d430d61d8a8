"""Writes weights beside the answers of `hexconv best -o DIR`: each piece of a chain gets the weights of its convs."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hexconv.cli.cases import write_bytes
from hexconv.run.given import given, weights_beside
from hexconv.search import Answer
from hexconv.verify.job import weights_of


def write_weights(answer: Answer, source: Path, folder: Path) -> list[Path]:
    """Write `NAME.npz` beside every answer of a chain, if `NAME.npz` lies beside its case file.

    Args:
        answer: what was found for the chain.
        source: the case file of the chain.
        folder: the folder of the answers.

    Raises:
        InputError: the weights don't belong to the chain.
        NotWritten: a file can't be written into the folder.
    """
    beside = weights_beside(source)
    weights = given(answer.chain, beside, None).weights if beside else None
    if not beside or not weights:
        return []
    written = []
    for name, first, convs in _answers(answer):
        path = folder / f"{name}.npz"
        if path.resolve() != beside.resolve():
            content = io.BytesIO()
            np.savez(content, allow_pickle=False, **weights_of(weights, first, convs))
            write_bytes(path, content.getvalue())
            written.append(path)
    return written


def _answers(answer: Answer) -> Iterator[tuple[str, int, int]]:
    """Yield the name of every answer, the number of convs of the chain before its own, and how many convs it has."""
    if answer.fused:
        yield answer.fused.case.name, 0, len(answer.chain.conv)
    cut = answer.cuts.best
    if cut and len(cut.pieces) > 1:
        for piece, winner in zip(cut.pieces, answer.pieces(cut), strict=True):
            yield winner.case.name, piece.first - 1, len(piece.chain.conv)
