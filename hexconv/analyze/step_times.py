"""The time of a nest of rows, stripe step by stripe step: packets beside the bytes that copies move meanwhile.

A model that no run here can judge: a packet takes as long as copies of `bytes_per_packet` bytes. With one slot a cache
is copied, then used, so all bytes add to the packets. With double buffering a step takes the longer of both, as the
nest overlaps them (`hexconv.lower.overlap`):

    before the first step   the input's first stripe, and the first tile of each filter, or all of it if it is resident
    a step                  its packets, beside the input of the next step (a ring that is read ahead has that in its
                            own rows), the further tiles of its filters and the first ones of the next step, the last
                            tile of output of the step before, and its own tiles but the last
    behind the last step    the last tile of output

    time = sum over steps of  max(packets, bytes / bytes_per_packet)  +  what is exposed

Exposed is what no step has: what comes before and behind, the input of a ring that isn't read ahead, what kernels read
and write in caches outside of VTCM, vectors and tables, and the packets that a run takes once. Stripes are repeated
for each tile of the last conv's channels where stripes stand inside of tiles, and for each image and strip; only the
first of these passes has no step before it, and only the last no next one. Where stripes roll inside of a tile, the
next tile of the filter is read meanwhile, while any of them is made. Threads share the memory evenly, and the slowest
one counts.

Steps that follow each other and take the same are a run. Most stripes of a height are one, so the grid of all plans has
few runs: the first and the last stripes of a height, and one run between them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.plan_axes import Plans, Way, way_of
from hexconv.analyze.row_axes import NestAxes, Priced, Tiles
from hexconv.analyze.row_grid import costs_of_steps, output_prices
from hexconv.analyze.row_stripes import Steps, StripeCounts


@dataclass(frozen=True)
class StepTimes:
    """What plans take step by step, [words, R, K] for R runs of steps of all heights and threads.

    These words differ in more than where caches lie (`Plans.but_for_places`).

    Attributes:
        packets: the packets of all steps of a run, in one pass.
        moved_bytes: the bytes that copies move meanwhile, in a pass with another one behind it.
        last_bytes: the same in the last pass.
        first_bytes: the same for the first step of all, and for no other.
        passes: how often all stripes are made, [words, R, K].
        begins: the runs with which a thread begins a height.
        threads: the number of threads.
        alike: which of the words all plans are like.
        alone_packets: the packets beside those of steps, of a thread, for all plans, [all words, H, K].
        exposed_bytes: the bytes beside those that steps move, of all threads, likewise.
    """

    packets: Integers
    moved_bytes: Integers
    last_bytes: Integers
    first_bytes: Integers
    passes: Integers
    begins: Integers
    threads: int
    alike: Any
    alone_packets: Integers
    exposed_bytes: Integers

    def time_packets(self, bytes_per_packet: float) -> Integers:
        """Return the time in packets of one thread, [words, H, K]."""

        def longer(moved: Integers) -> Integers:
            return np.maximum(self.packets, moved * (self.threads / bytes_per_packet))

        first, usual = (longer(moved)[:, self.begins] for moved in (self.first_bytes, self.moved_bytes))
        steps = (self.passes - 1) * longer(self.moved_bytes) + longer(self.last_bytes)
        times = np.add.reduceat(steps, self.begins, axis=1)
        times += np.where(self.passes[:, self.begins] > 1, first - usual, 0)
        slowest = _by_thread(times, self.threads).max(axis=1)
        return slowest[self.alike] + self.alone_packets + self.exposed_bytes / bytes_per_packet


def _by_thread(figures: Integers, threads: int) -> Integers:
    """Take figures of heights, thread after thread, apart: [words, threads, H, K]."""
    words, heights, k_splits = figures.shape
    return np.reshape(figures, (words, threads, heights // threads, k_splits))


@dataclass(frozen=True)
class StepRuns(StripeCounts):
    """Runs of steps in place of heights of stripes: all counts are those of each run, [..., R], thread after thread.

    Attributes:
        of_threads: the steps of each thread, its runs in place of heights.
        begins: the runs with which a thread begins a height.
        next_input: the rows of the input of the steps that follow each, of the first step behind the last one.
        output_before: the rows of the output of the steps before each, likewise.
        ends: of every tensor, whether its filter is staged in the run for the last time, [T, R].
        is_first: whether the run is the first step.
        is_last: whether the run is the last step.
    """

    of_threads: tuple[Steps, ...]
    begins: Integers
    next_input: Integers
    output_before: Integers
    ends: Integers
    is_first: Integers
    is_last: Integers

    @classmethod
    def of(cls, counts: StripeCounts) -> "StepRuns":
        """Find the runs of the steps of a chain; without overlap one run has all steps of a height."""
        threads = [_runs(steps, counts) for steps in counts.bands]
        heights = tuple(counts.heights[int(at)] for _, places, _ in threads for at in places)
        ends = np.cumsum([0, *(len(at) for _, at, _ in threads)])
        begins = [np.flatnonzero(np.diff(at, prepend=-1)) + end for (_, at, _), end in zip(threads, ends, strict=False)]
        figures = np.concatenate([figures for _, _, figures in threads], axis=1)
        found = figures[0], figures[1], figures[4:], figures[2] > 0, figures[3] > 0
        of_threads = tuple(steps for steps, _, _ in threads)
        kind = counts.rolls, counts.is_double
        return cls(counts.chain, heights, *kind, of_threads, np.concatenate(begins), *found)

    @cached_property
    def bands(self) -> list[Steps]:
        """The steps of each thread, in runs."""
        return list(self.of_threads)

    def _sum(self, of: Any) -> Integers:
        """Return the figures of the runs of all threads, one after the other."""
        return np.concatenate([of(band) for band in self.bands], axis=-1)


@lru_cache(64)
def step_runs(counts: StripeCounts) -> StepRuns:
    """Return the runs of the steps of a chain, which all of its strips share."""
    return StepRuns.of(counts)


def _runs(steps: Steps, counts: StripeCounts) -> tuple[Steps, Integers, Integers]:
    """Return the steps of a thread in runs, the height of each by its number, and the figures of `StepRuns`."""
    height = np.repeat(np.arange(len(steps.counts)), steps.counts)
    number = np.arange(len(height)) - steps.starts[height]
    is_first, is_last = number == 0, number == steps.counts[height] - 1
    end = steps.starts + steps.counts - 1
    following = np.where(is_last, steps.starts[height], np.arange(len(height)) + 1)
    before = np.where(is_first, end[height], np.arange(len(height)) - 1)
    staged = steps.rows > 0 if counts.rolls else np.ones_like(steps.rows, bool)
    last = np.maximum.reduceat(np.where(staged, number, -1), steps.starts, axis=1)[:, height]
    figures = np.stack(
        [steps.logical[0, following], steps.rows[-1, before], is_first, is_last, *(staged & (number == last))]
    ).astype(np.int64)
    starts = steps.starts
    if counts.is_double:
        taken = np.concatenate([height[None], figures, steps.logical, steps.rows])
        starts = np.flatnonzero(np.any(taken[:, 1:] != taken[:, :-1], axis=0)) + 1
        starts = np.concatenate([[0], starts])
    of_runs = replace(steps, starts=starts, counts=np.diff(starts, append=len(height)))
    return of_runs, height[starts], of_runs.sums(figures)


@dataclass(frozen=True)
class StepAxes(NestAxes):
    """Plans whose stripes go in one way, over runs of steps in place of heights, for one pass over all stripes."""

    runs: StepRuns

    @classmethod
    def of(cls, axes: NestAxes, way: Way) -> "StepAxes":
        """Take those plans of a grid whose stripes go in one way."""
        runs, plans = step_runs(axes.counts[way]), axes.plans
        words = tuple(plan for plan in plans.words if way_of(plan) == way)
        return cls(axes.chain, Plans(words, runs.heights, plans.k_splits, plans.sample), runs)

    @cached_property
    def counts(self) -> dict[Way, StripeCounts]:
        """The counts of each run."""
        return dict.fromkeys(self.plans.ways, self.runs)

    def times(self, of: Callable[[StripeCounts], Any]) -> Integers:
        """Return how often something happens in an image, or in a strip of it."""
        return self.rows(of).astype(float)

    def repeated(self, tensor: int, times: Integers) -> Integers:
        """Return how often something happens in one pass: a pass makes a share of the output, [words, R, K].

        Of all other tensors it makes what there is, [words, R, 1].
        """
        return times[..., None] / self.again if tensor == len(self.chain.conv) else times[..., None]

    def _all_repeated(self, times: Integers) -> list[Integers]:
        return [self.repeated(tensor, times[:, tensor]) for tensor in range(len(self.chain.conv) + 1)]

    @cached_property
    def _stagings(self) -> list[Integers]:
        staged = self._all_repeated(self.times(lambda counts: counts.stagings))
        staged[-1] = np.where(self._stages_ahead, self._share / self.again, staged[-1])
        return [np.where(self.plans.flags("filters", "resident"), 0, each) for each in staged]

    @property
    def _stages_ahead(self) -> Integers:
        """Whether a pass over rolling stripes reads the last conv's tile of the next one, [words, R, 1]."""
        return self.plans.rolls_in_tiles & self.runs.streams[None, :, None]

    @property
    def _share(self) -> Integers:
        """The share of each run in what a thread makes of the output in all images and strips, [1, R, 1]."""
        rows, begins = self.runs.stored_rows[-1], self.runs.begins
        every = np.repeat(np.add.reduceat(rows, begins), np.diff(begins, append=len(rows)))
        return (rows / every)[None, :, None] / self.one.extents[-1].batch

    @property
    def passes(self) -> Integers:
        """How often all stripes are made: for each image or strip, and for each tile of the output's channels."""
        return self.again * self.one.extents[-1].batch

    def packets(self, priced: Priced) -> Integers:
        """The packets of each run."""
        of_steps = sum((times * packets for _, times, packets in costs_of_steps(self, priced)), np.zeros(1))
        written = self.runs.stored_rows[-1][None, :, None] / self._all_rows / self.passes
        return of_steps + written * output_prices(self, priced)[1]

    def moved(self) -> tuple[Integers, Integers, Integers]:
        """The bytes that copies move while a run computes: as in `StepTimes`, in any pass, in the last, and first."""
        runs, last = self.runs, self.convs[-1]
        usual, behind = self._input()
        for index in self.convs:
            size = self.of_conv(Tiles.filter_bytes, index)
            tiles = self.of_conv(Tiles.channel_tiles, index)
            usual = usual + self.stagings(index) * size
            first_tile = (runs.ends[index + 1] > 0)[None, :, None] * (size / tiles)
            if index == last:
                first_tile = np.where(self._stages_ahead, self._share * (size / self.again), first_tile)
            behind = behind + self.plans.flags("filters", "per_tile") * first_tile
        tiles = self.of_conv(Tiles.channel_tiles, last)
        rows = self.counts[self.plans.ways[0]].stored_rows[-1][None, :, None]
        of_row = self.tiles[0].output_bytes / (self.one.extents[-1].batch * self._all_rows)
        usual = usual + of_row * rows * (tiles - 1) / tiles * (self.again == 1)
        before = of_row / tiles * runs.output_before[None, :, None]
        usual: Integers = usual + before
        first: Integers = usual - before * runs.is_first[None, :, None]
        return usual, np.where(self.passes > 1, usual, first) - behind, first

    @property
    def _all_rows(self) -> int:
        """The rows of the output that are written of an image or a strip."""
        return self.runs.chain.stored[-1]

    def _input(self) -> tuple[Integers, Integers]:
        """The bytes of the input that each run copies meanwhile, and how many fewer it copies in the last pass."""
        batch, runs = self.one.extents[-1].batch, self.runs
        of_row = self.one.input_bytes(batch) / batch
        ahead = np.where(runs.streams, runs.logical_rows[0] * (runs.ahead > 0), runs.next_input)
        behind = np.where(runs.streams, 0, runs.next_input * runs.is_last)
        return of_row * ahead[None, :, None], of_row * behind[None, :, None]


