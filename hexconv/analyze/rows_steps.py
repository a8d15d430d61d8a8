"""Derive the steps of a nest of rows from the shapes and the plan alone: which rows of which tensor each step makes.

A stripe of a tensor is made in one step (`hexconv.analyze.rows_stripes`). With double buffering a cache that is copied
to or from more than once gets a second slot.

Bands (`hexconv.kernel.bands`). A thread runs the stripes that its band meets, and makes the rows of its band alone; its
first stripe finds no rows made. Caches have the same size as without bands.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from hexconv.analyze.row_step import RowStep
from hexconv.analyze.rows_stripes import RowStripes
from hexconv.kernel.depthwise import TILE_ROWS
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


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
            lead = share.lead + self.rows_ahead(tensor)
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
