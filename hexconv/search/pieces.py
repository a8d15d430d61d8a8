"""Chains in pieces: each piece fused, under its best plan."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

from hexconv.analyze.needed import needed_work
from hexconv.errors import Unsupported
from hexconv.search.best import REMEMBERED, best_plan
from hexconv.search.found import Found
from hexconv.search.grid import Figures
from hexconv.search.question import Question
from hexconv.search.recurrence import best_ways
from hexconv.spec import Chain
from hexconv.spec.edges import PIXELS
from hexconv.spec.names import conv_name


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
