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
only, once for all of them. Where stripes roll, the tiles of that conv alone stand outside whose steps are the stripes.

The stripes are the steps of the last conv that takes more than one. Convs behind it make all that they make in one
step, as without rings. Tensors before it have rings, whose slabs are made once, `h_split` at a time: a conv whose
reader has stride s takes s steps for each step of its reader (`hexconv.analyze.row_stripes`).

Adds. A tensor that a later conv adds is made in the steps of that conv, or of one around it (`Chain.homes`). Convs in
between make in one step all that such a step reads, with rings or without.

A step of a conv makes up to `h_split` slabs (block rows) of its output. The last conv's steps start at slabs 0,
h_split, 2 * h_split, ...; all others follow from what reads their output. A step that starts at slab `a` of a conv's
output reads the stripe of the source that starts at slab `a * stride` (`hexconv.spec.extents`), and this stripe is made
in steps of its own: at its slabs 0, h_split, ... Slabs past the end of the tensor are left out. The input is read in
one step for each stripe.

One pass per tensor expands each step of a conv into the steps that make its stripe; equal steps are counted together
where the list grows. Each step counts once, for one image: images and channel tiles repeat all steps of a tensor alike.
So it is without rings; with them every slab is made once (`hexconv.analyze.row_stripes`).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.row_stripes import Added, RowsOfConv, Share, ahead_of, most_in_flight, shares_of
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import ROW_BLOCK, reads_input_rows, slab_convs

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
        """How many logical rows of the tensor a step makes or copies, of all phases that are stored."""
        start, stop = self.start * ROW_BLOCK, self.end * ROW_BLOCK
        low_and_high = [(np.maximum(start, first), np.minimum(stop, end)) for first, end in tensor.rows_copied]
        return sum((np.maximum(0, high - low) for low, high in low_and_high), 0 * start)

    def slabs_of(self, tensor: Extents) -> Integers:
        """How many slabs a step makes that have logical rows of the tensor."""
        first, end = tensor.slabs_with_rows
        return np.maximum(0, np.minimum(self.end, end) - np.maximum(self.start, first))


def steps_backwards(
    chain: Chain, h_split: int, slabs: Sequence[int], whole: Collection[int] = ()
) -> Iterator[BlockSteps]:
    """The steps that make every conv's output and the input cache, from the last conv to the input.

    Args:
        chain: the chain.
        h_split: the slabs of a step.
        slabs: the slabs that are held of every tensor.
        whole: the tensors of which a step makes all that is held.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=32, kernel=(3, 3))
    >>> _, steps, _ = steps_backwards(Chain(input=(1, 36, 36, 32), conv=(conv, conv)), h_split=2, slabs=(3, 3, 2))
    >>> steps.start.tolist(), steps.end.tolist()
    ([0, 2, 2, 4], [2, 3, 4, 5])
    """
    blocks = [tensor.row_blocks for tensor in tensor_extents(chain)]
    most = max(tensor.rows for tensor in tensor_extents(chain)) * ROW_BLOCK * blocks[-1]
    for held in slabs[1:-1]:
        most *= ceil_divide(held, h_split)
    start = np.arange(0, blocks[-1], h_split)
    yield (steps := BlockSteps(start, np.minimum(start + h_split, blocks[-1]), np.ones(len(start), integer_type(most))))
    for index in reversed(range(len(chain.conv))):
        steps, size = _merged(steps), h_split if index and index not in whole else slabs[index]
        first, parts = steps.start[:, None] * slab_convs(chain)[index].stride[0], np.arange(0, slabs[index], size)
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
    """What the steps of every tensor make, [T, H]: its logical rows, its slabs, and how many steps stage a filter.

    `slabs_with_rows` are the slabs that have logical rows.
    """

    rows: Integers
    slabs: Integers
    stagings: Integers
    slabs_with_rows: Integers


