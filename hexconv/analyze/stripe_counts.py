"""Count what a nest of rows does for many heights of its stripes at once: the rows that it makes, and its steps.

The formulas are those of one plan (`hexconv.analyze.rows_stripes`, `hexconv.analyze.rows_steps`), over arrays. They
depend on the rows of a chain, not on its columns, its channels or its number of images. So strips of any width share
the counts of whole rows, and a batch of images has as many times the counts of one image.

Stripes are numbered by height: those of the first height, then those of the second, and so on. A sum over the stripes
of each height is one call of numpy, and tensors are the first axis of every array.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, prod
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide
from hexconv.analyze.rows_stripes import RowStripes
from hexconv.kernel.depthwise import LEAST_ROWS_DOWN, TILE_ROWS, WAYS_TOGETHER, can_go_down, is_depthwise, tile_rows
from hexconv.spec import Chain
from hexconv.spec.extents import reads_input_rows

REMEMBERED = 64
"""The number of chains whose counts are kept: all strips of a chain ask for the same ones, one after the other."""


@dataclass(frozen=True)
class RowsOfConv:
    """How the rows of a conv follow from the rows of what it reads.

    Attributes:
        stride: the rows of the source from one row of the output to the next.
        reach: the rows of the source that a row of the output reads.
        together: the numbers of rows that are made together, the largest first; none unless the conv is depthwise.
        goes_down: whether tiles go down in stripes that are tall enough.
        rows: the logical rows of the output.
    """

    stride: int
    reach: int
    together: tuple[int, ...]
    goes_down: bool
    rows: int

    def rows_read(self, rows: Any) -> Any:
        """Count the rows of the source that neighbouring rows of the output read."""
        return (rows - 1) * self.stride + self.reach


@dataclass(frozen=True)
class RowsOfChain:
    """All that the counts of a chain depend on, but for its stripes.

    Attributes:
        convs: the convs.
        stored: the stored rows of every tensor; of the output those that are written.
        valid: the first and one past the last stored row of every tensor that holds a logical row.
        bands: for each thread, the first and one past the last row of every tensor that it makes.
        threads: the number of threads that the plan asks for.
        reads_input: whether the first conv reads a row of the input.
    """

    convs: tuple[RowsOfConv, ...]
    stored: tuple[int, ...]
    valid: tuple[tuple[int, int], ...]
    bands: tuple[tuple[tuple[int, int], ...], ...]
    threads: int
    reads_input: bool

    @classmethod
    def of(cls, planned: RowStripes) -> "RowsOfChain":
        """Take the rows of a chain from any of its plans, all of which have as many threads."""
        bands, tensors = planned.bands, range(len(planned.extents))
        return cls(
            convs=tuple(_rows_of_conv(planned.chain, index) for index in range(len(planned.chain.conv))),
            stored=tuple(span.rows for span in bands.spans),
            valid=tuple(extents.valid_rows for extents in planned.extents),
            bands=tuple(
                tuple((bands.first(tensor, band), bands.end(tensor, band)) for tensor in tensors)
                for band in range(bands.count)
            ),
            threads=planned.plan.threads,
            reads_input=reads_input_rows(planned.chain),
        )


def _rows_of_conv(chain: Chain, index: int) -> RowsOfConv:
    conv, rows = chain.conv[index], chain.shapes[index + 1][1]
    together = tile_rows(conv) if is_depthwise(chain, index) else ()
    return RowsOfConv(conv.stride[0], conv.reach[0], together, can_go_down(chain, index), rows)


@dataclass(frozen=True)
class StripeCounts:
    """What the nest of a chain does for one image, for stripes of several heights.

    Arrays have the shape [T, H] for T tensors, the input first, and H heights; or [H].

    Attributes:
        chain: the rows of the chain.
        heights: the rows of a stripe, where the output has as many.
        rolls: whether stripes roll (`halo = "roll"`).
        is_double: whether copies overlap compute (`buffering = "double"`).
    """

    chain: RowsOfChain
    heights: tuple[int, ...]
    rolls: bool
    is_double: bool

    @cached_property
    def size(self) -> Integers:
        """The rows of the output in a stripe."""
        return np.minimum(np.array(self.heights), self.chain.stored[-1])

    @cached_property
    def stripes(self) -> Integers:
        """How many stripes the output is made in."""
        return ceil_divide(self.chain.stored[-1], self.size)

    @cached_property
    def streams(self) -> Integers:
        """Whether stripes make new rows alone, and caches are rings."""
        return self.rolls & (self.stripes > 1)

    @cached_property
    def _whole(self) -> Integers:
        """The rows of a stripe of every tensor, where a stripe makes all rows that it reads."""
        rows = [self.size]
        for conv, stored in self._from_the_last:
            rows.insert(0, np.minimum(conv.rows_read(rows[0]), stored))
        return np.array(rows)

    @cached_property
    def _apart(self) -> Integers:
        """The rows of every tensor from the first one of a stripe to the first one of the next."""
        strides = [conv.stride for conv in self.chain.convs]
        return np.array([self.size * prod(strides[tensor:]) for tensor in range(len(strides) + 1)])

    @cached_property
    def _under(self) -> Integers:
        """The rows that a stripe of the output depends on, if tensors had no end."""
        rows = [self.size]
        for conv, _ in self._from_the_last:
            rows.insert(0, conv.rows_read(rows[0]))
        return np.array(rows)

    @property
    def _from_the_last(self) -> Iterator[tuple[RowsOfConv, int]]:
        """Each conv with the stored rows of what it reads, the last one first."""
        return zip(reversed(self.chain.convs), reversed(self.chain.stored[:-1]), strict=True)

    @cached_property
    def _new(self) -> Integers:
        """The new rows of every tensor that a stripe makes, where stripes stream."""
        return np.minimum(self._apart, self._under)

    @cached_property
    def _rings(self) -> Integers:
        """The rows of the ring of every tensor, where stripes stream; the output has none."""
        new, convs = self._new, self.chain.convs
        read = [np.maximum(new[tensor], conv.rows_read(new[tensor + 1])) for tensor, conv in enumerate(convs)]
        return np.array([np.minimum(rows, stored) for rows, stored in zip(read, self.chain.stored[:-1], strict=True)])

    @cached_property
    def ahead(self) -> Integers:
        """The rows of the input that are read ahead: none where a stride steps over rows, or padding alone is read."""
        steps_over = any(conv.reach < conv.stride for conv in self.chain.convs)
        if not self.is_double or steps_over or not self.chain.reads_input:
            return np.zeros_like(self.size)
        return np.where(self.streams, np.minimum(self._apart[0], self.chain.stored[0] - self._rings[0]), 0)

    @cached_property
    def _lead(self) -> Integers:
        """The first row of every tensor that stripe 0 makes."""
        lead = np.where(self.streams, self._under - self._new, 0)
        lead[0] += self.ahead
        return lead

    @cached_property
    def _height(self) -> Integers:
        """The rows of every tensor that a stripe makes."""
        return np.where(self.streams, self._new, self._whole)

    @cached_property
    def _run_in(self) -> Integers:
        """For every tensor, the stripes that come before the first one that makes any output."""
        return ceil_divide(self._lead[:-1], self._apart[:-1])

    @property
    def run_in(self) -> Integers:
        """The stripes before the first output that do more than read the input."""
        return self._run_in[1:].max(axis=0, initial=0)

    @cached_property
    def cache_rows(self) -> Integers:
        """The rows that the cache of every tensor holds."""
        rows = self._whole.copy()
        rows[:-1] = np.where(self.streams, self._rings, rows[:-1])
        rows[0] += self.ahead
        return rows

    @cached_property
    def _bands(self) -> list["_Band"]:
        """The steps of each thread."""
        return [self._band(rows) for rows in self.chain.bands]

    def _band(self, rows: tuple[tuple[int, int], ...]) -> "_Band":
        """Number the stripes of a thread that makes some rows of every tensor, and find what each makes."""
        (first, end), warm_up = rows[-1], self._run_in.max(axis=0)
        counts = ceil_divide(end, self.size) - first // self.size + warm_up
        height = np.repeat(np.arange(len(counts)), counts)
        starts = np.cumsum(counts) - counts
        number = np.arange(len(height)) + (first // self.size - warm_up - starts)[height]
        begin_of_band, end_of_band = np.array(rows).T[:, :, None]
        begin = number * self._apart[:, height] + self._lead[:, height]
        end_of_stripe = np.minimum(begin + self._height[:, height], end_of_band)
        begin = np.maximum(begin, begin_of_band)
        first_valid, end_valid = np.array(self.chain.valid).T[:, :, None]
        logical = np.minimum(end_of_stripe, end_valid) - np.maximum(begin, first_valid)
        return _Band(starts, counts, np.maximum(end_of_stripe - begin, 0), np.maximum(logical, 0))

    @cached_property
    def most_stripes(self) -> Integers:
        """The most stripes of a thread, without those that run in."""
        ends = [rows[-1] for rows in self.chain.bands]
        return np.max([ceil_divide(end, self.size) - first // self.size for first, end in ends], axis=0)

    @cached_property
    def logical_rows(self) -> Integers:
        """The logical rows of every tensor that all steps make."""
        return sum(band.sums(band.logical) for band in self._bands)

    @cached_property
    def stored_rows(self) -> Integers:
        """The rows of every tensor that all steps make, rows without elements included."""
        return sum(band.sums(band.rows) for band in self._bands)

    @cached_property
    def making_steps(self) -> Integers:
        """The steps that make a logical row of a tensor."""
        return sum(band.sums(band.logical > 0) for band in self._bands)

    @cached_property
    def _with_rows(self) -> Integers:
        """The steps that make a row of a tensor, with or without elements."""
        return sum(band.sums(band.rows > 0) for band in self._bands)

    @cached_property
    def _all(self) -> Integers:
        """The steps of any tensor, those included that make nothing."""
        return sum(band.counts for band in self._bands)

    @cached_property
    def steps(self) -> Integers:
        """The steps that make a tensor, without those that run in and make nothing."""
        return np.where(self.streams, self._with_rows, self._all)

    @cached_property
    def stagings(self) -> Integers:
        """How often the filter of the conv that makes a tensor is staged, unless it is resident."""
        return self._with_rows if self.rolls else np.broadcast_to(self._all, self._with_rows.shape)

    @cached_property
    def first_reads(self) -> Integers:
        """The rows of the input that steps of the first conv are the first to read (`PlannedRows.first_reads`)."""
        conv, total = self.chain.convs[0], np.zeros_like(self.size)
        more = conv.reach - conv.stride
        for band in self._bands:
            rows, steps = band.sums(band.logical)[1], band.sums(band.logical > 0)[1]
            total = total + rows * conv.stride + more * (np.minimum(steps, 1) if more > 0 else steps)
        return total

    def together(self, index: int) -> Integers:
        """Count how often rows of a depthwise conv are made in each way (`WAYS_TOGETHER`): [ways, H]."""
        conv, tensor = self.chain.convs[index], index + 1
        made = np.zeros((len(WAYS_TOGETHER), len(self.heights)), np.int64)
        for band in self._bands:
            left = band.logical[tensor]
            for rows in conv.together:
                made[TILE_ROWS.index(rows)] += band.sums(left // rows)
                left = left % rows
        goes_down = self._goes_down(index)
        made[:, goes_down] = 0
        made[len(TILE_ROWS) :, goes_down] = self.logical_rows[tensor, goes_down], self.making_steps[tensor, goes_down]
        return made

    def _goes_down(self, index: int) -> Integers:
        """Whether tiles of a conv go down (`hexconv.kernel.depthwise.goes_down`), for each height."""
        conv, strides = self.chain.convs[index], prod(conv.stride for conv in self.chain.convs[index + 1 :])
        rows = np.minimum(np.array(self.heights) * strides, ceil(conv.rows / self.chain.threads))
        return conv.goes_down & (rows >= LEAST_ROWS_DOWN)


@dataclass(frozen=True)
class _Band:
    """The steps of one thread, those of all heights one after the other.

    Attributes:
        starts: the number of the first step of each height, [H].
        counts: the steps of each height, [H].
        rows: the rows of every tensor that each step makes, [T, steps].
        logical: of these, the rows with elements.
    """

    starts: Integers
    counts: Integers
    rows: Integers
    logical: Integers

    def sums(self, steps: Integers) -> Integers:
        """Sum a figure of each step, [..., steps], for each height: [..., H]."""
        return np.add.reduceat(steps, self.starts, axis=-1, dtype=np.int64)


@lru_cache(REMEMBERED)
def stripe_counts(chain: RowsOfChain, heights: tuple[int, ...], rolls: bool, is_double: bool) -> StripeCounts:
    """Return the counts of a chain, each of which is computed once and remembered."""
    return StripeCounts(chain, heights, rolls, is_double)
