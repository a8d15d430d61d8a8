"""Stripes and steps of a nest of rows, of one height or of many: which rows of every tensor each makes, holds, copies.

The output is made in stripes of `h_split` blocks of 8 rows, or of `rows` rows. A conv that makes r rows of its output,
from row a of the stored tensor on, reads of its source

    rows a * stride .. a * stride + (r - 1) * stride + reach - 1          reach = (kernel - 1) * dilation + 1

or as many of these rows as the source has. These rows are the stripe of the source. A stripe of an intermediate is made
in one step, so r of the conv before is the whole stripe. A cache holds its stripe, at full width.

Rings (`halo = "roll"`, of more than one stripe). A stripe of the output stands for g rows of a tensor, and the first
stripe depends on u rows. With n = min(g, u), stripe t makes those of the rows t * g + u - n .. t * g + u - 1 that
exist. Stripes begin below 0, so that earlier rows are made before the first output, one stripe's share after the other.
A ring holds the rows that n' new rows of its reader read, (n' - 1) * stride + reach, or n if that is more; where an Add
reads the tensor as well, all from the first row that a stripe adds. Double buffering reads the input one stripe's share
earlier, into a ring with as many rows more; it reads nothing earlier where a stride steps over rows.

Bands (`hexconv.kernel.bands`). A thread runs the stripes that its band meets, and makes the rows of its band alone; its
first stripe finds no rows made. Caches have the same size as without bands.

Rows are what the nest counts: single rows, or in a nest of blocks slabs of 8 rows. The stripes are the steps of one
conv, g rows apart. Each of its steps reads its source as far as the step reaches, so each makes g times the stride rows
of the source, which are new: in one step, or in several, where the nest makes so many rows at a time alone. The first
step may need more; warm-up steps before it make these. A ring holds the rows that a step of its reader reads, or
the rows of its own step if those are more.

All of that depends on the rows of a chain (`RowsOfChain`), not on its columns, its channels or its number of images: so
strips of any width share the counts of whole rows, and a batch of images has as many times the counts of one image. A
search asks for all heights of stripes at once, a plan for its own. Heights have different numbers of stripes. So the
steps of all heights stand in one axis, those of the first height before those of the second, and a sum over the steps
of each height is one call of numpy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import ceil, prod
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide
from hexconv.kernel.bands import RowBands
from hexconv.kernel.cost import LEAST_ROWS_DOWN, TILE_ROWS, WAYS_TOGETHER
from hexconv.kernel.form import rows_together
from hexconv.spec import Chain, Conv2d, tensor_extents
from hexconv.spec.extents import added_at, reads_input_rows

Span = tuple[int, int]
"""The first and one past the last of some rows."""


@dataclass(frozen=True)
class RowsOfConv:
    """How the rows of a conv follow from the rows of what it reads; a row may be a slab of 8.

    Attributes:
        stride: the rows of the source from one row of the output to the next.
        reach: the rows of the source that a row of the output reads.
        together: the numbers of rows that are made together, the largest first; none unless the conv is depthwise.
        goes_down: whether tiles go down in stripes that are tall enough.
        rows: the logical rows of the output.
    """

    stride: int
    reach: int
    together: tuple[int, ...] = ()
    goes_down: bool = False
    rows: int = 0

    @classmethod
    def of(cls, conv: Conv2d) -> "RowsOfConv":
        """Take the stride and the reach of a conv alone."""
        return cls(conv.stride[0], conv.reach[0])

    def rows_read(self, rows: Any) -> Any:
        """Count the rows of the source that neighbouring rows of the output read."""
        return (rows - 1) * self.stride + self.reach


@dataclass(frozen=True)
class Share:
    """One tensor's part of a stripe, for heights of stripes that broadcast; the output is the last tensor.

    Attributes:
        stripe: the rows of a stripe that makes all rows that it reads.
        apart: the rows from the first one of a step to the first one of the next, where stripes make new rows alone.
        lead: the first row that step 0 makes then, the first step of stripe 0, if the tensor had no end.
        made: how many new rows a step makes.
        ring: how many rows the ring holds.
        steps: how many steps there are in a stripe.
    """

    stripe: Any
    apart: Any
    lead: Any
    made: Any
    ring: Any
    steps: Any = 1

    def warm_up(self, ahead: Any = 0) -> Any:
        """How many warm-up stripes make rows of the tensor, `ahead` of those that are read."""
        return ceil_divide(self.lead + ahead, self.apart * self.steps)

    def rows_within(self, first: int, end: int, unit: int = 1) -> Any:
        """Count the rows from `first` up to `end` that all steps make; a row of the share is `unit` of these.

        >>> share = Share(stripe=3, apart=3, lead=0, made=2, ring=2)
        >>> slabs = Share(stripe=2, apart=1, lead=0, made=1, ring=2)
        >>> int(share.rows_within(0, 9)), int(slabs.rows_within(5, 60, unit=8))
        (6, 55)
        """

        def before(row: int) -> Any:
            steps, rest = divmod(row - self.lead * unit, self.apart * unit)
            return steps * self.made * unit + np.minimum(rest, self.made * unit)

        return before(end) - before(first)

    def making_steps(self, rows: int) -> Any:
        """Count the steps that make any of the rows below `rows`.

        >>> Share(stripe=3, apart=2, lead=1, made=2, ring=3).making_steps(8)
        5
        """
        return ceil_divide(rows - self.lead, self.apart) + ceil_divide(self.lead + self.made, self.apart) - 1


@dataclass(frozen=True)
class Added:
    """What Adds ask of stripes: which rows they read, and which tensors are made whole for them.

    Attributes:
        reads: for each Add, the tensor that it reads, the one that it makes, and by how many rows it reads behind the
            rows that it makes.
        whole: the tensors that one step makes, since a tensor is added behind them.
    """

    reads: tuple[tuple[int, int, int], ...] = ()
    whole: frozenset[int] = frozenset()

    @classmethod
    def of(cls, chain: Chain, unit: int = 1) -> "Added":
        """Take the Adds of a chain, in rows, or in slabs of `unit` rows."""
        adds = [(conv.add.tensor, index) for index, conv in enumerate(chain.conv) if conv.add]
        return cls(tuple((of, at + 1, added_at(chain, at)[0] // unit) for of, at in adds), chain.whole)

    def ring(self, tensor: int, end: Any, shares: Sequence[Share]) -> Any:
        """Count the rows that a ring holds for Adds: from the first that a step of the sum reads to the last made.

        Args:
            tensor: the tensor of the ring.
            end: one past the last row of it that there is in step 0 of what reads it.
            shares: those of the tensors behind it.
        """
        most = 0
        for of, made, behind in self.reads:
            if of == tensor and made - tensor <= len(shares):
                most = np.maximum(most, end - behind - shares[made - tensor - 1].lead)
        return most


NOTHING_ADDED = Added()


def shares_of(
    convs: Sequence[RowsOfConv], stored: Sequence[int], size: Any, step: Any = None, added: Added = NOTHING_ADDED
) -> list[Share]:
    """Return the share of every tensor, the input first; the output's is that of a step of the last conv.

    Args:
        convs: the convs up to the one whose steps are the stripes.
        stored: the stored rows of every tensor.
        size: the rows of a stripe.
        step: the rows that an intermediate is made by at a time; None where all that a step reads is made in one. It is
            so too behind a stride that steps over rows.
        added: what Adds read.
    """
    found, under, steps_over = [Share(np.minimum(size, stored[-1]), size, 0 * size, size, size)], size, False
    for index in reversed(range(len(convs))):
        conv, reader = convs[index], found[0]
        steps_over = steps_over or conv.reach < conv.stride
        most = step if step is not None and index + 1 not in added.whole else reader.stripe
        read = conv.rows_read(np.minimum(most, reader.stripe))
        apart, under = reader.apart * conv.stride, conv.rows_read(under)
        has_steps = index and index not in added.whole and not steps_over
        parts = apart // step if step is not None and has_steps else 1
        of_sums = added.ring(index, under, found)
        apart, under = apart // parts, under - (parts - 1) * (apart // parts)
        made = np.minimum(apart, under)
        held = np.maximum(np.maximum(made, conv.rows_read(reader.made)), of_sums)
        ring = np.minimum(held, stored[index])
        stripe = np.minimum(read, stored[index])
        found.insert(0, Share(stripe, apart, under - made, made, ring, reader.steps * parts))
    return found


def ahead_of(convs: Sequence[RowsOfConv], share: Share, rows: int) -> Any:
    """Count the rows of the input that its ring holds beyond those that are read, if it is read ahead.

    There are none where a stride steps over rows: the next rows to read then aren't those that follow.

    Args:
        convs: the convs up to the one whose steps are the stripes.
        share: that of the input.
        rows: the rows of the input.
    """
    steps_over = any(conv.reach < conv.stride for conv in convs)
    return 0 * share.ring if steps_over else np.minimum(share.apart, rows - share.ring)


def most_in_flight(rows: Integers, ends: Integers, last: int, reads: int, ahead: int) -> int:
    """Count the most rows of a ring that a thread has under way: a step adds its rows to those read ahead of it.

    Args:
        rows: how many rows of the input each step makes.
        ends: one past the last row of each step, had the input no end.
        last: one past the last row that the thread makes.
        reads: how many steps come first that wait for nothing.
        ahead: the rows that are read ahead.
    """
    most = left = 0
    for number, (made, end) in enumerate(zip(rows.tolist(), ends.tolist(), strict=True), -reads):
        left += made
        most = max(most, left)
        if number >= 0:
            left = min(left, max(min(last - (end - ahead), ahead), 0))
    return most


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
        added: what Adds read.
    """

    convs: tuple[RowsOfConv, ...]
    stored: tuple[int, ...]
    valid: tuple[Span, ...]
    bands: tuple[tuple[Span, ...], ...]
    threads: int
    reads_input: bool
    added: Added

    @classmethod
    def of(cls, chain: Chain, bands: RowBands, threads: int) -> "RowsOfChain":
        """Take the rows of a chain and of its bands, in plans that ask for so many threads."""
        tensors = range(len(chain.conv) + 1)
        return cls(
            convs=tuple(_rows_of_conv(chain, index) for index in range(len(chain.conv))),
            stored=tuple(span.rows for span in bands.spans),
            valid=tuple(extents.valid_rows for extents in tensor_extents(chain)),
            bands=tuple(
                tuple((bands.first(tensor, band), bands.end(tensor, band)) for tensor in tensors)
                for band in range(bands.count)
            ),
            threads=threads,
            reads_input=reads_input_rows(chain),
            added=Added.of(chain),
        )


