"""Stripes and steps of a nest of rows: which rows of every tensor each makes, holds and copies.

The output is made in stripes of `h_split` blocks of 8 rows, or of `rows` rows. A conv that makes r rows of its output,
from row a of the stored tensor on, reads of its source

    rows a * stride .. a * stride + (r - 1) * stride + reach - 1          reach = (kernel - 1) * dilation + 1

or as many of these rows as the source has. These rows are the stripe of the source. A stripe of an intermediate is made
in one step, so r of the conv before is the whole stripe. A cache holds its stripe, at full width.

Rings (`halo = "roll"`, of more than one stripe). A stripe of the output stands for g rows of a tensor, and the first
stripe depends on u rows. With n = min(g, u), stripe t makes those of the rows t * g + u - n .. t * g + u - 1 that
exist. Stripes begin below 0, so that earlier rows are made before the first output, one stripe's share after the other.
A ring holds the rows that n' new rows of its reader read, (n' - 1) * stride + reach, or n if that is more. Double
buffering reads the input one stripe's share earlier, into a ring with as many rows more; it reads nothing earlier where
a stride steps over rows.

A stripe of a tensor is made in one step (`hexconv.analyze.row_stripes`). With double buffering a cache that is copied
to or from more than once gets a second slot.

Bands (`hexconv.kernel.bands`). A thread runs the stripes that its band meets, and makes the rows of its band alone; its
first stripe finds no rows made. Caches have the same size as without bands.

Rows are what the nest counts: single rows, or in a nest of blocks slabs of 8 rows. The stripes are the steps of one
conv, g rows apart. Each of its steps reads its source as far as the step reaches, so each makes g times the stride rows
of the source, which are new: in one step, or in several, where the nest makes so many rows at a time alone. The first
step may need more; steps before it, which run in, make these.

A ring holds the rows that a step of its reader reads, or the rows of its own step if those are more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.analyze.exact import ceil_divide
from hexconv.kernel.bands import RowBands, makes_anew, row_bands, turns
from hexconv.kernel.depthwise import TILE_ROWS, WAYS_TOGETHER, can_go_down, goes_down, is_depthwise, tile_rows
from hexconv.kernel.forms import Forms
from hexconv.kernel.row_forms import planned_forms
from hexconv.spec import Chain, Conv2d, Extents, Plan, tensor_extents
from hexconv.spec.extents import reads_input_rows
from hexconv.spec.kernels import Kernel
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache
from hexconv.spec.strips import Strips


@dataclass(frozen=True)
class Share:
    """The rows of a tensor that each step makes.

    Attributes:
        apart: the rows from the first one of a step to the first one of the next.
        under: one past the last row that step 0 makes, the first step of stripe 0, if the tensor had no end.
        made: how many new rows a step makes.
        ring: how many rows the ring holds.
        steps: how many steps there are in a stripe.
    """

    apart: int
    under: int
    made: int
    ring: int
    steps: int = 1

    @property
    def lead(self) -> int:
        """The first row that step 0 makes."""
        return self.under - self.made

    def warm_up(self, ahead: int = 0) -> int:
        """How many stripes run in to make rows of the tensor, `ahead` of those that are read."""
        return ceil_divide(self.lead + ahead, self.apart * self.steps)

    def rows_within(self, first: int, end: int, unit: int = 1) -> int:
        """Count the rows from `first` up to `end` that all steps make; a row of the share is `unit` of these.

        >>> Share(apart=3, under=2, made=2, ring=2).rows_within(0, 9), Share(1, 2, 1, 2).rows_within(5, 60, unit=8)
        (6, 55)
        """

        def before(row: int) -> int:
            steps, rest = divmod(row - self.lead * unit, self.apart * unit)
            return steps * self.made * unit + min(rest, self.made * unit)

        return before(end) - before(first)

    def making_steps(self, rows: int) -> int:
        """Count the steps that make any of the rows below `rows`.

        >>> Share(apart=2, under=3, made=2, ring=3).making_steps(8)
        5
        """
        return ceil_divide(rows - self.lead, self.apart) + ceil_divide(self.under, self.apart) - 1


def shares_of(convs: Sequence[Conv2d], rows: Sequence[int], stripe: int, step: int | None = None) -> tuple[Share, ...]:
    """Return the share of the source of each of some convs, the input first.

    Args:
        convs: the convs up to the one whose steps are the stripes.
        rows: the rows of the source of each.
        stripe: the rows of a stripe.
        step: the rows that an intermediate is made by at a time; None where all that a step reads is made in one. It is
            so too behind a stride that steps over rows.
    """
    share, found, steps_over = Share(stripe, stripe, stripe, 0), list[Share](), False
    for index in reversed(range(len(convs))):
        conv = convs[index]
        steps_over = steps_over or conv.reach[0] < conv.stride[0]
        apart, under = share.apart * conv.stride[0], conv.rows_read(share.under)
        parts = apart // step if step and index and not steps_over else 1
        apart, under = apart // parts, under - (parts - 1) * (apart // parts)
        made = min(apart, under)
        ring = min(max(made, conv.rows_read(share.made)), rows[index])
        share = Share(apart, under, made, ring, share.steps * parts)
        found.insert(0, share)
    return tuple(found)


def ahead_of(convs: Sequence[Conv2d], share: Share, rows: int) -> int:
    """Count the rows of the input that its ring holds beyond those that are read, if it is read ahead.

    There are none where a stride steps over rows: the next rows to read then aren't those that follow.

    Args:
        convs: the convs up to the one whose steps are the stripes.
        share: that of the input.
        rows: the rows of the input.
    """
    steps_over = any(conv.reach[0] < conv.stride[0] for conv in convs)
    return 0 if steps_over else min(share.apart, rows - share.ring)


@dataclass(frozen=True)
class RowStripes:
    """A chain under a plan whose nest is kept in rows; everything else is derived from it.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
        kernels: the kernel of each conv.
        strips: the strips of columns that the chain is a batch of; None where its rows are whole.
    """

    chain: Chain
    plan: Plan
    kernels: tuple[Kernel, ...]
    strips: Strips | None = None

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def forms(self) -> Forms:
        """The layouts of all tensors and filters."""
        return planned_forms(self.chain, self.plan, self.kernels)

    @cached_property
    def stripe_rows(self) -> tuple[int, ...]:
        """The rows of a stripe of every tensor, those included to which the output's blocks are rounded up.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowStripes(chain, Plan(kernel="hvx"), ("hvx", "hvx")).stripe_rows
        (12, 10, 8)
        """
        return self.chain.backwards(
            min(self.plan.stripe_rows, self.output_rows),
            lambda index, rows: min(self.chain.conv[index].rows_read(rows), self.extents[index].rows),
        )

    @property
    def stripes(self) -> int:
        """How many stripes the output is made in."""
        return ceil(self.output_rows / self.plan.stripe_rows)

    @property
    def output_rows(self) -> int:
        """The rows that are written of the output, those of its fringe included."""
        return self.bands.spans[-1].rows

    def makes_blocks(self, index: int) -> bool:
        """Whether conv `index` makes blocks of 8 rows: the output, where its cache lies in them."""
        return self.forms.row_units[index + 1] > 1

    @cached_property
    def bands(self) -> RowBands:
        """The bands of rows that the threads make."""
        return row_bands(self.chain, self.plan)

    @property
    def streams(self) -> bool:
        """Whether stripes make new rows alone, and caches are rings."""
        return self.plan.halo == "roll" and self.stripes > 1

    @cached_property
    def turns(self) -> dict[str, int]:
        """The number of the memory in which a cache takes turns with others, by its name; others are left out."""
        keeps = self.strips is not None and self.strips.keeps
        memories = turns(len(self.chain.conv), self.plan) if makes_anew(self.bands, self.plan, keeps) else ()
        return {name: number for number, names in enumerate(memories) for name in names}

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """For every tensor before the output, the rows that each stripe makes, where stripes stream."""
        rows = [tensor.rows for tensor in self.extents]
        return shares_of(self.chain.conv, rows, self.stripe_rows[-1])

    @property
    def ahead_rows(self) -> int:
        """The rows that a ring of the input holds beyond those that are read: rows that are read ahead.

        There are none where a stride steps over rows, or where padding is all that is read.
        """
        if self.plan.buffering == "single" or not self.streams or not reads_input_rows(self.chain):
            return 0
        return ahead_of(self.chain.conv, self.shares[0], self.extents[0].rows)

    @property
    def warm_up(self) -> int:
        """The stripes that run in: they come before the first one that makes any output."""
        if not self.streams:
            return 0
        return max(share.warm_up(self.rows_ahead(tensor)) for tensor, share in enumerate(self.shares))

    @property
    def run_in(self) -> int:
        """The stripes of the `warm_up` that do more than read the input."""
        shares = self.shares[1:] if self.streams else ()
        return max((share.warm_up() for share in shares), default=0)

    def rows_ahead(self, tensor: int) -> int:
        """Return how many rows of a tensor are made ahead of the rows that are read."""
        return 0 if tensor else self.ahead_rows

    @cached_property
    def cache_rows(self) -> tuple[int, ...]:
        """The rows that the cache of every tensor holds.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowStripes(chain, Plan(kernel="hvx", rows=1, order="h_outer", halo="roll"), ("hvx", "hvx")).cache_rows
        (3, 3, 1)
        """
        if not self.streams:
            return self.stripe_rows
        rings = (share.ring + self.rows_ahead(tensor) for tensor, share in enumerate(self.shares))
        return (*rings, self.stripe_rows[-1])


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


Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RowStep:
    """One step that makes rows of a tensor.

    Attributes:
        start: the first row of the step; it is negative where a stripe runs in before the tensor has rows.
        end: one past the last row of the step.
        band: the rows that the thread makes: the first, and one past the last.
    """

    start: int
    end: int
    band: tuple[int, int]

    @property
    def rows(self) -> range:
        """The rows that the step makes: those of its own that its thread makes."""
        first, last = self.band
        begin = max(self.start, first)
        return range(begin, max(min(self.end, last), begin))


@dataclass(frozen=True)
class Steps:
    """All steps of one thread that make a tensor, as arrays of one element a step: counting is one sum over them.

    Attributes:
        start: the first row of each step (`RowStep.start`).
        end: one past the last row of each step.
        band: the rows that the thread makes: the first, and one past the last.
        times: how often each step is run.
    """

    start: Numbers
    end: Numbers
    band: tuple[int, int]
    times: int

    @property
    def each(self) -> list[RowStep]:
        """The steps one by one, in their order."""
        return [RowStep(int(start), int(end), self.band) for start, end in zip(self.start, self.end, strict=True)]

    @property
    def begin(self) -> Numbers:
        """The first row that each step makes."""
        return np.maximum(self.start, self.band[0])

    @cached_property
    def rows(self) -> Numbers:
        """The number of rows that each step makes."""
        return np.maximum(np.minimum(self.end, self.band[1]) - self.begin, 0)

    def rows_within(self, first: int, end: int) -> Numbers:
        """Return how many of the rows from `first` up to `end` each step makes.

        >>> Steps(np.array([0, 4]), np.array([4, 8]), (0, 8), times=1).rows_within(3, 6).tolist()
        [1, 2]
        """
        stop = np.minimum(self.end, min(end, self.band[1]))
        return np.maximum(stop - np.maximum(self.begin, first), 0)


def most_in_flight(steps: Steps, reads: int, ahead: int) -> int:
    """Count the most rows of a ring that a thread has under way: a step adds its rows to those read ahead of it.

    Args:
        steps: the steps that read the input.
        reads: how many come first that wait for nothing.
        ahead: the rows that are read ahead.
    """
    most = left = 0
    for number, step in enumerate(steps.each, -reads):
        left += len(step.rows)
        most = max(most, left)
        if number >= 0:
            left = min(left, max(min(steps.band[1] - (step.end - ahead), ahead), 0))
    return most


@dataclass(frozen=True)
class RowSteps(RowStripes):
    """A chain under a plan whose nest is kept in rows, with the steps that make its tensors."""

    def channel_tiles(self, index: int) -> int:
        """Return how many channel tiles conv `index` has."""
        return ceil(self.extents[index + 1].channel_blocks / self.plan.k_split)

    @cached_property
    def copy_times(self) -> dict[str, int]:
        """How often a thread copies to or from each cache, at most: the iterations of all loops around the copy."""
        times, runs, last = {}, self.extents[-1].batch, len(self.chain.conv) - 1
        for index in reversed(range(last + 1)):
            stripes = self.bands.most_stripes + self.run_in if index == last else 1
            tiles = runs * stripes * self.channel_tiles(index)
            if index == last:
                times[OUTPUT_CACHE] = tiles
            times[filter_cache(index + 1)] = 1 if self.plan.filters == "resident" else tiles
            runs = tiles if self._makes_source_again(index) else runs * stripes
        return {**times, INPUT_CACHE: runs}

    def _makes_source_again(self, index: int) -> bool:
        """Whether the rows that conv `index` reads are made again for each of its channel tiles."""
        return self.plan.order == "k_outer" and index == len(self.chain.conv) - 1 and self.stripes > 1

    @cached_property
    def doubled(self) -> frozenset[str]:
        """The names of the caches with two slots."""
        if self.plan.buffering == "single":
            return frozenset()
        rolls = {INPUT_CACHE} if self.streams else set()
        return frozenset({name for name, times in self.copy_times.items() if times > 1} - rolls)

    @property
    def reads_in_flight(self) -> int:
        """How many copies of the input a thread has under way at once, with double buffering; a ring copies rows."""
        if not self.streams:
            return 2 if INPUT_CACHE in self.doubled else 1
        reads = self.warm_up - self.run_in
        if not self.ahead_rows:
            return 1 + reads  # one for each stripe that only reads, and one for the next stripe
        bands = (self.steps_of(band)[0] for band in range(self.bands.count))
        return max(most_in_flight(steps, reads, self.ahead_rows) for steps in bands)

    @cached_property
    def steps(self) -> tuple[tuple[Steps, ...], ...]:
        """The steps that make every tensor, thread by thread."""
        bands = [self.steps_of(band) for band in range(self.bands.count)]
        return tuple(zip(*bands, strict=True))

    def steps_of(self, band: int) -> tuple[Steps, ...]:
        """Return the steps of one thread that make each tensor, in their order."""
        numbers = self.bands.stripes(band)
        rows = [(self.bands.first(t, band), self.bands.end(t, band)) for t in range(len(self.extents))]
        if not self.streams:
            return self._whole_stripes(np.arange(numbers.start, numbers.stop), rows)
        batch, stripes = self.extents[-1].batch, np.arange(numbers.start - self.warm_up, numbers.stop)
        steps = []
        for tensor, share in enumerate(self.shares):
            first = stripes * share.apart + share.lead + self.rows_ahead(tensor)
            steps.append(Steps(first, first + share.made, rows[tensor], batch))
        size = self.stripe_rows[-1]
        made = np.where(stripes >= 0, (stripes + 1) * size, 0)
        return (*steps, Steps(stripes * size, made, rows[-1], batch))

    def _whole_stripes(self, numbers: Numbers, rows: list[tuple[int, int]]) -> tuple[Steps, ...]:
        """Return the steps of stripes that make all rows that they read; `rows` are the band's rows of each tensor."""

        def read(index: int, reader: Steps) -> Steps:
            again = self.channel_tiles(index) if self._makes_source_again(index) else 1
            start = reader.start * self.chain.conv[index].stride[0]
            end = np.minimum(start + self.stripe_rows[index], self.extents[index].rows)
            return Steps(start, end, rows[index], reader.times * again)

        size, batch = self.stripe_rows[-1], self.extents[-1].batch
        last = Steps(numbers * size, np.minimum((numbers + 1) * size, self.output_rows), rows[-1], batch)
        return self.chain.backwards(last, read)

    def logical_rows(self, tensor: int) -> int:
        """Count the logical rows that all steps make of a tensor, repetitions included."""
        return sum(int(rows.sum()) * times for rows, times in self._rows_with_elements[tensor])

    @cached_property
    def _rows_with_elements(self) -> list[list[tuple[Numbers, int]]]:
        """Of every tensor, how many logical rows each step makes, and how often, thread by thread."""
        return [
            [(each.rows_within(*extents.valid_rows), each.times) for each in steps]
            for extents, steps in zip(self.extents, self.steps, strict=True)
        ]

    def stored_rows(self, tensor: int) -> int:
        """Count the rows that all steps make of a tensor, rows without elements and repetitions included."""
        return sum(int(steps.rows.sum()) * steps.times for steps in self.steps[tensor])

    def step_count(self, tensor: int) -> int:
        """Count the steps that make a tensor, without those that run in and make nothing."""
        return self._counted(tensor, with_empty=not self.streams)

    def making_steps(self, tensor: int) -> int:
        """Count the steps that make any logical row of a tensor."""
        return sum(int((rows > 0).sum()) * times for rows, times in self._rows_with_elements[tensor])

    def rows_together(self, tensor: int) -> list[int]:
        """Count how often the steps of a conv's output make rows in each way (`WAYS_TOGETHER`)."""
        if goes_down(self.chain, self.plan, tensor - 1):
            return [*(0 for _ in TILE_ROWS), self.logical_rows(tensor), self.making_steps(tensor)]
        made: dict[int, int] = dict.fromkeys(TILE_ROWS, 0)
        for rows, times in self._rows_with_elements[tensor]:
            for together in tile_rows(self.chain.conv[tensor - 1]):
                made[together] += int((rows // together).sum()) * times
                rows = rows % together
        return [*made.values(), *(0 for _ in WAYS_TOGETHER[len(TILE_ROWS) :])]

    def filter_stagings(self, index: int) -> int:
        """Count how often all of the filter of conv `index` is staged."""
        if self.plan.filters == "resident":
            return 1
        return self._counted(index + 1, with_empty=self.plan.halo == "recompute")

    def _counted(self, tensor: int, with_empty: bool) -> int:
        """Count the steps of a tensor that make rows, or all of them."""
        return sum(int((with_empty | (steps.rows > 0)).sum()) * steps.times for steps in self.steps[tensor])
