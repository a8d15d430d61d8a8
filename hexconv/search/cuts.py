"""Where to cut a chain into fused pieces: dynamic programming over cuts, and the least memory that moves fewer bytes.

A piece is a chain of its own: it reads what the piece before it wrote, and writes its own output packed. So what the
pieces cost together is a sum, and

    least(end) = min over start < end of  least(start) + cost(best plan of start .. end - 1)

is exact: n convs have n (n + 1) / 2 pieces, and each is searched over all of its plans, unless cuts with it need more
bytes than the whole chain moves as one piece. At a cut an intermediate is written and read again; in return the cut may
save MACs and memory. There is no cut between a tensor and a conv that adds it. Of a model, `hexconv.search.adds_apart`
chooses the Adds that are operators between pieces, so that a block is cut where that costs less. A question may weigh
kernels: each piece has the plans of all of them then, and a chain is cut between two kernels where that costs less.

Costs are compared by the first two figures of the objective (`hexconv.search.question`), then by the number of pieces.
For the footprint the largest piece counts, since pieces use VTCM one after the other; among cuts of the same largest
footprint the one with the least traffic wins.

Packets and bytes both add up. So the cuts that no other one beats in both are found by the same recurrence over fronts:
the front of the first `end` convs is that of all sums of a point of the front of the first `start`, and of one of the
front of the piece `start` .. `end - 1`. The answer for time and for latency is one of these cuts.

Less memory never allows less traffic, so bisection finds the limit among the footprints on the fronts of all pieces.
Each limit is tried by the recurrence of `hexconv.search.cuts`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations, pairwise
from typing import Any, TypeVar

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.needed import needed_work
from hexconv.errors import Unsupported
from hexconv.search.best_plan import REMEMBERED
from hexconv.search.found import DIGITS, Found, lowered
from hexconv.search.grid import Figures
from hexconv.search.question import COSTS, Question, value
from hexconv.search.weighed_kernels import best_weighed
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
    """A chain in pieces, in order.

    Attributes:
        pieces: the pieces.
        added_bytes: the bytes that Adds between pieces move, where these are operators.
    """

    pieces: tuple[Piece, ...]
    added_bytes: int = 0

    @property
    def traffic_bytes(self) -> int:
        """The bytes that all pieces move, and the Adds between them."""
        return sum(piece.figures.traffic_bytes for piece in self.pieces) + self.added_bytes

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

    def time_packets(self, bytes_per_packet: float) -> float:
        """The time of all pieces in packets, one after the other (`hexconv.analyze.step_times`)."""
        return sum(piece.figures.time_packets(bytes_per_packet) for piece in self.pieces)


class Pieces:
    """All pieces of one chain; each is searched when it is first asked for."""

    def __init__(self, chain: Chain, question: Question) -> None:
        self.chain, self.question = chain, question
        self.count = len(chain.conv)

    def are_alone(self, first: int, end: int) -> bool:
        """Whether convs `first` .. `end - 1` can be a piece: no Add reads a tensor from the other side of a cut."""
        return not self.chain.whole.intersection((first, end))

    def found(self, first: int, end: int) -> Found | None:
        """Search all plans of convs `first` .. `end - 1`; None where no plan can serve these convs."""
        if not self.are_alone(first, end):
            return None
        try:
            return best_weighed(piece_of(self.chain, first, end), self.question)
        except Unsupported:
            return None

    def promising(self, first: int, end: int) -> Found | None:
        """Search all plans of a piece; None also where no cut with this piece can move less than the whole chain does.

        A cut moves at least what its pieces need. Single convs are always searched: they are what fusing is held
        against.
        """
        has_cuts = any(cut not in self.chain.whole for cut in range(first + 1, end))
        if has_cuts and self.are_alone(first, end) and self._is_hopeless(first, end):
            return None
        return self.found(first, end)

    def _is_hopeless(self, first: int, end: int) -> bool:
        whole = self.found(0, self.count) if self.question.objective == "traffic" else None
        if whole is None or whole.best is None or (first, end) == (0, self.count):
            return False
        before, behind = self._least_needed
        needed = before[first] + needed_bytes(self.chain, first, end) + behind[self.count - end]
        return needed > whole.best.traffic_bytes

    @cached_property
    def _least_needed(self) -> tuple[dict[int, int], dict[int, int]]:
        """The least bytes that any cut of the first convs needs, and of the last convs: each by their number."""
        count = self.count

        def needed(start: int, end: int) -> list[int]:
            return [needed_bytes(self.chain, start, end)] if self.are_alone(start, end) else []

        first = best_ways(count, 0, lambda before, start, end: [before + more for more in needed(start, end)])
        last = best_ways(
            count, 0, lambda behind, start, end: [behind + more for more in needed(count - end, count - start)]
        )
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
def needed_bytes(chain: Chain, first: int, end: int) -> int:
    """Return the bytes that convs `first` .. `end - 1` need as a chain of their own."""
    return sum(needed_work(piece_of(chain, first, end)).traffic_bytes.values())


@lru_cache(REMEMBERED)
def piece_of(chain: Chain, first: int, end: int, apart: frozenset[int] = frozenset()) -> Chain:
    """Return convs `first` .. `end - 1` of a chain as a chain of their own, without the Adds of the convs `apart`.

    No other Add reads over its ends (`Pieces`).

    What one piece hands to the next lies in pixels: no channel is padded, and nothing is copied between them.

    >>> from hexconv.spec import Conv2d, Requantize
    >>> conv = Conv2d(out_channels=8, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30))
    >>> chain = Chain(input=(1, 16, 16, 4), dtype="uint8", input_layout="NHCW32c", conv=(conv, conv))
    >>> pieces = piece_of(chain, 0, 1), piece_of(chain, 1, 2)
    >>> [(piece.input, piece.input_layout, piece.output_layout) for piece in pieces]
    [((1, 16, 16, 4), 'NHCW32c', 'NHWC'), ((1, 14, 14, 8), 'NHWC', 'NHWC8h8w32c')]
    """
    convs = tuple(
        replace(conv, add=(conv.add and index not in apart and conv.add.behind(first)) or None)
        for index, conv in enumerate(chain.conv[first:end], first)
    )
    piece = replace(chain, input=chain.shapes[first], zero_point=chain.output_zero_point(first), conv=convs)
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
    """The best cut of a chain, beside its cut into one piece.

    Attributes:
        best: the best cut; None where some conv fits in no piece.
        fused: the whole chain as one piece; None where it does not fit.
        joints: where the best cut cuts, and why.
        too_large: the convs (counted from 1) that do not fit even alone, each with the bytes that it needs.
        margin: the memory that would allow less traffic than the best cut has; None where no memory does.
        quick: the cuts that no other one beats in packets and in bytes, the fewest packets first.
        pieces_searched: the number of pieces that were searched.
        plans: the number of plans in all these pieces.
    """

    best: Cut | None
    fused: Cut | None
    joints: tuple[Joint, ...]
    too_large: tuple[tuple[int, Figures], ...]
    margin: Margin | None
    quick: tuple[Cut, ...]
    pieces_searched: int
    plans: int

    def by(self, best: Cut) -> "Cuts":
        """Return the same where another cut was found to be the best: by runs, so there is no reason beside them."""
        return self if best == self.best else replace(self, best=best, joints=())


def best_cuts(chain: Chain, question: Question) -> Cuts:
    """Find the best cut of a chain, and say why it cuts there."""
    asked, summed = Pieces(chain, question), Pieces(chain, _by_sum(chain, question))
    quick = quick_cuts(summed)
    fused = asked.cut()
    best = _quick_enough(quick, fused, question) if question.slack else _least(summed)
    best = fused if best and len(best.pieces) == 1 and not question.slack else best
    pairs = [(start, end) for end in range(1, asked.count + 1) for start in range(end)]
    found = [one for pair in pairs if (one := asked.promising(*pair))]
    alone = [(index, asked.found(index, index + 1)) for index in range(asked.count)]
    return Cuts(
        best=best,
        fused=fused,
        joints=tuple(_joints(summed, best)) if best else (),
        too_large=tuple((index + 1, one.smallest) for index, one in alone if one and not one.best),
        margin=margin(asked, best) if best and question.objective == "traffic" else None,
        quick=quick,
        pieces_searched=len(found),
        plans=sum(one.proof.plans for one in found),
    )


def _least(pieces: Pieces) -> Cut | None:
    """Solve the recurrence of this module's docstring."""
    question = pieces.question
    first, second, _ = COSTS[question.objective]

    def extended(cut: Cut, start: int, end: int) -> list[Cut]:
        piece = pieces.piece(start, end)
        return [Cut((*cut.pieces, piece))] if piece else []

    def cost(cut: Cut) -> tuple[float, float, int]:
        return value(cut, first, question), value(cut, second, question), len(cut.pieces)

    return best_ways(pieces.count, Cut(()), extended, cost).get(pieces.count)


