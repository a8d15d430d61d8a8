"""Why two neighbouring pieces of the best cut are not fused."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from hexconv.search.objective import COSTS
from hexconv.search.pieces import Cut, Piece, Pieces


@dataclass(frozen=True)
class Joint:
    """Two neighbouring pieces that are not fused, and why.

    Attributes:
        before: the piece in front of the cut.
        after: the piece behind it.
        reason: in words, with figures.
    """

    before: str
    after: str
    reason: str


def joints(pieces: Pieces, cut: Cut) -> Iterator[Joint]:
    """Why each two neighbours are not fused."""
    for before, after in pairwise(cut.pieces):
        yield Joint(before.name, after.name, _why_apart(pieces, before, after))


def _why_apart(pieces: Pieces, before: Piece, after: Piece) -> str:
    """What fusing two pieces would cost."""
    found, limit = pieces.found(before.first - 1, after.last), pieces.question.vtcm_bytes
    if found is None:
        return "no schedule serves them as one chain"
    if found.best is None:
        least = found.smallest.footprint_bytes
        return f"fused they need {least} bytes at least, {least - limit} above the limit of {limit}"
    for name in COSTS[pieces.question.objective][:2]:
        fused = getattr(found.best, name) or 0
        apart = sum(getattr(piece.figures, name) or 0 for piece in (before, after))
        if fused > apart:
            words = name.replace("_", " ").replace("macs", "MACs")
            return f"fused, the best that fits has {fused - apart:.0f} {words} more: {fused:.0f} instead of {apart:.0f}"
    return "fused they cost as much"
