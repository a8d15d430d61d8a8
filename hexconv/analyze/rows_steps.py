"""Derive the steps of a nest of rows from the shapes and the plan alone: which rows of which tensor each step makes.

A stripe of a tensor is made in one step (`hexconv.analyze.rows_stripes`). With double buffering a cache that is copied
to or from more than once gets a second slot.

Bands (`hexconv.kernel.bands`). A thread runs the stripes that its band meets, and makes the rows of its band alone; its
first stripe finds no rows made. Caches have the same size as without bands.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from hexconv.analyze.row_step import Numbers, Steps, most_in_flight
from hexconv.analyze.rows_stripes import RowStripes
from hexconv.kernel.depthwise import TILE_ROWS, WAYS_TOGETHER, goes_down, tile_rows
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
