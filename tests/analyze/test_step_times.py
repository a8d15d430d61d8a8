"""The time of plans step by step, against a nest whose steps and copies are followed one by one."""

from collections import defaultdict
from dataclasses import replace
from math import prod
from random import Random

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze.nest_packets import on_set_up
from hexconv.analyze.row_axes import WAYS, NestAxes
from hexconv.analyze.row_grid import rows_of_plan, rows_traffic
from hexconv.analyze.row_stripes import Steps, StripeCounts
from hexconv.kernel.cost import TILE_ROWS, Parts
from hexconv.search import Space, evaluate
from hexconv.search.grid import figures_of
from hexconv.search.machine import rates
from hexconv.search.space import kinds_of_strips
from hexconv.spec import Chain, Conv2d, Padding, Plan, Requantize, kernel_of
from hexconv.spec.places import STORAGES, Storage
from hexconv.spec.vectors import vectors_bytes
from tests.draws import LOWERED
from tests.strategies import chains, is_supported

PRICED = rates("v68").nest.packets


class Followed:
    """One thread of a nest, pass after pass and step after step: what each step computes, and which copies it hides."""

    def __init__(self, axes: NestAxes, counts: StripeCounts, band: Steps) -> None:
        self.axes, self.counts, self.band, (self.plan,) = axes, counts, band, axes.plans.words
        self.tiles, self.again = axes.tiles[0], int(axes.again.item())
        self.batch, self.last = axes.one.extents[-1].batch, len(axes.convs)
        self.is_double, self.is_resident = self.plan.buffering == "double", self.plan.filters == "resident"
        self.streams, self.ahead = bool(counts.streams[0]), bool(counts.ahead[0] > 0)
        self.order = [step for _ in range(self.batch * self.again) for step in range(int(band.counts[0]))]
        self.stages_ahead = self.plan.rolls_in_tiles and self.streams
        self.hidden, self.bytes = defaultdict[int, float](float), 0.0

    def rows(self, tensor: int, step: int) -> tuple[int, int]:
        """The rows with elements, and without, that a step makes of a tensor."""
        made, logical = int(self.band.rows[tensor, step]), int(self.band.logical[tensor, step])
        return logical, made - logical

    def packets(self, step: int) -> float:
        """The packets of a step."""
        way, total = WAYS.index((self.is_resident, self.is_double)), 0.0
        kind = 4 if self.ahead and self.is_double else 2 * self.is_double + self.streams
        for tensor in range(self.last + 1):
            logical, blank = self.rows(tensor, step)
            index, share = tensor - 1, 1 / self.again if tensor == self.last else 1.0
            prices = self.tiles.prices(index, PRICED) if tensor else self.tiles.input_prices(PRICED)[kind]
            steps = logical + blank > 0 if self.streams else True
            total += share * (prices[0] * logical + prices[1] * blank + prices[2] * steps)
            if tensor:
                total += share * sum(map(float.__mul__, map(float, prices[4:]), self.together(index, logical)))
                if not self.is_resident:
                    total += share * self.staged(tensor, step) * self.tiles.filter_prices(index, PRICED)[way]
        of_step, once = self.tiles.output_prices(PRICED)[self.is_double]
        logical, blank = self.rows(self.last, step)
        total += of_step * (logical + blank > 0 if self.streams else True) / self.again
        total += self.in_rings(step) if self.streams and self.last > 1 else 0.0
        return total + once * (logical + blank) / self.counts.chain.stored[-1] / self.batch / self.again

    def in_rings(self, step: int) -> float:
        """What a step takes beside since rings hold its intermediates."""
        of_step, of_row, of_output = (PRICED(Parts(**{part: 1})) for part in ("ring_step", "ring_made", "ring_handed"))
        total = 0.0
        for index in range(self.last - 1):
            logical, blank = self.rows(index + 1, step)
            if not self.counts.chain.convs[index].together:
                has_pixels = self.tiles.planned.convs[index].form.has_pixels
                strides = prod(conv.stride[0] for conv in self.tiles.planned.chain.conv[index + 1 :])
                several = self.plan.stripe_rows * strides > 1
                total += self.tiles.channel_tiles(index) * (
                    of_step * several * (logical + blank > 0) + of_row * has_pixels * logical
                )
        written = self.is_double and sum(self.rows(self.last, step)) > 0
        return total + of_output * written * self.tiles.channel_tiles(self.last - 1) / self.again

    def together(self, index: int, left: int) -> list[float]:
        """How often a step makes rows of a depthwise conv in each way."""
        conv, found = self.counts.chain.convs[index], [0.0] * (len(TILE_ROWS) + 2)
        if conv.together and self.counts._goes_down(index)[0]:
            return [*found[: len(TILE_ROWS)], float(left), float(left > 0)]
        for rows in conv.together:
            found[TILE_ROWS.index(rows)], left = float(left // rows), left % rows
        return found

    def staged(self, tensor: int, step: int) -> float:
        """How much of the filter of a tensor's conv a step stages; a share, while stripes roll in a tile."""
        if tensor == self.last and self.stages_ahead:
            return sum(self.rows(tensor, step)) / (self.batch * int(self.band.rows[tensor].sum()))
        return float(self.stages(tensor, step))

    def stages(self, tensor: int, step: int) -> bool:
        """Whether a step stages the filter of the conv that makes a tensor."""
        return self.plan.halo == "recompute" or sum(self.rows(tensor, step)) > 0

    def follow(self) -> None:
        """Say for every copy which step hides it: none hides what the first one needs, or what the last one leaves."""
        of_row = self.axes.one.input_bytes(self.batch) / self.batch
        of_output = self.tiles.output_bytes / self.batch / self.counts.chain.stored[-1]
        for place, step in enumerate(self.order):
            hiding = place if self.streams else place - 1
            if not self.streams or self.ahead:
                self.hide(hiding, of_row * self.rows(0, step)[0])
            trips = 1 if self.again > 1 else self.tiles.channel_tiles(self.last - 1)
            stored = of_output * sum(self.rows(self.last, step)) / self.tiles.channel_tiles(self.last - 1)
            for trip in range(trips):
                self.hide(place if trip + 1 < trips else place + 1, stored)
        for index in self.axes.convs:
            self.follow_filter(index)

    def follow_filter(self, index: int) -> None:
        """A tile of a filter is read while the tile before it is used; the first one before all steps."""
        tiles = self.tiles.channel_tiles(index)
        if index + 1 == self.last and self.stages_ahead and not self.is_resident:
            for place in range(len(self.order) - int(self.band.counts[0])):
                size = self.tiles.filter_bytes(index) / self.again
                self.hide(place, size * self.staged(self.last, self.order[place]))
            return
        used = [place for place, step in enumerate(self.order) if self.stages(index + 1, step)]
        trips = 1 if index + 1 == self.last and self.again > 1 else tiles
        uses = [place for place in used for _ in range(trips)]
        for hiding in [] if self.is_resident else [-1, *uses[:-1]][: len(uses)]:
            self.hide(hiding, self.tiles.filter_bytes(index) / tiles)

    def hide(self, place: int, size: float) -> None:
        """Let a step hide a copy, if there is such a step."""
        if self.is_double and 0 <= place < len(self.order):
            self.hidden[place] += size
            self.bytes += size

    def time(self, bytes_per_packet: float) -> float:
        """The packets of all steps, each as long as what it hides."""
        every = {step: self.packets(step) for step in set(self.order)}
        return sum(
            max(every[step], self.hidden[place] * self.axes.threads / bytes_per_packet)
            for place, step in enumerate(self.order)
        )


def followed(chain: Chain, plan: Plan, bytes_per_packet: float) -> float:
    """The time of a plan, by following its steps."""
    axes = rows_of_plan(chain, plan)
    (counts,) = axes.counts.values()
    threads = [Followed(axes, counts, band) for band in counts.bands]
    for thread in threads:
        thread.follow()
    moved = sum(int(size.item()) for size in rows_traffic(axes).values()) + sum(vectors_bytes(chain).values())
    once = PRICED(on_set_up(axes.one)) / axes.threads
    for index in axes.convs:
        once += axes.tiles[0].prices(index, PRICED)[3]
        if plan.filters == "resident":
            way = WAYS.index((True, plan.buffering == "double"))
            once += axes.tiles[0].filter_prices(index, PRICED)[way] / axes.threads
    exposed = moved - sum(thread.bytes for thread in threads)
    assert exposed >= -1e-6 * moved
    return max(thread.time(bytes_per_packet) for thread in threads) + once + exposed / bytes_per_packet


def check(chain: Chain, plan: Plan, place: Storage, random: Random, most: int) -> None:
    """Hold some plans of a chain, all at once and each alone, against steps that are followed one by one."""
    space = Space.of(chain, plan, (place,))
    space = replace(space, strips=(None, *kinds_of_strips(chain, plan.kernel)[:6]))
    grid, speed = evaluate(chain, space, rates("v68")), random.choice([0.1, 1.0, 8.0, 100.0])
    times = grid.time_packets(speed)
    for number in random.sample(range(space.size), min(space.size, most)):
        found = space.plan(number)
        expected = followed(chain, found, speed)
        assert np.isclose(times[number], expected, rtol=1e-9), found.slug
        alone = figures_of(chain, found, rates("v68")).time_packets(speed)
        assert np.isclose(alone, expected, rtol=1e-9), found.slug


@LOWERED
@given(chains(dtypes=("uint8", "int8", "int16")), st.sampled_from(STORAGES), st.integers(1, 3), st.randoms())
def test_the_time_of_a_plan_is_that_of_its_steps(chain: Chain, place: Storage, threads: int, random: Random) -> None:
    plan = Plan(kernel="hvx", threads=threads)
    assume(kernel_of(chain, plan) == "hvx" and is_supported(chain))
    check(chain, plan, place, random, 12)


SAME = Conv2d(
    out_channels=96,
    kernel=(3, 3),
    padding=Padding(top=1, left=1, bottom=1, right=1),
    requantize=Requantize(multiplier=1 << 30, shift=-9),
)
NONE = Padding(top=0, left=0, bottom=0, right=0)
TALL = Chain(
    input=(2, 50, 40, 32),
    dtype="uint8",
    output_layout="NHWC",
    conv=(SAME, replace(SAME, groups=96), replace(SAME, stride=(2, 1))),
)


def test_the_time_of_tall_stripes_of_unequal_heights_is_that_of_their_steps() -> None:
    for threads in (1, 3):
        check(TALL, Plan(kernel="hvx", threads=threads), "vtcm", Random(threads), 120)


def test_strips_of_an_intermediate_whose_stored_channels_follow_k_split_move_what_each_plan_says() -> None:
    """99 channels are stored as 112 or as 128; an unpadded side of the filter leaves columns of it to fill."""
    first = replace(SAME, out_channels=2, kernel=(6, 5), stride=(1, 3), dilation=(1, 3), padding=NONE)
    wide = replace(
        SAME, out_channels=99, kernel=(4, 7), dilation=(1, 2), padding=replace(NONE, top=1, left=6, bottom=2, right=6)
    )
    last = replace(
        SAME, out_channels=60, kernel=(5, 1), dilation=(1, 3), padding=replace(NONE, top=5, bottom=4, right=1)
    )
    chain = Chain(input=(3, 9, 14, 32), dtype="uint8", output_layout="NHWC", conv=(first, wide, last))
    for threads in (1, 3):
        check(chain, Plan(kernel="hvx", threads=threads), "output", Random(threads), 200)


def test_one_stripe_of_one_tile_hides_no_copy() -> None:
    plan = Plan(kernel="hvx", order="h_outer", buffering="double", k_split=3, rows=48)
    one = figures_of(replace(TALL, input=(1, 48, 40, 32), conv=(SAME,)), plan, rates("v68"))
    for speed in (0.5, 8.0):
        assert np.isclose(one.time_packets(speed), one.latency_packets + one.traffic_bytes / speed)
