"""Where to cut a chain into fused pieces: dynamic programming over cuts, and the least memory that moves fewer bytes.

A piece is a chain of its own: it reads what the piece before it wrote, and writes its own output packed. So what the
pieces cost together is a sum, and

    least(end) = min over start < end of  least(start) + cost(best plan of start .. end - 1)

is exact: n convs have n (n + 1) / 2 pieces, and each is searched over all of its plans, unless cuts with it need more
bytes than the whole chain moves as one piece. At a cut an intermediate is written and read again; in return the cut may
save MACs and memory.

Costs are compared by traffic, then MACs (for the latency: packets, then traffic), then the number of pieces. For the
footprint the largest piece counts, since pieces take turns in VTCM; among cuts with the same largest footprint the one
with the least traffic wins.

Less memory never allows less traffic, so bisection finds the limit among the footprints on the fronts of all pieces.
Each limit is tried by the recurrence of `hexconv.search.cuts`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations, pairwise
from typing import Any, TypeVar

from hexconv.analyze.needed import needed_work
from hexconv.errors import Unsupported
from hexconv.search.best_plan import REMEMBERED, best_plan
from hexconv.search.found import Found
from hexconv.search.grid import Figures
from hexconv.search.question import COSTS, Question
from hexconv.spec import Chain
from hexconv.spec.chain import PIXELS
from hexconv.spec.names import conv_name

Way = TypeVar("Way")


def best_ways(
    count: int,
    nothing: Way,
    extended: Callable[[Way, int, int], Iterable[Way]],
    cost: Callable[[Way], Any] = lambda way: way,
) -> dict[int, Way]:
    """Return the best way to cut the first 0, 1, ... `count` convs, where there is one; of equal ways the first.

    Args:
        count: the number of convs.
        nothing: the way to cut no conv.
        extended: from a way to cut the first `start` convs, `start` and `end`, the ways that have convs
            `start` .. `end - 1` as one piece more.
        cost: what is to be least.

    >>> best_ways(3, 0, lambda before, start, end: [before + (end - start) ** 2])
    {0: 0, 1: 1, 2: 2, 3: 3}
    """
    best = {0: nothing}
    for end in range(1, count + 1):
        ways = [way for start, before in best.items() for way in extended(before, start, end)]
        if ways:
            best[end] = min(ways, key=cost)
    return best


@dataclass(frozen=True)
class Piece:
    """Convs `first` to `last` of a chain (counted from 1), fused, under their best plan."""

    first: int
    last: int
    chain: Chain
    figures: Figures

    @property
    def name(self) -> str:
        """`conv2` or `conv2-4`."""
        return conv_name(self.first) if self.first == self.last else f"conv{self.first}-{self.last}"


@dataclass(frozen=True)
class Cut:
    """A chain in pieces, in order."""

    pieces: tuple[Piece, ...]

    @property
    def traffic_bytes(self) -> int:
        """The bytes that all pieces move."""
        return sum(piece.figures.traffic_bytes for piece in self.pieces)

    @property
    def macs(self) -> int:
        """The multiply-accumulates of all pieces."""
        return sum(piece.figures.macs for piece in self.pieces)

    @property
    def latency_packets(self) -> float:
        """The packets of all pieces, one after the other."""
        return sum(piece.figures.latency_packets for piece in self.pieces)

    @property
    def footprint_bytes(self) -> int:
        """The footprint of the largest piece."""
        return max(piece.figures.footprint_bytes for piece in self.pieces)


class Pieces:
    """All pieces of one chain; each is searched when it is first asked for."""

    def __init__(self, chain: Chain, question: Question) -> None:
        self.chain, self.question = chain, question
        self.count = len(chain.conv)

    def found(self, first: int, end: int) -> Found | None:
        """Search all plans of convs `first` .. `end - 1`; None where no plan can serve these convs."""
        try:
            return best_plan(piece_of(self.chain, first, end), self.question)
        except Unsupported:
            return None

    def promising(self, first: int, end: int) -> Found | None:
        """Search all plans of a piece; None also where no cut with this piece can move less than the whole chain does.

        A cut moves at least what its pieces need. Single convs are always searched: they are what fusing is held
        against.
        """
        if end - first > 1 and self._is_hopeless(first, end):
            return None
        return self.found(first, end)

    def _is_hopeless(self, first: int, end: int) -> bool:
        whole = self.found(0, self.count) if self.question.objective == "traffic" else None
        if whole is None or whole.best is None or (first, end) == (0, self.count):
            return False
        before, behind = self._least_needed
        needed = before[first] + _needed_bytes(self.chain, first, end) + behind[self.count - end]
        return needed > whole.best.traffic_bytes

    @cached_property
    def _least_needed(self) -> tuple[dict[int, int], dict[int, int]]:
        """The least bytes that any cut of the first convs needs, and of the last convs: each by their number."""
        count, needed = self.count, partial(_needed_bytes, self.chain)
        first = best_ways(count, 0, lambda before, start, end: [before + needed(start, end)])
        last = best_ways(count, 0, lambda behind, start, end: [behind + needed(count - end, count - start)])
        return first, last

    def piece(self, first: int, end: int) -> Piece | None:
        """Return convs `first` .. `end - 1` under their best plan; None where no plan fits."""
        found = self.promising(first, end)
        if found is None or found.best is None:
            return None
        return Piece(first + 1, end, piece_of(self.chain, first, end), found.best)

    def cut(self, *ends: int) -> Cut | None:
        """Cut the chain after the given convs; None where a piece does not fit."""
        pieces = [self.piece(first, end) for first, end in zip((0, *ends), (*ends, self.count), strict=True)]
        whole = [piece for piece in pieces if piece]
        return Cut(tuple(whole)) if len(whole) == len(pieces) else None


@lru_cache(REMEMBERED)
def _needed_bytes(chain: Chain, first: int, end: int) -> int:
    """The bytes that convs `first` .. `end - 1` need as a chain of their own."""
    return sum(needed_work(piece_of(chain, first, end)).traffic_bytes.values())


@lru_cache(REMEMBERED)
def piece_of(chain: Chain, first: int, end: int) -> Chain:
    """Return convs `first` .. `end - 1` of a chain as a chain of their own.

    What one piece hands to the next lies in pixels: no channel is padded, and nothing is copied between them.

    >>> from hexconv.spec import Conv2d, Requantize
    >>> conv = Conv2d(out_channels=8, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30))
    >>> chain = Chain(input=(1, 16, 16, 4), dtype="uint8", input_layout="NHCW32c", conv=(conv, conv))
    >>> pieces = piece_of(chain, 0, 1), piece_of(chain, 1, 2)
    >>> [(piece.input, piece.input_layout, piece.output_layout) for piece in pieces]
    [((1, 16, 16, 4), 'NHCW32c', 'NHWC'), ((1, 14, 14, 8), 'NHWC', 'NHWC8h8w32c')]
    """
    piece = replace(
        chain, input=chain.shapes[first], zero_point=chain.output_zero_point(first), conv=chain.conv[first:end]
    )
    written = chain.output_layout if end == len(chain.conv) else PIXELS
    return replace(piece, input_layout=chain.input_layout if first == 0 else PIXELS, output_layout=written)


Steps = dict[tuple[int, int], list[tuple[int, int]]]
"""By piece (first conv, one past its last): footprints and traffic of its front, the smallest footprint first."""


@dataclass(frozen=True)
class Margin:
    """The next lower traffic, and the memory that it takes.

    Attributes:
        footprint_bytes: the least limit that allows less traffic.
        over_bytes: how far that limit is above the given one.
        traffic_bytes: the least traffic under that limit.
    """

    footprint_bytes: int
    over_bytes: int
    traffic_bytes: int


def margin(pieces: Pieces, cut: Cut) -> Margin | None:
    """Find the least memory that allows less traffic than a cut has; None where no memory does."""
    steps, now, limit = _steps(pieces), cut.traffic_bytes, pieces.question.vtcm_bytes
    limits = sorted({footprint for front in steps.values() for footprint, _ in front if footprint > limit})
    least = partial(_least_traffic, steps, pieces.count)
    found = bisect_left(limits, True, key=lambda size: (moved := least(size)) is not None and moved < now)
    if found == len(limits):
        return None
    traffic = least(limits[found])
    assert traffic is not None, "a limit under which a cut exists"
    return Margin(limits[found], limits[found] - limit, traffic)


def _steps(pieces: Pieces) -> Steps:
    """Return the fronts of all pieces that may be part of a cut with less traffic."""
    steps: Steps = {}
    for start, end in combinations(range(pieces.count + 1), 2):
        found = pieces.promising(start, end)
        steps[start, end] = [(one.footprint_bytes, one.traffic_bytes) for one in found.front] if found else []
    return steps


def _least_traffic(steps: Steps, count: int, limit: int) -> int | None:
    """Return the least traffic of any cut of `count` convs under a limit; None where nothing fits."""

    def extended(moved: int, start: int, end: int) -> list[int]:
        return [moved + traffic for footprint, traffic in steps[start, end] if footprint <= limit]

    return best_ways(count, 0, extended).get(count)


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
