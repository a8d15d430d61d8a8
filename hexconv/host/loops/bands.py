"""Bands of the output's rows, one per thread: each rolls through stripes of its own, with caches of its own.

Rows of the intermediates that two bands both read, at the seam between them, are computed by the lower one in its
first stripe, and handed up; `hexconv.host.edges` says where bands begin then. Where bands are too short for
that, both compute these rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tvm import tirx

from hexconv.host.edges import BandEdges, balanced_edges, even_edges
from hexconv.host.loops.rows import Rows, larger, smaller
from hexconv.host.loops.stage import Stage
from hexconv.schedule.block import REGISTER, Block, Number, int32
from hexconv.spec import Chain


@dataclass(frozen=True)
class Bands:
    """The bands of an image.

    Attributes:
        stages: the convs.
        stripe_rows: the rows of the output in a stripe.
        edges: the rows of the output at which bands begin.
        hand_up: whether the rows at a seam are computed once.
    """

    stages: Sequence[Stage]
    stripe_rows: int
    edges: BandEdges
    hand_up: bool = False

    @classmethod
    def of(cls, chain: Chain, stages: Sequence[Stage], stripe_rows: int, count: int) -> "Bands":
        """Return bands that hand rows up; even bands where there is nothing to hand up or the bands are too short."""
        handing = cls(stages, stripe_rows, balanced_edges(chain, count, stripe_rows), hand_up=True)
        return handing if handing._is_long_enough() else cls.even(chain, stages, stripe_rows, count)

    @classmethod
    def even(cls, chain: Chain, stages: Sequence[Stage], stripe_rows: int, count: int) -> "Bands":
        """Return bands of equally many rows of the output, each of which computes all rows that it reads."""
        return cls(stages, stripe_rows, even_edges(chain, count))

    @property
    def count(self) -> int:
        """The number of bands."""
        return self.edges.bands

    def first(self, band: Number) -> Number:
        """Return the first row of a band."""
        if isinstance(band, int) or self.hand_up:
            return _chosen(self.edges.output, band)
        height = self.stages[-1].out_size[0]  # even bands: their edges have a closed form
        return tirx.floordiv(band * height, int32(self.count))

    def edge(self, tensor: int, band: Number) -> Number:
        """The first row of a tensor that a band computes itself where seams are handed up."""
        return self.first(band) if tensor == len(self.stages) else larger(self.base(tensor, band), 0)

    def base(self, tensor: int, band: Number) -> Number:
        """The first row of a tensor that a band's first stripe holds (negative in the top padding)."""
        return self.stages[tensor].first_read(self.edge(tensor + 1, band)) - self.ahead(tensor, band)

    def ahead(self, tensor: int, band: Number) -> Number:
        """Rows of a tensor that a band's first stripe computes before those that it reads."""
        return self._of_last_intermediate(tensor, self.edges.ahead, band)

    def behind(self, tensor: int, band: Number) -> Number:
        """Rows of a tensor that a band's first stripe computes after those that it reads."""
        return self._of_last_intermediate(tensor, self.edges.behind, band)

    def _of_last_intermediate(self, tensor: int, rows: Sequence[int], band: Number) -> Number:
        return _chosen(rows, band) if 0 < tensor == len(self.stages) - 1 and any(rows) else 0

    def seam_rows(self, tensor: int) -> int:
        """The most rows of a tensor that a band hands up."""
        return max(self._read_above(tensor, band) for band in range(self.count))

    def _read_above(self, tensor: int, band: int) -> int:
        """Rows of a tensor that the band above reads of a band's own."""
        conv = self.stages[tensor].conv
        return max(conv.reach[0] - conv.stride[0] + self.ahead(tensor, band), 0)

    def _is_long_enough(self) -> bool:
        """Whether there are rows to hand up, and bands between edges that leave each its first stripe.

        They exist after the first stripe of the lower band, so the first stripe of the upper one must do without them.
        """
        tensors = range(1, len(self.stages))
        seams = any(self.seam_rows(tensor) for tensor in tensors)
        if self.count == 1 or not seams or not self.edges.are_all_wide:
            return False
        return all(
            self._first_end(tensor, band) <= self.edge(tensor, band + 1)
            for band in range(self.count - 1)
            for tensor in tensors
        ) and all(
            self._first_end(tensor, band)
            >= min(self.edge(tensor, band) + self._read_above(tensor, band), self.stages[tensor].in_size[0])
            for band in range(1, self.count)
            for tensor in tensors
        )

    def _first_end(self, tensor: int, band: int) -> int:
        """One past the last row of a tensor that a band's first stripe needs, bottom padding included."""
        if tensor == len(self.stages):
            return min(self.edges.output[band] + self.stripe_rows, self.edges.output[band + 1])
        reader = self.stages[tensor]
        end = max(min(self._first_end(tensor + 1, band), reader.out_size[0]), 0)
        return reader.end_read(end) + self.behind(tensor, band)

    def cut(self, tensor: int, band: Number) -> tirx.Expr:
        """One past the last row of a tensor that a band computes itself where seams are handed up."""
        height = int32(self.stages[tensor].in_size[0])
        return tirx.Select(band + 1 < self.count, smaller(self.edge(tensor, band + 1), height), height)

    def cache_rows(self, tensor: int) -> int:
        """Rows of a tensor's cache: the most that a stripe of any band holds."""
        firsts = [self._first_end(tensor, band) - self.base(tensor, band) for band in range(self.count)]
        return max(*firsts, *(rows.cache_rows(tensor) for rows in self._all))

    def has_bottom_padding(self, tensor: int) -> bool:
        """Whether some stripe reads rows past the last one."""
        return any(rows.has_bottom_padding(tensor) for rows in self._all)

    @property
    def most_stripes(self) -> int:
        """The most stripes in a band."""
        return max(rows.stripes for rows in self._all)

    @property
    def _all(self) -> list[Rows]:
        edges = enumerate(pairwise(self.edges.output))
        last = len(self.stages) - 1
        return [Rows(self.stages, self.stripe_rows, *rows, int(self.behind(last, band))) for band, rows in edges]


