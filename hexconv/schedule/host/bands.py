"""Bands of the output's rows, one a thread: each rolls through stripes of its own, with caches of its own.

Rows of the intermediates that two bands both read, at the seam between them, are computed by the lower one in its
first stripe, and handed up. Where bands are too short for that, both compute them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx

from hexconv.schedule.block import REGISTER, Block, Number, int32
from hexconv.schedule.rows import Geometry, Rows, larger, smaller


@dataclass(frozen=True)
class Bands:
    """An image's bands, as even as its rows allow.

    Attributes:
        stages: the convs.
        stripe_rows: rows of the output in a stripe.
        count: of the bands.
    """

    stages: Sequence[Geometry]
    stripe_rows: int
    count: int

    def first(self, band: Number) -> Number:
        """The first row of a band."""
        height = self.stages[-1].out_size[0]
        return band * height // self.count if isinstance(band, int) else tirx.floordiv(band * height, int32(self.count))

    def edge(self, tensor: int, band: Number) -> Number:
        """The first row of a tensor that a band computes itself where seams are handed up."""
        if tensor == len(self.stages):
            return self.first(band)
        reader = self.stages[tensor]
        return larger(self.edge(tensor + 1, band) * reader.stride[0] - reader.padding[0], 0)

    def seam_rows(self, tensor: int) -> int:
        """Rows of a tensor that two bands both read."""
        reader = self.stages[tensor]
        return max((reader.kernel[0] - 1) * reader.dilation[0] + 1 - reader.stride[0], 0)

    @cached_property
    def hand_up(self) -> bool:
        """Whether the rows at a seam are computed once.

        They exist after the first stripe of the lower band, so the first stripe of the upper one must do without them.
        """
        tensors = range(1, len(self.stages))
        uppers, lowers = list(enumerate(self._all))[:-1], list(enumerate(self._all))[1:]
        return (
            any(self.seam_rows(tensor) for tensor in tensors)
            and self.count > 1
            and all(
                rows.wanted_end(tensor, 0) <= self.edge(tensor, band + 1) for band, rows in uppers for tensor in tensors
            )
            and all(
                rows.end(tensor, 0) >= smaller(self.edge(tensor, band) + self.seam_rows(tensor), rows.height(tensor))
                for band, rows in lowers
                for tensor in tensors
            )
        )

    def cut(self, tensor: int, band: Number) -> tirx.Expr:
        """One past the last row of a tensor that a band computes itself where seams are handed up."""
        height = int32(self.stages[tensor].in_size[0])
        return tirx.Select(band + 1 < self.count, smaller(self.edge(tensor, band + 1), height), height)

    def cache_rows(self, tensor: int) -> int:
        """Rows of a tensor's cache: the most that a stripe of any band reads."""
        return max(rows.cache_rows(tensor) for rows in self._all)

    def has_bottom_padding(self, tensor: int) -> bool:
        """Whether some stripe reads rows past the last one."""
        return any(rows.has_bottom_padding(tensor) for rows in self._all)

    @property
    def most_stripes(self) -> int:
        """In a band."""
        return max(rows.stripes for rows in self._all)

    @property
    def _all(self) -> list[Rows]:
        edges = [self.first(band) for band in range(self.count + 1)]
        return [Rows(self.stages, self.stripe_rows, *edges[band : band + 2]) for band in range(self.count)]


@dataclass(frozen=True)
class NewRows:
    """Rows of one tensor in one stripe.

    Attributes:
        begin: the first that is new in the stripe.
        own_end: one past the last that the band computes itself.
        end: one past the last that exists after it.
        base: the first that the next conv reads: row 0 of the cache.
        wanted_end: one past the last that the next conv reads, bottom padding included.
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

    Two buffers that LLVM keeps in registers. Closed forms (`hexconv.schedule.rows`) would do, but TVM's simplifier
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

    def advance(self, block: Block) -> list[NewRows]:
        """The rows of the next stripe, by tensor: from the output's, back to what they need of each other tensor."""
        count = len(self.bands.stages)
        begin = block.bind("begin", tirx.BufferLoad(self.ends, [count]))
        end = self._set(block, self.ends, count, smaller(begin + self.bands.stripe_rows, self.last))
        rows = [NewRows(begin, end, end, begin, end, begin, begin)]
        for tensor in reversed(range(count)):
            rows.insert(0, self._needed_by(block, tensor, rows[0]))
        return rows

    def _needed_by(self, block: Block, tensor: int, output: NewRows) -> NewRows:
        """The rows of a tensor that its conv reads for some rows of its output."""
        reader = self.bands.stages[tensor]
        reach = (reader.kernel[0] - 1) * reader.dilation[0] + 1
        end_before = block.bind("end_before", tirx.BufferLoad(self.ends, [tensor]))
        base_before = block.bind("base_before", tirx.BufferLoad(self.bases, [tensor]))
        base = self._set(block, self.bases, tensor, output.begin * reader.stride[0] - reader.padding[0])
        wanted_end = block.bind("wanted", (output.own_end - 1) * reader.stride[0] + (reach - reader.padding[0]))
        height = reader.in_size[0]
        end = self._set(block, self.ends, tensor, larger(smaller(wanted_end, int32(height)), int32(0)))
        # a stride may step over rows; those are never computed
        begin = block.bind("begin", larger(end_before, base))
        own_end = end
        if tensor and self.bands.hand_up:
            own_end = block.bind("own_end", smaller(end, self.bands.cut(tensor, self.band)))
        return NewRows(begin, own_end, end, base, wanted_end, base_before, end_before)

    def _set(self, block: Block, buffer: tirx.Buffer, tensor: int, value: tirx.Expr) -> tirx.Expr:
        """Keep a value, and hand it on as something that TVM's simplifier doesn't look into."""
        block.store(buffer, tensor, value)
        return block.bind("row", tirx.BufferLoad(buffer, [tensor]))
