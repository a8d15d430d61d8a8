"""Which Adds of a chain are operators between its pieces: those under which a block is cut for less.

    one piece       conv1 ── conv2 ──(+ the tensor before conv1)          moves the block's ends
    cut             conv1 ── conv2 | Add(conv2, the tensor before conv1)  keeps no tensor in VTCM for the Add
                    conv1 | conv2 | Add                                   has smaller stripes, or other plans

An Add that is an operator needs both of its tensors in memory: the chain is cut behind its conv, and at the other
tensor. Other Adds over such a cut become operators, too. A block lies between two neighbouring places at which no Add
prevents a cut. Its ways are its fused plans, and those of the chain in it without its outermost Adds, in which the same
is asked of the Adds inside. Ways of blocks and of convs between them add up, so that the recurrence of
`hexconv.search.cuts` is exact where Adds stand one after the other or inside of each other; of those that overlap, all
outermost ones are operators or none.

For the least traffic a piece is not searched that needs more bytes, beside the best way to its start, than a known way
to its end moves. For the least packets a piece is not searched where one that begins later, and ends with it, takes so
many packets more than the best way to its end that no further conv makes up for it: of a long chain most pieces aren't.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, prod

import numpy as np

from hexconv.search.cuts import Cut, Piece, Pieces, needed_bytes, piece_of
from hexconv.search.question import COSTS, Question, value
from hexconv.spec import Chain

Price = Callable[[Chain, int], Mapping[str, float]]
"""What the Add of a conv costs as an operator, by the figures of `COSTS`."""

AT_LEAST = 0.75
"""The share of the packets of two pieces that both take at least as one, which copies nothing between them. Of the
pieces of MobileNetV2 the least share seen is 0.82, of two convs alone; most take more packets fused."""


def moved_by_add(chain: Chain, index: int) -> int:
    """Return the bytes that the Add of conv `index` moves as an operator: it reads two tensors, and writes a third."""
    return 3 * prod(chain.shapes[index + 1]) * np.dtype(chain.dtype).itemsize


def separate_cut(chain: Chain, question: Question) -> Cut | None:
    """Return the cut of every conv in its own piece, and every Add an operator; None where a conv does not fit."""
    adds = frozenset(_intervals(chain))
    alone = [Pieces(piece_of(chain, at, at + 1, adds), question) for at in range(len(chain.conv))]
    pieces = [replace(piece, first=at, last=at) for at, each in enumerate(alone, 1) if (piece := each.piece(0, 1))]
    moved = sum(moved_by_add(chain, index) for index in adds)
    return Cut(tuple(pieces), moved) if len(pieces) == len(chain.conv) else None


@dataclass(frozen=True)
class _Way:
    """A way to run the first convs.

    Attributes:
        costs: the first two figures of the objective.
        pieces: how many pieces it has.
        apart: the convs, from 0, whose Adds are operators.
    """

    costs: tuple[float, float] = (0.0, 0.0)
    pieces: int = 0
    apart: frozenset[int] = frozenset()

    @property
    def rank(self) -> tuple[float, float, int]:
        """What is to be least."""
        return (*self.costs, self.pieces)


def adds_apart(chain: Chain, question: Question, price: Price) -> frozenset[int]:
    """Choose the convs, from 0, whose Adds are operators: all where nothing fits.

    Args:
        chain: the chain.
        question: the limit and the objective.
        price: what an Add costs as an operator.
    """
    way = _best(chain, question, price)
    return way.apart if way else frozenset(_intervals(chain))


def _best(chain: Chain, question: Question, price: Price) -> _Way | None:
    """Solve the recurrence over pieces and blocks."""
    pieces, names = Pieces(chain, question), COSTS[question.objective][:2]
    ends = [end for end in range(pieces.count + 1) if end not in chain.whole]
    blocks = {pair for pair in pairwise(ends) if any(conv.add for conv in chain.conv[slice(*pair)])}
    best = {0: _Way()}

    def fused(piece: Piece) -> _Way:
        one, other = (float(value(piece.figures, name, question)) for name in names)
        return _Way((one, other), 1)

    def ways_to(end: int) -> Iterator[_Way]:
        # The best way to `start` takes no more packets than that to an earlier place and the piece between them. So no
        # way with a piece from there to `end` takes fewer than a share of `least`, and the rest of what is before it.
        least, within = 0.0, inf
        for start, before in reversed(best.items()):
            found: list[_Way] = []
            if (start, end) in blocks and (way := _cut(chain, start, end, question, price)):
                found.append(_together(before, way, names))
            is_hopeless = (1 - AT_LEAST) * before.costs[0] + AT_LEAST * least > within
            is_alone = pieces.are_alone(start, end)
            if is_alone and question.objective == "traffic":
                is_hopeless = before.costs[0] + needed_bytes(chain, start, end) > within
            if is_alone and not is_hopeless and not _takes_hvx_away(chain, start, end, question):
                searched = pieces.promising(start, end)
                piece = pieces.piece(start, end)
                found += [_together(before, fused(piece), names)] if piece else []
                if searched and question.objective == "latency":
                    least = max(least, before.costs[0] + searched.fewest_packets)
            within = min([within, *(way.costs[0] for way in found)])
            yield from found

    for end in range(1, pieces.count + 1):
        if ways := list(ways_to(end)):
            best[end] = min(reversed(ways), key=lambda way: way.rank)
    return best.get(pieces.count)


def _together(one: _Way, other: _Way, names: Iterable[str]) -> _Way:
    """Return two ways, one after the other: costs add up, and of footprints the larger counts."""
    first, second = (
        max(ours, theirs) if name == "footprint_bytes" else ours + theirs
        for ours, theirs, name in zip(one.costs, other.costs, names, strict=True)
    )
    return _Way((first, second), one.pieces + other.pieces, one.apart | other.apart)


def _cut(chain: Chain, start: int, end: int, question: Question, price: Price) -> _Way | None:
    """Return the best way of a block whose outermost Adds are operators; None where some conv fits in no piece."""
    names, found = COSTS[question.objective][:2], _Way()
    apart, places = _over_cuts(chain, start, end)
    for first, last in pairwise(places):
        way = _best(piece_of(chain, first, last, apart), question, price)
        if way is None:
            return None
        inner = _Way(way.costs, way.pieces, frozenset(first + index for index in way.apart))
        found = _together(found, inner, names)
    for index in apart:
        priced = price(chain, index)
        found = _together(found, _Way((priced[names[0]], priced[names[1]]), 0, frozenset((index,))), names)
    return found


def _over_cuts(chain: Chain, start: int, end: int) -> tuple[frozenset[int], list[int]]:
    """Return the Adds of a block that are operators if its outermost ones are, and where the block is cut then."""
    intervals = {index: span for index, span in _intervals(chain).items() if start <= index < end}
    apart = {
        index for index, span in intervals.items() if not any(_is_inside(span, other) for other in intervals.values())
    }
    while True:
        places = sorted({start, end, *(place for index in apart for place in intervals[index])})
        over = {i for i, (low, high) in intervals.items() if any(low < place < high for place in places)} - apart
        if not over:
            return frozenset(apart), places
        apart |= over


def _intervals(chain: Chain) -> dict[int, tuple[int, int]]:
    """Return the two tensors of each Add by its conv: the other one, and the sum."""
    return {index: (conv.add.tensor, index + 1) for index, conv in enumerate(chain.conv) if conv.add}


def _is_inside(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span != other and other[0] <= span[0] and span[1] <= other[1]


def _takes_hvx_away(chain: Chain, start: int, end: int, question: Question) -> bool:
    """Whether a conv gets a slower kernel because of an Add in a piece."""
    piece = piece_of(chain, start, end)
    if not any(conv.add for conv in piece.conv):
        return False
    bare = piece_of(piece, 0, len(piece.conv), frozenset(_intervals(piece)))
    return [each.used for each in question.kernels(piece)] != [each.used for each in question.kernels(bare)]