def _rows_of_conv(chain: Chain, index: int) -> RowsOfConv:
    conv, rows = chain.conv[index], chain.shapes[index + 1][1]
    return RowsOfConv(conv.stride[0], conv.reach[0], *rows_together(chain, index), rows)


@dataclass(frozen=True)
class Steps:
    """The steps of one thread, those of all heights one after the other.

    Attributes:
        starts: the number of the first step of each height, [H].
        counts: the steps of each height, [H].
        first: the first row of every tensor that the thread makes, [T, 1].
        last: one past the last of these rows.
        begin: the first row of every tensor that each step makes, [T, steps].
        end: one past the last row of each step, had the tensor and the thread's part of it no end.
        logical: of the rows that each step makes, those with elements.
    """

    starts: Integers
    counts: Integers
    first: Integers
    last: Integers
    begin: Integers
    end: Integers
    logical: Integers

    @cached_property
    def rows(self) -> Integers:
        """The rows of every tensor that each step makes, [T, steps]."""
        return np.maximum(np.minimum(self.end, self.last) - self.begin, 0)

    def sums(self, figures: Integers) -> Integers:
        """Sum a figure of each step, [..., steps], for each height: [..., H]."""
        return np.add.reduceat(figures, self.starts, axis=-1, dtype=np.int64)