def _quick_enough(cuts: Sequence[Cut], fused: Cut | None, question: Question) -> Cut | None:
    """Return the cut that moves the fewest bytes, of those that are about as quick as the quickest.

    A chain in one piece has the plan that it has alone, if this is as quick: that one is about as quick as the quickest
    of one piece, which may be less quick than the quickest cut by as much again.
    """
    least = min((value(cut, question.quickness, question) for cut in cuts), default=0)

    def is_quick(cut: Cut) -> bool:
        return value(cut, question.quickness, question) <= least * (1 + question.slack)

    quick = [cut for cut in cuts if is_quick(cut)]
    best = quick[-1] if quick else None
    return fused if best and fused and len(best.pieces) == 1 and is_quick(fused) else best


MOST_WHOLE = 8
"""The most convs of a chain of which all pieces are searched, whatever is asked for."""

MOST_POINTS = 512
"""The most points of a front of the first convs that are extended by one piece more."""


@dataclass(frozen=True)
class Front:
    """Ways to cut the first convs that no other one beats in packets (or time) and in bytes, the quickest first, [P].

    Attributes:
        times: packets, or times.
        traffic_bytes: the bytes that they move.
        pieces: how many pieces they have.
        back: where the last piece starts, which way before it this is, and which plan of the piece's front: [P, 3].
    """

    times: Integers
    traffic_bytes: Integers
    pieces: Integers
    back: Integers

    @classmethod
    def joined(cls, fronts: Sequence["Front"]) -> "Front":
        """Return the front of several; of ways that are equal in both, the one with the fewest pieces is kept.

        Of more than `MOST_POINTS` ways, those at even steps are kept, the first and the last among them.
        """
        names = ("times", "traffic_bytes", "pieces", "back")
        columns = [np.concatenate([getattr(front, name) for front in fronts]) for name in names]
        order = np.lexsort((columns[2], columns[1], columns[0].astype(float).round(DIGITS)))
        kept = lowered(order, columns[1])
        if len(kept) > MOST_POINTS:
            kept = kept[np.linspace(0, len(kept) - 1, MOST_POINTS).round().astype(int)]
        return cls(*(column[kept] for column in columns))

    @classmethod
    def nothing(cls) -> "Front":
        """Return the way to cut no conv."""
        return cls(np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros((1, 3), np.int64))

    def extended(self, start: int, times: Integers, traffic_bytes: Integers) -> "Front":
        """Return all ways with a piece more, by each of the plans of its front."""
        before, after = (axis.ravel() for axis in np.indices((len(self.times), len(times))))
        back = np.stack([np.full(len(before), start), before, after], axis=1)
        moved = self.traffic_bytes[before] + traffic_bytes[after]
        return Front(self.times[before] + times[after], moved, self.pieces[before] + 1, back)


