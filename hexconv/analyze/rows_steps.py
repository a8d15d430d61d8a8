"""Derive the steps of a nest of rows from the shapes and the plan alone: which rows of which tensor each step makes.

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
a stride steps over rows. A cache that is copied to or from more than once gets a second slot.

Bands (`hexconv.kernel.bands`). A thread runs the stripes that its band meets, and makes the rows of its band alone; its
first stripe finds no rows made. Caches have the same size as without bands.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from hexconv.analyze.row_step import RowStep, Share
from hexconv.kernel.bands import RowBands, row_bands
from hexconv.kernel.depthwise import TILE_ROWS
from hexconv.kernel.forms import Forms
from hexconv.kernel.hvx.rows import keeps_output_rows, rows_forms
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.kernels import Kernel
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


@dataclass(frozen=True)
class RowSteps:
    """A chain under a plan whose nest is kept in rows; everything else is derived from it.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
        kernels: the kernel of each conv.
    """

    chain: Chain
    plan: Plan
    kernels: tuple[Kernel, ...]

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def forms(self) -> Forms:
        """The layouts of all tensors and filters."""
        has_output_rows = keeps_output_rows(self.chain, self.plan)
        return rows_forms(self.chain, self.plan.k_split, has_output_rows, self.kernels)

    @cached_property
    def stripe_rows(self) -> tuple[int, ...]:
        """The rows of a stripe of every tensor, those included to which the output's blocks are rounded up.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowSteps(chain, Plan(kernel="hvx"), ("hvx", "hvx")).stripe_rows
        (12, 10, 8)
        """
        rows = [min(self.plan.stripe_rows, self.output_rows)]
        for conv, source in zip(reversed(self.chain.conv), reversed(self.extents[:-1]), strict=True):
            rows.insert(0, min((rows[0] - 1) * conv.stride[0] + conv.reach[0], source.rows))
        return tuple(rows)

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
    def shares(self) -> tuple[Share, ...]:
        """For every tensor before the output, the rows that each stripe makes, where stripes stream."""
        size = self.stripe_rows[-1]
        reader, shares = Share(size, size, size, 0), []
        for conv, source in zip(reversed(self.chain.conv), reversed(self.extents[:-1]), strict=True):
            (stride, _), (reach, _) = conv.stride, conv.reach
            apart, under = reader.apart * stride, (reader.under - 1) * stride + reach
            made, read = min(apart, under), (reader.made - 1) * stride + reach
            reader = Share(apart, under, made, min(max(made, read), source.rows))
            shares.insert(0, reader)
        return tuple(shares)

    @property
    def ahead_rows(self) -> int:
        """The rows that a ring of the input holds beyond those that are read: rows that are read ahead."""
        steps_over = any(conv.reach[0] < conv.stride[0] for conv in self.chain.conv)
        if self.plan.buffering == "single" or not self.streams or steps_over:
            return 0
        return min(self.shares[0].apart, self.extents[0].rows - self.shares[0].ring)

    @property
    def warm_up(self) -> int:
        """The stripes that run in: they come before the first one that makes any output."""
        if not self.streams:
            return 0
        return max(ceil((share.lead + self._ahead(tensor)) / share.apart) for tensor, share in enumerate(self.shares))

    @property
    def run_in(self) -> int:
        """The stripes of the `warm_up` that do more than read the input."""
        shares = self.shares[1:] if self.streams else ()
        return max((ceil(share.lead / share.apart) for share in shares), default=0)

    def _ahead(self, tensor: int) -> int:
        """Return how many rows of a tensor are made ahead of the rows that are read."""
        return 0 if tensor else self.ahead_rows

    @cached_property
    def cache_rows(self) -> tuple[int, ...]:
        """The rows that the cache of every tensor holds.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowSteps(chain, Plan(kernel="hvx", rows=1, order="h_outer", halo="roll"), ("hvx", "hvx")).cache_rows
        (3, 3, 1)
        """
        if not self.streams:
            return self.stripe_rows
        rings = (share.ring + self._ahead(tensor) for tensor, share in enumerate(self.shares))
        return (*rings, self.stripe_rows[-1])

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
        rolls = {INPUT_CACHE} if self.streams else set()
        names = {name for name, times in self.copy_times.items() if times > 1} - rolls
        return frozenset(names if self.plan.buffering == "double" else ())

    @cached_property
    def steps(self) -> tuple[Counter[RowStep], ...]:
        """The steps that make every tensor, and how often each is run."""
        bands = [self.steps_of(band) for band in range(self.bands.count)]
        return tuple(sum(each, Counter[RowStep]()) for each in zip(*bands, strict=True))

    def steps_of(self, band: int) -> tuple[Counter[RowStep], ...]:
        """Return the steps of one thread that make each tensor, in their order, and how often each step is run."""
        numbers = self.bands.stripes(band)
        rows = [(self.bands.first(t, band), self.bands.end(t, band)) for t in range(len(self.extents))]
        if not self.streams:
            return self._whole_stripes(numbers, rows)
        batch, starts = self.extents[-1].batch, range(numbers.start - self.warm_up, numbers.stop)
        steps = []
        for tensor, share in enumerate(self.shares):
            lead = share.lead + self._ahead(tensor)
            firsts = (number * share.apart + lead for number in starts)
            steps.append(Counter({RowStep(first, first + share.made, rows[tensor]): batch for first in firsts}))
        size = self.stripe_rows[-1]
        steps.append(Counter({RowStep(t * size, (t + 1) * size if t >= 0 else 0, rows[-1]): batch for t in starts}))
        return tuple(steps)

    def _whole_stripes(self, numbers: range, rows: list[tuple[int, int]]) -> tuple[Counter[RowStep], ...]:
        """Return the steps of stripes that make all rows that they read; `rows` are the band's rows of each tensor."""
        size, output = self.stripe_rows[-1], Counter[RowStep]()
        for start in (number * size for number in numbers):
            output[RowStep(start, min(start + size, self.output_rows), rows[-1])] = self.extents[-1].batch
        steps = [output]
        for index in reversed(range(len(self.chain.conv))):
            made: Counter[RowStep] = Counter()
            again = self.channel_tiles(index) if self._makes_source_again(index) else 1
            for step, times in steps[0].items():
                start = step.start * self.chain.conv[index].stride[0]
                end = min(start + self.stripe_rows[index], self.extents[index].rows)
                made[RowStep(start, end, rows[index])] += times * again
            steps.insert(0, made)
        return tuple(steps)

    def logical_rows(self, tensor: int) -> int:
        """Count the logical rows that all steps make of a tensor, repetitions included."""
        first, end = self.extents[tensor].valid_rows
        return sum(
            times * max(0, min(step.rows.stop, end) - max(step.rows.start, first))
            for step, times in self.steps[tensor].items()
        )

    def stored_rows(self, tensor: int) -> int:
        """Count the rows that all steps make of a tensor, rows without elements and repetitions included."""
        return sum(times * len(step.rows) for step, times in self.steps[tensor].items())

    def step_count(self, tensor: int) -> int:
        """Count the steps that make a tensor, without those that run in and make nothing."""
        return sum(times for step, times in self.steps[tensor].items() if len(step.rows) or not self.streams)

    def making_steps(self, tensor: int) -> int:
        """Count the steps that make any logical row of a tensor."""
        first, end = self.extents[tensor].valid_rows
        steps = self.steps[tensor].items()
        return sum(times for step, times in steps if min(step.rows.stop, end) > max(step.rows.start, first))

    def rows_together(self, tensor: int) -> list[int]:
        """Count how often the steps of a tensor make four, two and one rows together (`TILE_ROWS`)."""
        first, end = self.extents[tensor].valid_rows
        made = [0] * len(TILE_ROWS)
        for step, times in self.steps[tensor].items():
            rows = max(0, min(step.rows.stop, end) - max(step.rows.start, first))
            for size, together in enumerate(TILE_ROWS):
                made[size] += times * (rows // together)
                rows %= together
        return made

    def filter_stagings(self, index: int) -> int:
        """Count how often all of the filter of conv `index` is staged."""
        if self.plan.filters == "resident":
            return 1
        steps = self.steps[index + 1].items()
        return sum(times for step, times in steps if len(step.rows) or self.plan.halo == "recompute")
