"""The steps of a nest of rows, from the shapes and the plan alone: which rows each makes of which tensor.

The output is made in stripes of `h_split` blocks of 8 rows. A conv that makes r rows of its output, from row a of the
stored tensor on, reads of its source

    rows a * stride .. a * stride + (r - 1) * stride + reach - 1          reach = (kernel - 1) * dilation + 1

or as many of these as there are. That is the stripe of the source; an intermediate's is made in one step, so that r of
the conv before is the whole of it. A cache holds its stripe, whole rows wide.

Rings (`halo = "roll"`). Where the rows of a tensor below M are there, of its source are there those below

    0 if M = 0, else M * stride + reach - stride

and a step makes the rest of its stripe alone. Double buffering gives a ring of the input as many rows more as one
stripe of the output adds, none where a stride steps over rows; a cache that is copied to or from more than once gets a
second slot.

Bands (`hexconv.kernel.bands`). A thread runs the stripes that its band meets, and makes the rows of its band alone; in
its first stripe nothing is there. What a cache holds stays as it is.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from hexconv.kernel.bands import RowBands, row_bands
from hexconv.kernel.depthwise import TILE_ROWS
from hexconv.kernel.forms import Forms
from hexconv.kernel.hvx.rows import rows_forms
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import ROW_BLOCK
from hexconv.spec.kernels import Kernel
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


@dataclass(frozen=True)
class RowStep:
    """One step of whatever makes a tensor.

    Attributes:
        start: the row at which its stripe starts.
        end: one past the last row of that.
        there: rows of the tensor that have been made before, all below this one.
        band: the rows that its thread makes: the first, one past the last.
    """

    start: int
    end: int
    there: int
    band: tuple[int, int]

    @property
    def rows(self) -> range:
        """The rows that it makes."""
        first, last = self.band
        begin = max(self.start, self.there, first)
        return range(begin, max(min(self.end, last), begin))


@dataclass(frozen=True)
class RowSteps:
    """A chain under a plan whose nest is kept in rows; everything else is derived from it.

    Attributes:
        chain: what is computed.
        plan: how.
        kernels: of every conv.
    """

    chain: Chain
    plan: Plan
    kernels: tuple[Kernel, ...]

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """Stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def forms(self) -> Forms:
        """The layouts."""
        return rows_forms(self.chain, self.plan.k_split)

    @cached_property
    def stripe_rows(self) -> tuple[int, ...]:
        """Rows of a stripe of every tensor, those that the output's blocks are rounded up to included.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
        >>> RowSteps(chain, Plan(kernel="hvx"), ("hvx", "hvx")).stripe_rows
        (12, 10, 8)
        """
        rows = [min(self.plan.h_split, self.extents[-1].row_blocks) * ROW_BLOCK]
        for conv, source in zip(reversed(self.chain.conv), reversed(self.extents[:-1]), strict=True):
            rows.insert(0, min((rows[0] - 1) * conv.stride[0] + conv.reach[0], source.rows))
        return tuple(rows)

    @property
    def stripes(self) -> int:
        """Of the output."""
        return ceil(self.extents[-1].row_blocks / self.plan.h_split)

    @cached_property
    def bands(self) -> RowBands:
        """Of the threads."""
        return row_bands(self.chain, self.plan)

    @property
    def ahead_rows(self) -> int:
        """Rows of the input that a ring holds beside a stripe, read ahead of it."""
        steps_over = any(conv.reach[0] < conv.stride[0] for conv in self.chain.conv)
        if self.plan.buffering == "single" or self.plan.halo != "roll" or steps_over:
            return 0
        added = self.stripe_rows[-1] * prod(conv.stride[0] for conv in self.chain.conv)
        return min(added, self.extents[0].rows - self.stripe_rows[0])

    def channel_tiles(self, index: int) -> int:
        """Of conv `index`."""
        return ceil(self.extents[index + 1].channel_blocks / self.plan.k_split)

    @cached_property
    def copy_times(self) -> dict[str, int]:
        """How often a thread copies to or from each cache, at most: the iterations of all loops around the copy."""
        times, runs, last = {}, self.extents[-1].batch, len(self.chain.conv) - 1
        for index in reversed(range(last + 1)):
            stripes = self.bands.most_stripes if index == last else 1
            tiles = runs * stripes * self.channel_tiles(index)
            if index == last:
                times[OUTPUT_CACHE] = tiles
            times[filter_cache(index + 1)] = 1 if self.plan.filters == "resident" else tiles
            runs = tiles if self._makes_source_again(index) else runs * stripes
        return {**times, INPUT_CACHE: runs}

    def _makes_source_again(self, index: int) -> bool:
        """Whether what conv `index` reads is made for each of its channel tiles."""
        return self.plan.order == "k_outer" and index == len(self.chain.conv) - 1 and self.stripes > 1

    @cached_property
    def doubled(self) -> frozenset[str]:
        """The caches of two slots."""
        rolls = {INPUT_CACHE} if self.plan.halo == "roll" else set()
        names = {name for name, times in self.copy_times.items() if times > 1} - rolls
        return frozenset(names if self.plan.buffering == "double" else ())

    @cached_property
    def steps(self) -> tuple[Counter[RowStep], ...]:
        """The steps that make every tensor, and how often each is run."""
        bands = [self.steps_of(band) for band in range(self.bands.count)]
        return tuple(sum(each, Counter[RowStep]()) for each in zip(*bands, strict=True))

    def steps_of(self, band: int) -> tuple[Counter[RowStep], ...]:
        """The steps of one thread that make every tensor, in their order, and how often each is run."""
        end, stripe, stripes = self.extents[-1].row_blocks * ROW_BLOCK, self.stripe_rows[-1], self.bands.stripes(band)
        rows = [(self.bands.first(t, band), self.bands.end(t, band)) for t in range(len(self.extents))]
        output: Counter[RowStep] = Counter()
        for number in stripes:
            start = number * stripe
            there = start if self.plan.halo == "roll" and number > stripes[0] else 0
            output[RowStep(start, min(start + stripe, end), there, rows[-1])] = self.extents[-1].batch
        steps = [output]
        for index in reversed(range(len(self.chain.conv))):
            made: Counter[RowStep] = Counter()
            again = self.channel_tiles(index) if self._makes_source_again(index) else 1
            for step, times in steps[0].items():
                made[self._source_step(index, step, rows[index])] += times * again
            steps.insert(0, made)
        return tuple(steps)

    def _source_step(self, index: int, step: RowStep, band: tuple[int, int]) -> RowStep:
        """The step that makes what a step of conv `index` reads."""
        conv = self.chain.conv[index]
        stride, start = conv.stride[0], step.start * conv.stride[0]
        there = step.there * stride + conv.reach[0] - stride if step.there else 0
        return RowStep(start, min(start + self.stripe_rows[index], self.extents[index].rows), there, band)

    def logical_rows(self, tensor: int) -> int:
        """Logical rows that all steps make of a tensor, repetitions included."""
        first, end = self.extents[tensor].valid_rows
        return sum(
            times * max(0, min(step.rows.stop, end) - max(step.rows.start, first))
            for step, times in self.steps[tensor].items()
        )

    def stored_rows(self, tensor: int) -> int:
        """Rows that all steps make of a tensor, those without elements and repetitions included."""
        return sum(times * len(step.rows) for step, times in self.steps[tensor].items())

    def making_steps(self, tensor: int) -> int:
        """How many steps make any logical row of a tensor."""
        first, end = self.extents[tensor].valid_rows
        steps = self.steps[tensor].items()
        return sum(times for step, times in steps if min(step.rows.stop, end) > max(step.rows.start, first))

    def rows_together(self, tensor: int) -> list[int]:
        """How often the steps of a tensor make so many rows together: four, two, one (`TILE_ROWS`)."""
        first, end = self.extents[tensor].valid_rows
        made = [0] * len(TILE_ROWS)
        for step, times in self.steps[tensor].items():
            rows = max(0, min(step.rows.stop, end) - max(step.rows.start, first))
            for size, together in enumerate(TILE_ROWS):
                made[size] += times * (rows // together)
                rows %= together
        return made

    def filter_stagings(self, index: int) -> int:
        """How often all of the filter of conv `index` is staged."""
        if self.plan.filters == "resident":
            return 1
        steps = self.steps[index + 1].items()
        return sum(times for step, times in steps if len(step.rows) or self.plan.halo == "recompute")