def quick_cuts(pieces: Pieces) -> tuple[Cut, ...]:
    """Return the cuts that no other one beats in packets (or time) and in bytes, the quickest first.

    Of a chain of more than `MOST_WHOLE` convs that is asked for the least traffic, pieces that need more bytes than the
    whole chain moves are left out, as for its answer.
    """
    search = pieces.found if pieces.count <= MOST_WHOLE else pieces.promising
    fronts, question = {0: Front.nothing()}, pieces.question
    for end in range(1, pieces.count + 1):
        ways = []
        for start, before in fronts.items():
            if (found := search(start, end)) and found.quick:
                times = np.array([value(plan, question.quickness, question) for plan in found.quick])
                moved = np.array([plan.traffic_bytes for plan in found.quick])
                ways.append(before.extended(start, times, moved))
        if ways:
            fronts[end] = Front.joined(ways)
    ends = range(len(fronts[pieces.count].times) if pieces.count in fronts else 0)
    return tuple(Cut(_pieces_of(pieces, fronts, pieces.count, number)) for number in ends)


def _pieces_of(pieces: Pieces, fronts: Mapping[int, Front], end: int, number: int) -> tuple[Piece, ...]:
    """Return the pieces of one way to cut the first `end` convs."""
    if not end:
        return ()
    start, before, which = fronts[end].back[number].tolist()
    found = pieces.found(start, end)
    assert found, "a piece of a front was searched"
    last = Piece(start + 1, end, piece_of(pieces.chain, start, end), found.quick[which])
    return (*_pieces_of(pieces, fronts, start, before), last)


def _by_sum(chain: Chain, question: Question) -> Question:
    """Return a question whose costs add up: the least footprint becomes a limit, and the objective traffic."""
    if question.objective != "footprint":
        return question
    least = _least_largest(Pieces(chain, question))
    limit = question.vtcm_bytes if least is None else min(question.vtcm_bytes, least)
    return replace(question, vtcm_bytes=limit, objective="traffic")


def _least_largest(pieces: Pieces) -> int | None:
    """Return the smallest footprint that the largest piece of any cut can have; None where a conv can't be served."""

    def extended(largest: int, start: int, end: int) -> list[int]:
        found = pieces.found(start, end)
        return [max(largest, found.smallest.footprint_bytes)] if found else []

    return best_ways(pieces.count, 0, extended).get(pieces.count)


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
        fused = value(found.best, name, pieces.question)
        apart = sum(value(piece.figures, name, pieces.question) for piece in (before, after))
        if fused > apart:
            words = name.replace("_", " ")
            return f"fused, the best that fits has {fused - apart:.0f} {words} more: {fused:.0f} instead of {apart:.0f}"
    return "fused they cost as much"