def step_times(
    axes: NestAxes, packets: Integers, traffic_bytes: Integers, way: Way, priced: Priced
) -> tuple[Sequence[int], StepTimes]:
    """Return which combinations of words have stripes that go in one way, and what their plans take step by step.

    Args:
        axes: the plans.
        packets: the packets of all threads, [words, H, K].
        traffic_bytes: the bytes that plans move, [words, H, K].
        way: the way.
        priced: takes parts of a run to their packets.
    """
    which = [number for number, plan in enumerate(axes.plans.words) if way_of(plan) == way]
    every = StepAxes.of(axes, way)
    plans, alike = every.plans.but_for_places
    steps, shape = replace(every, plans=plans), plans.shape
    taken = np.broadcast_to(steps.packets(priced), shape)
    passes = np.broadcast_to(steps.passes, shape)
    moved = steps.moved() if way[1] else (np.zeros(1),) * 3
    usual, last, first = (np.broadcast_to(each, shape) for each in moved)
    begins = steps.runs.begins

    def summed(figures: Integers) -> Integers:
        return _by_thread(np.add.reduceat(figures, begins, axis=1), axes.threads).sum(axis=1)

    once = np.where(passes > 1, usual - first, 0)[:, begins]
    moving = summed((passes - 1) * usual + last) - _by_thread(once, axes.threads).sum(axis=1)
    alone = (packets[which] - summed(passes * taken)[alike]) / axes.threads
    exposed = traffic_bytes[which] - moving[alike]
    return which, StepTimes(taken, usual, last, first, passes, begins, axes.threads, alike, alone, exposed)
