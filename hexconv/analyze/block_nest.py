"""Closed form of a nest in blocks of 8 rows: stripes, steps and slabs of each tensor, recomputed or rolled.

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

The stripes are the steps of the last conv that takes more than one. Convs behind it make all that they make in one
step, as without rings. Tensors before it have rings, whose slabs are made once, `h_split` at a time: a conv whose
reader has stride s takes s steps for each step of its reader (`hexconv.analyze.row_stripes`).

A step of a conv makes up to `h_split` slabs (block rows) of its output. The last conv's steps start at slabs 0,
h_split, 2 * h_split, ...; all others follow from what reads their output. A step that starts at slab `a` of a conv's
output reads the stripe of the source that starts at slab `a * stride` (`hexconv.spec.extents`), and this stripe is made
in steps of its own: at its slabs 0, h_split, ... Slabs past the end of the tensor are left out. The input is read in
one step for each stripe.

One pass per tensor expands each step of a conv into the steps that make its stripe; equal steps are counted together
where the list grows. Each step counts once, for one image: images and channel tiles repeat all steps of a tensor alike.
So it is without rings; with them every slab is made once (`hexconv.analyze.row_stripes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.row_stripes import RowsOfConv, Share, ahead_of, most_in_flight, shares_of
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import ROW_BLOCK, in_slabs, reads_input_rows, slabs_read

MERGED_FROM = 1 << 14
"""From this many steps on, merging equal steps costs less than keeping them apart."""


@dataclass(frozen=True)
class BlockSteps:
    """The steps that make a tensor, for one image, as arrays of one element a step.

    Attributes:
        start: the slab at which the step starts.
        end: one past its last slab; at or before `start` where the tensor has ended.
        times: how often the step is run.
    """

    start: Integers
    end: Integers
    times: Integers

    @property
    def slabs(self) -> Integers:
        """How many slabs a step makes."""
        return np.maximum(0, self.end - self.start)

    def rows_of(self, tensor: Extents) -> Integers:
        """How many logical rows of the tensor a step makes."""
        first_row, end_row = tensor.valid_rows
        low, high = np.maximum(self.start * ROW_BLOCK, first_row), np.minimum(self.end * ROW_BLOCK, end_row)
        return np.maximum(0, high - low)


def steps_backwards(chain: Chain, h_split: int, slabs: Sequence[int]) -> Iterator[BlockSteps]:
    """The steps that make every conv's output and the input cache, from the last conv to the input.

    Args:
        chain: the chain.
        h_split: the slabs of a step.
        slabs: the slabs that are held of every tensor.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=32, kernel=(3, 3))
    >>> _, steps, _ = steps_backwards(Chain(input=(1, 36, 36, 32), conv=(conv, conv)), h_split=2, slabs=(3, 3, 2))
    >>> steps.start.tolist(), steps.end.tolist()
    ([0, 2, 2, 4], [2, 3, 4, 5])
    """
    blocks = [tensor.row_blocks for tensor in tensor_extents(chain)]
    most = max(blocks) * ROW_BLOCK * blocks[-1]
    for held in slabs[1:-1]:
        most *= ceil_divide(held, h_split)
    start = np.arange(0, blocks[-1], h_split)
    yield (steps := BlockSteps(start, np.minimum(start + h_split, blocks[-1]), np.ones(len(start), integer_type(most))))
    for index in reversed(range(len(chain.conv))):
        steps, size = _merged(steps), h_split if index else slabs[0]
        first, parts = steps.start[:, None] * chain.conv[index].stride[0], np.arange(0, slabs[index], size)
        start, stripe_end = first + parts, np.minimum(first + slabs[index], blocks[index])
        end, times = np.minimum(start + size, stripe_end), np.repeat(steps.times, len(parts))
        yield (steps := BlockSteps(start.ravel(), end.ravel(), times))


def _merged(steps: BlockSteps) -> BlockSteps:
    """Merge equal steps into one."""
    if len(steps.start) < MERGED_FROM:
        return steps
    key = steps.start * (steps.end.max() + 1) + np.maximum(steps.end, 0)
    _, chosen, where = np.unique(key, return_index=True, return_inverse=True)
    times = np.zeros(len(chosen), steps.times.dtype)
    np.add.at(times, where, steps.times)
    return BlockSteps(steps.start[chosen], steps.end[chosen], times)


@dataclass(frozen=True)
class Made:
    """What the steps of a tensor make: its logical rows, its slabs, and how many steps stage a filter."""

    rows: int
    slabs: int
    stagings: int


@dataclass(frozen=True)
class BlockStripes:
    """The stripes and steps of a chain whose nest is kept in blocks, for one height; channels and images don't matter.

    The input is tensor 0, conv i writes tensor i + 1.

    Attributes:
        chain: the chain that is computed.
        h_split: the slabs of a step.
        is_double: whether copies overlap compute.
    """

    chain: Chain
    h_split: int
    is_double: bool = False

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def slabs(self) -> tuple[int, ...]:
        """The slabs of 8 rows that are held of every tensor, without those that are read ahead.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> stripes = BlockStripes(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), h_split=2)
        >>> stripes.slabs, stripes.row_steps
        ((3, 3, 2), (2, 4))
        """

        def read(index: int, slabs: int) -> int:
            read = slabs_read(self.chain.conv[index], min(self.h_split, slabs))
            return min(read, self.extents[index].row_blocks)

        return self.chain.backwards(min(self.h_split, self.extents[-1].row_blocks), read)

    @cached_property
    def step_slabs(self) -> tuple[int, ...]:
        """The slabs that each conv makes in a step."""
        return tuple(min(self.h_split, slabs) for slabs in self.slabs[1:])

    @cached_property
    def row_steps(self) -> tuple[int, ...]:
        """The steps of `h_split` slabs that each conv takes: over the output, or over the stripe that is read next."""
        made = (*self.slabs[1:-1], self.extents[-1].row_blocks)
        return tuple(ceil_divide(slabs, self.h_split) for slabs in made)

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

    @cached_property
    def made(self) -> tuple[Made, ...]:
        """What the steps of every tensor make of one image, in one pass over all of them."""
        found = []
        walk = steps_backwards(self.chain, self.h_split, self.slabs)
        for tensor, steps in zip(reversed(self.extents), walk, strict=True):
            sums = ((steps.times * each).sum() for each in (steps.rows_of(tensor), steps.slabs, 1))
            found.append(Made(*map(int, sums)))
        return tuple(reversed(found))


def block_stripes(chain: Chain, h_split: int, rolls: bool, is_double: bool) -> BlockStripes:
    """Return the stripes of a chain; each figure is computed once."""
    return (RolledStripes if rolls else BlockStripes)(chain, h_split, is_double)


@dataclass(frozen=True)
class RolledStripes(BlockStripes):
    """The stripes of a chain whose nest is kept in blocks, where they make new slabs alone."""

    @cached_property
    def _whole(self) -> BlockStripes:
        """The same without rings."""
        return BlockStripes(self.chain, self.h_split)

    @cached_property
    def rings(self) -> int:
        """How many tensors have rings: those before the conv whose steps are the stripes, none if there is none."""
        return max((number for number, steps in enumerate(self._whole.row_steps, 1) if steps > 1), default=0)

    @cached_property
    def _convs(self) -> list[RowsOfConv]:
        """The convs up to that one, which count slabs."""
        return [RowsOfConv.of(in_slabs(conv)) for conv in self.chain.conv[: self.rings]]

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The share of each tensor that has a ring.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
        >>> stripes = RolledStripes(Chain(input=(1, 64, 64, 8), conv=(conv, conv)), h_split=2)
        >>> [(share.made, share.lead, share.ring) for share in stripes.shares]
        [(2, 2, 3), (2, 1, 3)]
        """
        slabs, size = [tensor.row_blocks for tensor in self.extents[: self.rings + 1]], self.h_split
        shares = shares_of(self._convs, slabs, size, step=size)[: self.rings]
        return tuple(Share(*map(int, vars(share).values())) for share in shares)

    @cached_property
    def ahead(self) -> int:
        """The slabs of the input that its ring holds ahead."""
        is_ahead = self.rings and self.is_double and reads_input_rows(self.chain)
        return int(ahead_of(self._convs, self.shares[0], self.extents[0].row_blocks)) if is_ahead else 0

    @property
    def run_in(self) -> int:
        """The stripes before the first one that do more than read the input."""
        return max((share.warm_up() for share in self.shares[1:]), default=0)

    @property
    def reads_first(self) -> int:
        """How many steps come first that only read the input."""
        stripes = (share.warm_up(self.ahead) - self.run_in for share in self.shares[:1])
        return sum(max(count, 0) * self.shares[0].steps for count in stripes)

    @cached_property
    def slabs(self) -> tuple[int, ...]:
        """The slabs that are held of every tensor, without those that are read ahead."""
        return (*(share.ring for share in self.shares), *self._whole.slabs[self.rings :])

    @cached_property
    def step_slabs(self) -> tuple[int, ...]:
        """The slabs that each conv makes in a step."""
        return (*(share.made for share in self.shares[1:]), *self._whole.step_slabs[max(self.rings - 1, 0) :])

    @cached_property
    def row_steps(self) -> tuple[int, ...]:
        """The trips of the loop over the steps of each conv; some of the stripes run in."""
        if not self.rings:
            return self._whole.row_steps
        stripes, *others = self._whole.row_steps[self.rings - 1 :]
        parts = pairwise([*(share.steps for share in self.shares[1:]), 1])
        return (*(steps // of_reader for steps, of_reader in parts), stripes + self.run_in, *others)

    @cached_property
    def made(self) -> tuple[Made, ...]:
        """What the steps of every tensor make of one image, in one pass over all of them."""
        return (*map(self._made_in_ring, range(self.rings)), *self._whole_made[self.rings :])

    @property
    def _whole_made(self) -> tuple[Made, ...]:
        """What is made of every tensor that is made once without a ring."""
        times = (1, *self._whole.row_steps)
        rows = (end - first for first, end in (tensor.valid_rows for tensor in self.extents))
        return tuple(map(Made, rows, (tensor.row_blocks for tensor in self.extents), times))

    def _made_in_ring(self, tensor: int) -> Made:
        share, stored = self.shares[tensor], self.extents[tensor]
        rows = share.rows_within(*stored.valid_rows, unit=ROW_BLOCK)
        return Made(rows, share.rows_within(0, stored.row_blocks), share.making_steps(stored.row_blocks))

    @property
    def reads_in_flight(self) -> int:
        """How many copies of the input are under way at once, where it has a ring and copies overlap compute."""
        if not self.ahead:  # a ring has a group for each step that only reads, and one for the next step
            return 1 + self.reads_first
        share, before = self.shares[0], self.run_in * self.shares[0].steps
        trips = self.row_steps[self.rings - 1] * share.steps
        start = np.arange(-before - self.reads_first, trips - before) * share.apart + share.lead + self.ahead
        ends, last = start + share.made, self.extents[0].row_blocks
        slabs = np.maximum(np.minimum(ends, last) - np.maximum(start, 0), 0)
        return most_in_flight(slabs, ends, last, self.reads_first, self.ahead)