@dataclass(frozen=True)
class BlockStripes:
    """The stripes and steps of a chain whose nest is kept in blocks, for H heights; channels and images don't matter.

    The input is tensor 0, conv i writes tensor i + 1. Arrays are [T, H] for T tensors, [convs, H], or [H].

    Attributes:
        chain: the chain that is computed.
        h_splits: the slabs of a step, [H].
        rolls: whether stripes make new slabs alone (`halo = "roll"`).
        is_double: whether copies overlap compute (`buffering = "double"`).
    """

    chain: Chain
    h_splits: tuple[int, ...]
    rolls: bool = False
    is_double: bool = False

    @cached_property
    def size(self) -> Integers:
        """The slabs of a step."""
        convs = self.chain.conv
        most = max(self.h_splits) * prod(conv.stride[0] for conv in convs) * max(conv.reach[0] for conv in convs)
        return np.array(self.h_splits, integer_type(most * len(convs)))

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def stored(self) -> list[int]:
        """The stored slabs of every tensor."""
        return [tensor.row_blocks for tensor in self.extents]

    @cached_property
    def _convs(self) -> list[RowsOfConv]:
        """The convs, which count slabs."""
        return [*map(RowsOfConv.of, slab_convs(self.chain))]

    @cached_property
    def _added(self) -> Added:
        """What Adds read."""
        return Added.of(self.chain, ROW_BLOCK)

    @cached_property
    def _sizes(self) -> Integers:
        """The slabs that each conv makes in a step, where no tensor has an end: all for which Adds need it whole."""
        whole = [[number in self._added.whole] for number in range(1, len(self._convs) + 1)]
        return np.where(whole, np.maximum(self._whole[1:], 1), self.size)

    @cached_property
    def _whole(self) -> Integers:
        """The slabs of every tensor that a step reads, where it makes all that it reads."""
        shares = shares_of(self._convs, self.stored, self.size, self.size, self._added)
        return np.array([share.stripe for share in shares])

    @cached_property
    def _whole_steps(self) -> Integers:
        """The steps of `h_split` slabs that each conv takes: over the output, or over the stripe that is read next."""
        made = np.copy(self._whole[1:])
        made[-1] = self.stored[-1]
        return ceil_divide(made, self._sizes)

    @cached_property
    def rings(self) -> Integers:
        """How many tensors have rings: those before the conv whose steps are the stripes, none if there is none."""
        numbers = np.arange(1, len(self._convs) + 1)[:, None] * (self._whole_steps > 1)
        return numbers.max(axis=0) * self.rolls

    @cached_property
    def shares(self) -> dict[int, list[Share]]:
        """For each number of rings that there is, the shares of the tensors that have one.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
        >>> stripes = BlockStripes(Chain(input=(1, 64, 64, 8), conv=(conv, conv)), (2,), rolls=True)
        >>> [(share.made.item(), share.lead.item(), share.ring.item()) for share in stripes.shares[2]]
        [(2, 2, 3), (2, 1, 3)]
        """
        return {
            rings: shares_of(self._convs[:rings], self.stored[: rings + 1], self.size, self.size, self._added)[:rings]
            for rings in {*self.rings.tolist()} - {0}
        }

    def _in_rings(self, whole: Integers, of: Callable[[list[Share]], Any]) -> Integers:
        """Return a figure of heights without rings, and what `of` says of the shares where there are some."""
        for rings, shares in self.shares.items():
            whole = np.where(self.rings == rings, of(shares), whole)
        return whole

    def _of_tensors(self, whole: Integers, of: Callable[[int, Share], Any]) -> Integers:
        """Return a figure of every tensor: what `of` says of its number and its share, if it has a ring."""
        return self._in_rings(
            whole, lambda shares: np.array([*(of(*each) for each in enumerate(shares)), *whole[len(shares) :]])
        )

    @cached_property
    def slabs(self) -> Integers:
        """The slabs of 8 rows that are held of every tensor, without those that are read ahead.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> stripes = BlockStripes(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), (2,))
        >>> stripes.slabs[:, 0].tolist(), stripes.row_steps[:, 0].tolist()
        ([3, 3, 2], [2, 4])
        """
        return self._of_tensors(self._whole, lambda _, share: share.ring)

    @cached_property
    def step_slabs(self) -> Integers:
        """The slabs that each conv makes in a step."""
        made = np.minimum(self._whole, np.array([self.size, *self._sizes]))
        return self._of_tensors(made, lambda _, share: share.made)[1:]

    @cached_property
    def ahead(self) -> Integers:
        """The slabs of the input that its ring holds ahead."""
        if not self.is_double or not reads_input_rows(self.chain):
            return 0 * self.size
        return self._in_rings(
            0 * self.size, lambda shares: ahead_of(self._convs[: len(shares)], shares[0], self.stored[0])
        )

    @cached_property
    def run_in(self) -> Integers:
        """The stripes before the first one that do more than read the input."""
        return self._in_rings(
            0 * self.size, lambda shares: reduce(np.maximum, (share.warm_up() for share in shares[1:]), 0 * self.size)
        )

    @cached_property
    def reads_first(self) -> Integers:
        """How many steps come first that only read the input."""
        return self._in_rings(
            0 * self.size,
            lambda shares: np.maximum(shares[0].warm_up(self.ahead) - self.run_in, 0) * shares[0].steps,
        )

    @cached_property
    def row_steps(self) -> Integers:
        """The trips of the loop over the steps of each conv, without the warm-up stripes."""

        def in_rings(shares: list[Share]) -> Integers:
            steps = np.copy(self._whole_steps)
            for index, (share, reader) in enumerate(pairwise([*shares[1:], Share(0, 0, 0, 0, 0)])):
                steps[index] = share.steps // reader.steps
            return steps

        return self._in_rings(self._whole_steps, in_rings)

    @cached_property
    def made(self) -> "Made":
        """What the steps of every tensor make of one image, in one pass over all of them."""
        return self._made_in_rings if self.rolls else self._made_anew

    @property
    def _made_anew(self) -> "Made":
        """What is made where each stripe makes all that it reads."""
        found: list[list[list[int]]] = []
        for h_split, slabs in zip(self.h_splits, np.transpose(self.slabs).tolist(), strict=True):
            steps = steps_backwards(self.chain, h_split, slabs, self._added.whole)
            walk = zip(reversed(self.extents), steps, strict=True)
            sums = [
                [
                    int((steps.times * each).sum())
                    for each in (steps.rows_of(tensor), steps.slabs, 1, steps.slabs_of(tensor))
                ]
                for tensor, steps in walk
            ]
            found.append(sums[::-1])
        return Made(*np.transpose(np.array(found)))

    @property
    def _made_in_rings(self) -> "Made":
        """What is made where every slab is made once: by the steps of its ring, or by those of its conv."""
        valid, size = [tensor.rows_copied for tensor in self.extents], 0 * self.size
        rows = np.array([sum(end - first for first, end in images) + size for images in valid])
        slabs = np.array([stored + size for stored in self.stored])
        stagings, ranges = np.array([1 + size, *self._whole_steps]), [tensor.slabs_with_rows for tensor in self.extents]
        with_rows = np.array([end - first + size for first, end in ranges])
        return Made(
            self._of_tensors(
                rows, lambda tensor, share: sum(share.rows_within(*each, unit=ROW_BLOCK) for each in valid[tensor])
            ),
            self._of_tensors(slabs, lambda tensor, share: share.rows_within(0, self.stored[tensor])),
            self._of_tensors(stagings, lambda tensor, share: share.making_steps(self.stored[tensor])),
            self._of_tensors(with_rows, lambda tensor, share: share.rows_within(*ranges[tensor])),
        )

    def reads_in_flight(self, height: int) -> int:
        """How many copies of the input are under way at once, where it has a ring and copies overlap compute."""
        reads, ahead = int(self.reads_first[height]), int(self.ahead[height])
        if not ahead:  # a ring has a group for each step that only reads, and one for the next step
            return 1 + reads
        rings = int(self.rings[height])
        apart, lead, made, steps = (
            int(np.broadcast_to(value, self.size.shape)[height])
            for share in self.shares[rings][:1]
            for value in (share.apart, share.lead, share.made, share.steps)
        )
        before, trips = int(self.run_in[height]) * steps, int(self.row_steps[rings - 1, height]) * steps
        start = np.arange(-before - reads, trips) * apart + lead + ahead
        ends, last = start + made, self.stored[0]
        slabs = np.maximum(np.minimum(ends, last) - np.maximum(start, 0), 0)
        return most_in_flight(slabs, ends, last, reads, ahead)