REMEMBERED = 64
"""The number of chains whose counts are kept: all strips of a chain ask for the same ones, one after the other."""


@dataclass(frozen=True)
class StripeCounts:
    """What the nest of a chain does for one image, for stripes of one height or of several.

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
    def shares(self) -> list[Share]:
        """The share of every tensor."""
        return shares_of(self.chain.convs, self.chain.stored, self.size, added=self.chain.added)

    @cached_property
    def ahead(self) -> Integers:
        """The rows of the input that are read ahead: none where a stride steps over rows, or padding alone is read."""
        if not self.is_double or not self.chain.reads_input:
            return np.zeros_like(self.size)
        return np.where(self.streams, ahead_of(self.chain.convs, self.shares[0], self.chain.stored[0]), 0)

    @cached_property
    def _apart(self) -> Integers:
        """The rows of every tensor from the first one of a stripe to the first one of the next."""
        return np.array([share.apart for share in self.shares])

    @cached_property
    def _lead(self) -> Integers:
        """The first row of every tensor that stripe 0 makes."""
        lead = np.where(self.streams, [share.lead for share in self.shares], 0)
        lead[0] += self.ahead
        return lead

    @cached_property
    def _run_in(self) -> Integers:
        """For every tensor, the stripes that come before the first one that makes any output."""
        return ceil_divide(self._lead[:-1], self._apart[:-1])

    @property
    def run_in(self) -> Integers:
        """The stripes before the first output that do more than read the input."""
        return self._run_in[1:].max(axis=0, initial=0)

    @property
    def warm_up(self) -> Integers:
        """The warm-up stripes: they come before the first one that makes any output."""
        return self._run_in.max(axis=0)

    @cached_property
    def cache_rows(self) -> Integers:
        """The rows that the cache of every tensor holds."""
        rows = np.where(self.streams, [share.ring for share in self.shares], [share.stripe for share in self.shares])
        rows[0] += self.ahead
        return rows

    @cached_property
    def bands(self) -> list[Steps]:
        """The steps of each thread."""
        made = np.where(self.streams, [share.made for share in self.shares], [share.stripe for share in self.shares])
        return [self._steps(made, rows) for rows in self.chain.bands]

    def _steps(self, made: Integers, rows: Sequence[Span]) -> Steps:
        """Find what each step of a thread makes.

        Args:
            made: of every tensor the rows that a stripe makes.
            rows: of every tensor the rows that the thread makes.
        """
        first, end = rows[-1]
        counts = ceil_divide(end, self.size) - first // self.size + self.warm_up
        starts = np.cumsum(counts) - counts
        height = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(height)) + (first // self.size - self.warm_up - starts)[height]
        (all_first, all_last), (first_valid, end_valid) = (
            np.transpose(np.array(spans))[:, :, None] for spans in (rows, self.chain.valid)
        )
        start = number * self._apart[:, height] + self._lead[:, height]
        end, begin = start + made[:, height], np.maximum(start, all_first)
        logical = np.minimum(end, np.minimum(all_last, end_valid)) - np.maximum(begin, first_valid)
        return Steps(starts, counts, all_first, all_last, begin, end, np.maximum(logical, 0))

    def _sum(self, of: Callable[[Steps], Integers]) -> Integers:
        """Sum a figure of all threads."""
        return reduce(np.add, map(of, self.bands))

    @cached_property
    def most_stripes(self) -> Integers:
        """The most stripes of a thread, without the warm-up."""
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
        """The steps that make a tensor, without those of the warm-up, which make nothing."""
        return np.where(self.streams, self._with_rows, self._all)

    @cached_property
    def stagings(self) -> Integers:
        """How often the filter of the conv that makes a tensor is staged, unless it is resident."""
        return self._with_rows if self.rolls else np.broadcast_to(self._all, self._with_rows.shape)

    @cached_property
    def first_reads(self) -> Integers:
        """The rows of the input that steps of the first conv are the first to read in their strip.

        Rows that a stride steps over count inside of a step, and not between two. Each step but the first has some rows
        in common with the one before, unless rows lie between what the two make.
        """
        conv, made, total = self.chain.convs[0], self.shares[1], np.zeros_like(self.size)
        more = conv.reach - conv.stride
        common = np.maximum(more - (made.apart - made.made) * conv.stride, 0)
        for band in self.bands:
            rows, steps = band.sums(band.logical)[1], band.sums(band.logical > 0)[1]
            total = total + rows * conv.stride + more * steps - common * np.maximum(steps - 1, 0)
        return total

    def together(self, index: int) -> Integers:
        """Count how often rows of a depthwise conv are made in each way (`WAYS_TOGETHER`): [ways, H]."""
        conv, tensor = self.chain.convs[index], index + 1

        def of(band: Steps) -> Integers:
            made, left = np.zeros((len(WAYS_TOGETHER), len(band.starts)), np.int64), band.logical[tensor]
            for rows in conv.together:
                made[TILE_ROWS.index(rows)] = band.sums(left // rows)
                left = left % rows
            return made

        made = self._sum(of)
        goes_down = self._goes_down(index)
        made[:, goes_down] = 0
        made[len(TILE_ROWS) :, goes_down] = self.logical_rows[tensor, goes_down], self.making_steps[tensor, goes_down]
        return made

    def _goes_down(self, index: int) -> Integers:
        """Whether tiles of a conv go down (`hexconv.kernel.depthwise.goes_down`), for each height."""
        conv, strides = self.chain.convs[index], prod(conv.stride for conv in self.chain.convs[index + 1 :])
        rows = np.minimum(np.array(self.heights) * strides, ceil(conv.rows / self.chain.threads))
        return conv.goes_down & (rows >= LEAST_ROWS_DOWN)

    def reads_in_flight(self, height: int) -> int:
        """How many rows of the input a thread has under way at once, where stripes of a height are read ahead."""
        most, ahead = list[int](), int(self.ahead[height])
        for band in self.bands:
            steps = slice(band.starts[height], band.starts[height] + band.counts[height])
            rows, ends, reads = band.rows[0, steps], band.end[0, steps], int((self.warm_up - self.run_in)[height])
            most.append(most_in_flight(rows, ends, int(band.last[0, 0]), reads, ahead))
        return max(most)


@lru_cache(REMEMBERED)
def stripe_counts(chain: RowsOfChain, heights: tuple[int, ...], rolls: bool, is_double: bool) -> StripeCounts:
    """Return the counts of a chain, each of which is computed once and remembered."""
    return StripeCounts(chain, heights, rolls, is_double)
