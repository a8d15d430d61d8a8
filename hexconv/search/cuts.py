"""Where to cut a chain: which neighbours to fuse and which to separate, by dynamic programming over cuts.

A piece is a chain of its own: it reads what the piece before it wrote, and writes its own output packed. So what the
pieces cost together is a sum, and

    least(end) = min over start < end of  least(start) + cost(best plan of start .. end - 1)

is exact: of n convs, n (n + 1) / 2 pieces are searched, each over all of its plans. A cut costs what is written and
read again there, and may save MACs and memory.

What is summed is traffic, then MACs (for the latency: packets, then traffic), then pieces. For the footprint pieces
take turns in VTCM: the largest piece counts; of all cuts that reach the least of these, the one with the least traffic.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from hexconv.search.grid import Figures
from hexconv.search.margin import Margin, margin
from hexconv.search.objective import COSTS
from hexconv.search.pieces import Cut, Piece, Pieces
from hexconv.search.question import Question
from hexconv.spec import Chain


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


@dataclass(frozen=True)
class Cuts:
    """The best cut of a chain beside both extremes.

    Attributes:
        best: None where some conv fits in no piece.
        separate: every conv its own piece; None where one does not fit.
        fused: one piece; None where it does not fit.
        joints: where the best cut cuts, and why.
        too_large: convs (counted from 1) that do not fit even alone, with what they need.
        margin: what memory allows less traffic than the best cut has; None where none does.
        pieces_searched: of which all plans were looked at.
        plans: in all of these.
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
    """The best cut of a chain, and why it cuts there."""
    asked, summed = Pieces(chain, question), Pieces(chain, _by_sum(chain, question))
    best = _least(summed)
    pairs = [(start, end) for end in range(1, asked.count + 1) for start in range(end)]
    found = [one for pair in pairs if (one := asked.found(*pair))]
    alone = [(index, asked.found(index, index + 1)) for index in range(asked.count)]
    return Cuts(
        best=best,
        separate=asked.cut(*range(1, asked.count)),
        fused=asked.cut(),
        joints=tuple(_joints(summed, best)) if best else (),
        too_large=tuple((index + 1, one.smallest) for index, one in alone if one and not one.best),
        margin=margin(asked, best) if best and question.objective == "traffic" else None,
        pieces_searched=len(pairs),
        plans=sum(one.proof.plans for one in found),
    )


def _least(pieces: Pieces) -> Cut | None:
    """The recurrence of the module's text."""
    least: dict[int, tuple[tuple[float, ...], tuple[Piece, ...]]] = {0: ((0, 0, 0), ())}
    for end in range(1, pieces.count + 1):
        ways = (_extended(pieces, least[start], start, end) for start in range(end) if start in least)
        known = [way for way in ways if way]
        if known:
            least[end] = min(known, key=lambda way: way[0])
    return Cut(least[pieces.count][1]) if pieces.count in least else None


def _extended(
    pieces: Pieces, way: tuple[tuple[float, ...], tuple[Piece, ...]], start: int, end: int
) -> tuple[tuple[float, ...], tuple[Piece, ...]] | None:
    """One piece more; None where it does not fit."""
    piece = pieces.piece(start, end)
    if not piece:
        return None
    first, second, _ = COSTS[pieces.question.objective]
    added = (getattr(piece.figures, first), getattr(piece.figures, second), 1)
    return tuple(a + b for a, b in zip(way[0], added, strict=True)), (*way[1], piece)


def _by_sum(chain: Chain, question: Question) -> Question:
    """A question whose answers add up: the least footprint becomes the limit of the least traffic."""
    if question.objective != "footprint":
        return question
    limit = min(question.vtcm_bytes, _least_largest(Pieces(chain, question)))
    return replace(question, vtcm_bytes=limit, objective="traffic")


def _least_largest(pieces: Pieces) -> int:
    """The least that the largest piece of a cut may be."""
    least = {0: 0}
    for end in range(1, pieces.count + 1):
        ways = ((least[start], found) for start in least if (found := pieces.found(start, end)))
        least[end] = min(max(before, found.smallest.footprint_bytes) for before, found in ways)
    return least[pieces.count]


def _joints(pieces: Pieces, cut: Cut) -> Iterator[Joint]:
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
