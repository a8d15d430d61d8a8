"""A chain under a plan whose nest is kept in blocks of 8 rows: the value that its closed forms take.

Stripes. A conv that computes `step` block rows writes 8 * step rows, 0 .. 8 * step - 1 of its step, and reads

    rows 0 .. (8 * step - 1) * stride + (kernel - 1) * dilation         relative to where the step starts

and a step that starts at a block row of the output starts at a block row of the input (`hexconv.spec.extents`), so the
stripe that it reads holds

    slabs = ((8 * step - 1) * stride + (kernel - 1) * dilation) // 8 + 1

slabs of 8 rows, or the whole tensor if that is less. For 1x1 with stride 1 that is `step`. A 3x3 kernel reads 2 rows
more than it writes, its halo, and these open one more slab: step 2 reads rows 0 .. 17, slabs 0, 1 and 2. This is why
the document's 3x3 caches have h_split + 1 = 3 slabs. Stride 2 reads twice the rows: 31 + 2 rows, 5 slabs.

Steps of earlier convs. The slabs of an intermediate are again computed h_split at a time (fewer if it has fewer), and
the stripe behind them follows by the same formula with step = min(h_split, slabs).

How often a step is run again: with the output channels outermost (`order = "k_outer"`) the source of a conv is made
again for each of the conv's channel tiles; with the stripes outermost (`"h_outer"`), or where the conv has one row step
only, once for all of them.
"""

from dataclasses import dataclass
from functools import cached_property

from hexconv.analyze.exact import ceil_divide
from hexconv.analyze.steps import steps_backwards
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import slabs_read
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


@dataclass(frozen=True)
class Made:
    """What the steps of a tensor make: its logical rows, its slabs, and how many steps stage a filter."""

    rows: int
    slabs: int
    stagings: int


@dataclass(frozen=True)
class PlannedBlocks:
    """A chain under a plan whose nest is kept in blocks; everything else is derived from it.

    The input is tensor 0, conv i writes tensor i + 1.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
    """

    chain: Chain
    plan: Plan

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def slabs(self) -> tuple[int, ...]:
        """The slabs of 8 rows that are held of every tensor, without those that are read ahead.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> planned = PlannedBlocks(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan(h_split=2))
        >>> planned.slabs, planned.row_steps
        ((3, 3, 2), (2, 4))
        """

        def read(index: int, slabs: int) -> int:
            read = slabs_read(self.chain.conv[index], min(self.plan.h_split, slabs))
            return min(read, self.extents[index].row_blocks)

        return self.chain.backwards(min(self.plan.h_split, self.extents[-1].row_blocks), read)

    @cached_property
    def step_slabs(self) -> tuple[int, ...]:
        """The slabs that each conv makes in a step."""
        return tuple(min(self.plan.h_split, slabs) for slabs in self.slabs[1:])

    @cached_property
    def row_steps(self) -> tuple[int, ...]:
        """The steps of `h_split` slabs that each conv takes: over the output, or over the stripe that is read next."""
        made = (*self.slabs[1:-1], self.extents[-1].row_blocks)
        return tuple(ceil_divide(slabs, self.plan.h_split) for slabs in made)

    @cached_property
    def rings(self) -> int:
        """How many tensors have rings, the input first."""
        return 0

    @cached_property
    def ahead(self) -> int:
        """The slabs of the input that its ring holds ahead."""
        return 0

    @property
    def reads_first(self) -> int:
        """How many steps come first that only read the input."""
        return 0

    @property
    def reads_in_flight(self) -> int:
        """How many copies of the input are under way at once, with double buffering."""
        return 2 if INPUT_CACHE in self.doubled else 1

    @cached_property
    def channel_tiles(self) -> tuple[int, ...]:
        """The tiles of output channels of each conv."""
        return tuple(ceil_divide(tensor.channel_blocks, self.plan.k_split) for tensor in self.extents[1:])

    @cached_property
    def staged_blocks(self) -> tuple[int, ...]:
        """The blocks of output channels in a tile of each conv."""
        return tuple(min(self.plan.k_split, tensor.channel_blocks) for tensor in self.extents[1:])

    def makes_source_again(self, index: int) -> bool:
        """Whether what conv `index` reads is made again for each of its channel tiles."""
        return self.plan.order == "k_outer" and self.row_steps[index] > 1

    @cached_property
    def copy_times(self) -> dict[str, int]:
        """How often each cache is copied to or from: the iterations of all loops around the copy."""
        times, runs, last = {}, self.extents[-1].batch, len(self.chain.conv) - 1
        for index in reversed(range(last + 1)):
            tiles = runs * self.row_steps[index] * self.channel_tiles[index]
            if index == last:
                times[OUTPUT_CACHE] = tiles
            times[filter_cache(index + 1)] = 1 if self.plan.filters == "resident" else tiles
            runs = tiles if self.makes_source_again(index) else runs * self.row_steps[index]
        return {**times, INPUT_CACHE: runs}

    @cached_property
    def doubled(self) -> frozenset[str]:
        """The names of the caches with two slots: one is computed on while the other is copied to or from.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=64)
        >>> sorted(PlannedBlocks(Chain(input=(1, 8, 8, 4), conv=(conv, conv)), Plan(buffering="double")).doubled)
        ['filter1_cache', 'filter2_cache', 'output_cache']
        """
        rolls = {INPUT_CACHE} if self.rings else set()
        names = {name for name, times in self.copy_times.items() if times > 1} - rolls
        return frozenset(names if self.plan.buffering == "double" else ())

    @cached_property
    def passes(self) -> tuple[int, ...]:
        """How often all steps of each tensor are run, over images and channel tiles."""

        def read(index: int, times: int) -> int:
            return times * (self.channel_tiles[index] if self.makes_source_again(index) else 1)

        return self.chain.backwards(self.extents[-1].batch, read)

    @cached_property
    def made_once(self) -> tuple[Made, ...]:
        """What the steps of every tensor make in one pass over all of them."""
        found = []
        walk = steps_backwards(self.chain, self.plan.h_split, self.slabs)
        for tensor, steps in zip(reversed(self.extents), walk, strict=True):
            sums = ((steps.times * each).sum() for each in (steps.rows_of(tensor), steps.slabs, 1))
            found.append(Made(*map(int, sums)))
        return tuple(reversed(found))

    @cached_property
    def made(self) -> tuple[Made, ...]:
        """What the steps of every tensor make, repetitions included."""
        each = zip(self.made_once, self.passes, strict=True)
        return tuple(Made(once.rows * times, once.slabs * times, once.stagings * times) for once, times in each)

    def logical_pixels(self, tensor: int) -> int:
        """Count the logical pixels of a tensor that its steps make."""
        first, end = self.extents[tensor].valid_columns
        return self.made[tensor].rows * (end - first)

    def filter_stagings(self, index: int) -> int:
        """Count how often all of the filter of conv `index` is staged."""
        return 1 if self.plan.filters == "resident" else self.made[index + 1].stagings
