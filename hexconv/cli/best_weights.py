"""Writes weights beside the answers of `hexconv best -o DIR`: each piece of a chain gets the weights of its convs."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from hexconv.errors import NotWritten
from hexconv.run.given import given, weights_beside
from hexconv.run.runner import Array
from hexconv.search import Answer


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
    for name, convs in _answers(answer):
        path = folder / f"{name}.npz"
        if path.resolve() != beside.resolve():
            _save(path, of_convs(weights, convs))
            written.append(path)
    return written


def _answers(answer: Answer) -> Iterator[tuple[str, range]]:
    """The name of every answer, and which convs of the chain it has, counted from 1."""
    if answer.fused:
        yield answer.fused.case.name, range(1, len(answer.chain.conv) + 1)
    cut = answer.cuts.best
    if cut and len(cut.pieces) > 1:
        for piece, winner in zip(cut.pieces, answer.pieces(cut), strict=True):
            yield winner.case.name, range(piece.first, piece.last + 1)


def of_convs(weights: Mapping[str, Array], convs: range) -> dict[str, Array]:
    """The arrays of some convs of a chain, renumbered from 1, as a chain of these convs alone has them.

    >>> list(of_convs({"filter1": np.zeros(1), "filter2": np.zeros(1), "bias2": np.zeros(1)}, range(2, 3)))
    ['filter1', 'bias1']
    """
    numbered = {name: re.fullmatch(r"([a-z_]+)(\d+)", name) for name in weights}
    return {
        f"{match[1]}{int(match[2]) - convs.start + 1}": weights[name]
        for name, match in numbered.items()
        if match and int(match[2]) in convs
    }


def _save(path: Path, arrays: Mapping[str, Array]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, allow_pickle=False, **arrays)
    except OSError as error:
        raise NotWritten(f"{path}: {error.strerror}; give a path that can be written, on a disk with room") from None
