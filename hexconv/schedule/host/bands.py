"""Bands of the output's rows, one a thread: each rolls through stripes of its own, with caches of its own.

Rows of the intermediates that two bands both read are computed by both; that is all that threads recompute.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
        begin: the first that the stripe computes.
        end: one past the last that exists after it.
        base: the first that the next conv reads: row 0 of the cache.
        wanted_end: one past the last that the next conv reads, bottom padding included.
        base_before: `base` of the stripe before.
        end_before: `end` of the stripe before.
    """

    begin: Number
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
        return cls(bands, block.bind("last", bands.first(band + 1)), ends, bases)

    def advance(self, block: Block) -> list[NewRows]:
        """The rows of the next stripe, by tensor: from the output's, back to what they need of each other tensor."""
        count = len(self.bands.stages)
        begin = block.bind("begin", tirx.BufferLoad(self.ends, [count]))
        end = self._set(block, self.ends, count, smaller(begin + self.bands.stripe_rows, self.last))
        rows = [NewRows(begin, end, begin, end, begin, begin)]
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
        wanted_end = block.bind("wanted", (output.end - 1) * reader.stride[0] + (reach - reader.padding[0]))
        height = reader.in_size[0]
        end = self._set(block, self.ends, tensor, larger(smaller(wanted_end, int32(height)), int32(0)))
        # a stride may step over rows; those are never computed
        begin = block.bind("begin", larger(end_before, base))
        return NewRows(begin, end, base, wanted_end, base_before, end_before)

    def _set(self, block: Block, buffer: tirx.Buffer, tensor: int, value: tirx.Expr) -> tirx.Expr:
        """Keep a value, and hand it on as something that TVM's simplifier doesn't look into."""
        block.store(buffer, tensor, value)
        return block.bind("row", tirx.BufferLoad(buffer, [tensor]))
