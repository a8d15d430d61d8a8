"""A chain under a plan whose nest is kept in blocks of 8 rows: the value that its closed forms take.

How often a step is run again: with the output channels outermost (`order = "k_outer"`) the source of a conv is made
again for each of the conv's channel tiles; with the stripes outermost (`"h_outer"`), or where the conv has one row step
only, once for all of them.
"""

from dataclasses import dataclass
from functools import cached_property

from hexconv.analyze.rolled import Made, Rolled
from hexconv.analyze.slabs import Splits
from hexconv.analyze.steps import steps_backwards
from hexconv.spec import Chain, Plan
from hexconv.spec.names import INPUT_CACHE, OUTPUT_CACHE, filter_cache


@dataclass(frozen=True)
class PlannedBlocks(Splits):
    """A chain under a plan whose nest is kept in blocks; everything else is derived from it.

    Attributes:
        plan: the plan that the chain is computed by.
    """

    plan: Plan

    @classmethod
    def of(cls, chain: Chain, plan: Plan) -> "PlannedBlocks":
        """Return what follows from a chain under a plan; each figure is computed once."""
        return cls(chain, plan.h_split, plan.k_split, plan)

    @property
    def rolls(self) -> bool:
        """Whether stripes make new slabs alone, and caches are rings."""
        return self.plan.halo == "roll"

    @cached_property
    def rolled(self) -> Rolled:
        """What holds if they do."""
        return Rolled(self.chain, self.h_split)

    @property
    def rings(self) -> int:
        """How many tensors have rings, the input first."""
        return self.rolled.streamed if self.rolls else 0

    @property
    def ahead(self) -> int:
        """The slabs of the input that its ring holds ahead."""
        return self.rolled.ahead if self.rings and self.plan.buffering == "double" else 0

    @property
    def reads_first(self) -> int:
        """How many steps come first that only read the input."""
        return self.rolled.reads_first(self.ahead) if self.rolls else 0

    @cached_property
    def slabs(self) -> tuple[int, ...]:
        """The slabs that are held of every tensor, without those that are read ahead."""
        return self.rolled.slabs if self.rolls else super().slabs

    @cached_property
    def step_slabs(self) -> tuple[int, ...]:
        """The slabs that each conv makes in a step."""
        return self.rolled.step_slabs if self.rolls else super().step_slabs

    @cached_property
    def row_steps(self) -> tuple[int, ...]:
        """The trips of the loop over the steps of each conv."""
        return self.rolled.row_steps if self.rolls else super().row_steps

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
        >>> sorted(PlannedBlocks.of(Chain(input=(1, 8, 8, 4), conv=(conv, conv)), Plan(buffering="double")).doubled)
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
    def made(self) -> tuple[Made, ...]:
        """What the steps of every tensor make, repetitions included."""
        if self.rolls:
            batch = self.extents[-1].batch
            return tuple(
                Made(made.rows * batch, made.slabs * batch, made.stagings * batch) for made in self.rolled.made
            )
        found = []
        walk = zip(reversed(self.extents), reversed(self.passes), steps_backwards(self), strict=True)
        for tensor, passes, steps in walk:
            sums = ((steps.times * each).sum() for each in (steps.rows_of(tensor), steps.slabs, 1))
            found.append(Made(*(int(each) * passes for each in sums)))
        return tuple(reversed(found))

    def logical_pixels(self, tensor: int) -> int:
        """Count the logical pixels of a tensor that its steps make."""
        first, end = self.extents[tensor].valid_columns
        return self.made[tensor].rows * (end - first)

    def filter_stagings(self, index: int) -> int:
        """Count how often all of the filter of conv `index` is staged."""
        return 1 if self.plan.filters == "resident" else self.made[index + 1].stagings
