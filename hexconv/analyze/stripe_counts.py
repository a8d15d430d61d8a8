"""Rows and steps of a nest of rows for many heights of its stripes at once.

The formulas are those of one plan (`hexconv.analyze.row_stripes`, `hexconv.analyze.row_stripes`), over arrays. They
depend on the rows of a chain, not on its columns, its channels or its number of images. So strips of any width share
the counts of whole rows, and a batch of images has as many times the counts of one image.

Heights have different numbers of stripes. So the steps of all heights stand in one axis, those of the first height
before those of the second, and a sum over the steps of each height is one call of numpy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import ceil, prod

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide
from hexconv.analyze.row_stripes import RowsOfChain, RowsOfConv
from hexconv.kernel.depthwise import LEAST_ROWS_DOWN, TILE_ROWS, WAYS_TOGETHER

Span = tuple[int, int]
"""The first and one past the last of some rows."""


@dataclass(frozen=True)
class Stripes:
    """The stripes of T tensors, for H heights.

    Attributes:
        size: the rows of the output in a stripe, [H].
        apart: the rows of every tensor from the first one of a stripe to the first one of the next, [T, H].
        lead: the first row of every tensor that stripe 0 makes, [T, H].
        height: the rows of every tensor that a stripe makes, [T, H].
        warm_up: the stripes that run in, before the first one that makes any output, [H].
    """

    size: Integers
    apart: Integers
    lead: Integers
    height: Integers
    warm_up: Integers


@dataclass(frozen=True)
class StepsOfHeights:
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

    @classmethod
    def of(cls, stripes: Stripes, valid: Sequence[Span], made: Sequence[Span]) -> "StepsOfHeights":
        """Find what each step of a thread makes.

        Args:
            stripes: the stripes.
            valid: of every tensor the rows that have elements.
            made: of every tensor the rows that the thread makes.
        """
        first, end = made[-1]
        counts = ceil_divide(end, stripes.size) - first // stripes.size + stripes.warm_up
        starts = np.cumsum(counts) - counts
        height = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(height)) + (first // stripes.size - stripes.warm_up - starts)[height]
        (first_made, end_made), (first_valid, end_valid) = (np.array(rows).T[:, :, None] for rows in (made, valid))
        start = number * stripes.apart[:, height] + stripes.lead[:, height]
        stop = np.minimum(start + stripes.height[:, height], end_made)
        start = np.maximum(start, first_made)
        logical = np.minimum(stop, end_valid) - np.maximum(start, first_valid)
        return cls(starts, counts, np.maximum(stop - start, 0), np.maximum(logical, 0))

    def sums(self, figures: Integers) -> Integers:
        """Sum a figure of each step, [..., steps], for each height: [..., H]."""
        return np.add.reduceat(figures, self.starts, axis=-1, dtype=np.int64)


REMEMBERED = 64
"""The number of chains whose counts are kept: all strips of a chain ask for the same ones, one after the other."""


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
    def _bands(self) -> list[StepsOfHeights]:
        """The steps of each thread."""
        stripes = Stripes(self.size, self._apart, self._lead, self._height, self._run_in.max(axis=0))
        return [StepsOfHeights.of(stripes, self.chain.valid, rows) for rows in self.chain.bands]

    def _sum(self, of: Callable[[StepsOfHeights], Integers]) -> Integers:
        """Sum a figure of all threads."""
        return reduce(np.add, map(of, self._bands))

    @cached_property
    def most_stripes(self) -> Integers:
        """The most stripes of a thread, without those that run in."""
        ends = [rows[-1] for rows in self.chain.bands]
        return np.max([ceil_divide(end, self.size) - first // self.size for first, end in ends], axis=0)

    @cached_property
    def logical_rows(self) -> Integers:
        """The logical rows of every tensor that all steps make."""
        return self._sum(lambda band: band.sums(band.logical))

    @cached_property
    def stored_rows(self) -> Integers:
        """The rows of every tensor that all steps make, rows without elements included."""
        return self._sum(lambda band: band.sums(band.rows))

    @cached_property
    def making_steps(self) -> Integers:
        """The steps that make a logical row of a tensor."""
        return self._sum(lambda band: band.sums(band.logical > 0))

    @cached_property
    def _with_rows(self) -> Integers:
        """The steps that make a row of a tensor, with or without elements."""
        return self._sum(lambda band: band.sums(band.rows > 0))

    @cached_property
    def _all(self) -> Integers:
        """The steps of any tensor, those included that make nothing."""
        return self._sum(lambda band: band.counts)

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
        common = np.maximum(more - (self._apart[1] - self._new[1]) * conv.stride, 0)
        for band in self._bands:
            rows, steps = band.sums(band.logical)[1], band.sums(band.logical > 0)[1]
            total = total + rows * conv.stride + more * steps - common * np.maximum(steps - 1, 0)
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


@lru_cache(REMEMBERED)
def stripe_counts(chain: RowsOfChain, heights: tuple[int, ...], rolls: bool, is_double: bool) -> StripeCounts:
    """Return the counts of a chain, each of which is computed once and remembered."""
    return StripeCounts(chain, heights, rolls, is_double)