def _chosen(values: Sequence[int], index: Number) -> Number:
    """Return the number at an index that is an expression."""
    if isinstance(index, int):
        return values[index]
    chosen = int32(values[-1])
    for number in range(len(values) - 2, -1, -1):
        chosen = tirx.Select(index.equal(number), int32(values[number]), chosen)
    return chosen


@dataclass(frozen=True)
class NewRows:
    """The rows of one tensor in one stripe.

    Attributes:
        begin: the first row that is new in the stripe.
        own_end: one past the last row that the band computes itself.
        end: one past the last row that exists after the stripe.
        base: the first row that the next conv reads: row 0 of the cache.
        wanted_end: one past the last row that the next conv reads, bottom padding included.
        base_before: `base` of the stripe before.
        end_before: `end` of the stripe before.
    """

    begin: Number
    own_end: Number
    end: Number
    base: Number
    wanted_end: Number
    base_before: Number
    end_before: Number


@dataclass(frozen=True)
class Progress:
    """How far a band has come: per tensor, one past the last row that exists, and the first one in its cache.

    Two buffers that LLVM keeps in registers. Closed forms (`hexconv.host.loops.rows`) would do, but TVM's simplifier
    takes minutes over those of three convs.
    """

    bands: Bands
    band: Number
    last: tirx.Expr
    ends: tirx.Buffer
    bases: tirx.Buffer

    @classmethod
    def start(cls, block: Block, bands: Bands, band: Number) -> "Progress":
        """No row exists yet."""
        count = len(bands.stages)
        ends, bases = (
            block.allocate(tirx.decl_buffer((count + 1,), "int32", REGISTER + name)) for name in ("ends", "bases")
        )
        for tensor in range(count):
            block.store(ends, tensor, int32(0))
            block.store(bases, tensor, int32(0))
        first = bands.first(band)
        block.store(ends, count, int32(first) if isinstance(first, int) else first)
        return cls(bands, band, block.bind("last", bands.first(band + 1)), ends, bases)

    def begin(self, block: Block) -> list[NewRows]:
        """The rows of the band's first stripe, those that it computes ahead among them."""
        return self._advance(block, is_first=True)

    def advance(self, block: Block) -> list[NewRows]:
        """The rows of the next stripe, by tensor: from the output's, back to what they need of each other tensor."""
        return self._advance(block, is_first=False)

    def _advance(self, block: Block, is_first: bool) -> list[NewRows]:
        count = len(self.bands.stages)
        begin = block.bind("begin", tirx.BufferLoad(self.ends, [count]))
        end = self._set(block, self.ends, count, smaller(begin + self.bands.stripe_rows, self.last))
        rows = [NewRows(begin, end, end, begin, end, begin, begin)]
        for tensor in reversed(range(count)):
            rows.insert(0, self._needed_by(block, tensor, rows[0], is_first))
        return rows

    def _needed_by(self, block: Block, tensor: int, output: NewRows, is_first: bool) -> NewRows:
        """The rows of a tensor that its conv reads for some rows of its output, and those ahead of and behind them."""
        ahead, behind = (of(tensor, self.band) if is_first else 0 for of in (self.bands.ahead, self.bands.behind))
        reader = self.bands.stages[tensor]
        end_before = block.bind("end_before", tirx.BufferLoad(self.ends, [tensor]))
        base_before = block.bind("base_before", tirx.BufferLoad(self.bases, [tensor]))
        base = self._set(block, self.bases, tensor, reader.first_read(output.begin) - ahead)
        wanted_end = block.bind("wanted", reader.end_read(output.own_end) + behind)
        least = end_before if any(self.bands.edges.behind) else int32(0)  # rows of the first stripe may last
        end = self._set(block, self.ends, tensor, larger(smaller(wanted_end, int32(reader.in_size[0])), least))
        # A stride may step over rows, which are never computed.
        begin = block.bind("begin", larger(end_before, base))
        own_end = end
        if tensor and self.bands.hand_up:
            own_end = block.bind("own_end", smaller(end, self.bands.cut(tensor, self.band)))
        return NewRows(begin, own_end, end, base, wanted_end, base_before, end_before)

    def _set(self, block: Block, buffer: tirx.Buffer, tensor: int, value: tirx.Expr) -> tirx.Expr:
        """Store a value, and return a load of it, which TVM's simplifier doesn't look into."""
        block.store(buffer, tensor, value)
        return block.bind("row", tirx.BufferLoad(buffer, [tensor]))
