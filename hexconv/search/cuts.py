"""Where to cut a chain: which neighbours to fuse and which to separate, by dynamic programming over cuts.

A piece is a chain of its own: it reads what the piece before it wrote, and writes its own output packed. So what the
pieces cost together is a sum, and

    least(end) = min over start < end of  least(start) + cost(best plan of start .. end - 1)

is exact: n convs have n (n + 1) / 2 pieces, and each is searched over all of its plans, unless cuts with it need more
bytes than the whole chain moves as one piece. At a cut an intermediate is written and read again; in return the cut may
save MACs and memory.

Costs are compared by traffic, then MACs (for the latency: packets, then traffic), then the number of pieces. For the
footprint the largest piece counts, since pieces take turns in VTCM; among cuts with the same largest footprint the one
with the least traffic wins.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from hexconv.search.grid import Figures
from hexconv.search.margin import Margin, margin
from hexconv.search.objective import COSTS
from hexconv.search.pieces import Cut, Piece, Pieces
from hexconv.search.question import Question
from hexconv.search.recurrence import best_ways
from hexconv.spec import Chain


@dataclass(frozen=True)
class Joint:
    """Two neighbouring pieces that are not fused, and why.

    Attributes:
        before: the piece in front of the cut.
        after: the piece behind it.
        reason: why fusing them is not better, in words with figures.
    """

    before: str
    after: str
    reason: str


@dataclass(frozen=True)
class Cuts:
    """The best cut of a chain, beside the cuts into single convs and into one piece.

    Attributes:
        best: the best cut; None where some conv fits in no piece.
        separate: the cut with every conv in its own piece; None where a conv does not fit.
        fused: the whole chain as one piece; None where it does not fit.
        joints: where the best cut cuts, and why.
        too_large: the convs (counted from 1) that do not fit even alone, each with the bytes that it needs.
        margin: the memory that would allow less traffic than the best cut has; None where no memory does.
        pieces_searched: the number of pieces that were searched.
        plans: the number of plans in all these pieces.
    """

    best: Cut | None
    separate: Cut | None
    fused: Cut | None
    joints: tuple[Joint, ...]
    too_large: tuple[tuple[int, Figures], ...]
    margin: Margin | None
    pieces_searched: int
    plans: int


def best_cuts(chain: Chain, question: Question) -> Cuts:
    """Find the best cut of a chain, and say why it cuts there."""
    asked, summed = Pieces(chain, question), Pieces(chain, _by_sum(chain, question))
    best = _least(summed)
    pairs = [(start, end) for end in range(1, asked.count + 1) for start in range(end)]
    found = [one for pair in pairs if (one := asked.promising(*pair))]
    alone = [(index, asked.found(index, index + 1)) for index in range(asked.count)]
    return Cuts(
        best=best,
        separate=asked.cut(*range(1, asked.count)),
        fused=asked.cut(),
        joints=tuple(_joints(summed, best)) if best else (),
        too_large=tuple((index + 1, one.smallest) for index, one in alone if one and not one.best),
        margin=margin(asked, best) if best and question.objective == "traffic" else None,
        pieces_searched=len(found),
        plans=sum(one.proof.plans for one in found),
    )


def _least(pieces: Pieces) -> Cut | None:
    """Solve the recurrence of this module's docstring."""
    first, second, _ = COSTS[pieces.question.objective]

    def extended(cut: Cut, start: int, end: int) -> list[Cut]:
        piece = pieces.piece(start, end)
        return [Cut((*cut.pieces, piece))] if piece else []

    def cost(cut: Cut) -> tuple[float, float, int]:
        return getattr(cut, first), getattr(cut, second), len(cut.pieces)

    return best_ways(pieces.count, Cut(()), extended, cost).get(pieces.count)


def _by_sum(chain: Chain, question: Question) -> Question:
    """Return a question whose costs add up: the least footprint becomes a limit, and the objective traffic."""
    if question.objective != "footprint":
        return question
    limit = min(question.vtcm_bytes, _least_largest(Pieces(chain, question)))
    return replace(question, vtcm_bytes=limit, objective="traffic")


def _least_largest(pieces: Pieces) -> int:
    """Return the smallest footprint that the largest piece of any cut can have."""

    def extended(largest: int, start: int, end: int) -> list[int]:
        found = pieces.found(start, end)
        return [max(largest, found.smallest.footprint_bytes)] if found else []

    return best_ways(pieces.count, 0, extended)[pieces.count]


def _joints(pieces: Pieces, cut: Cut) -> Iterator[Joint]:
    """Say for each two neighbouring pieces why they are not fused."""
    for before, after in pairwise(cut.pieces):
        yield Joint(before.name, after.name, _why_apart(pieces, before, after))


def _why_apart(pieces: Pieces, before: Piece, after: Piece) -> str:
    """Say what fusing two pieces would cost."""
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
