"""The steps of every conv, from the shapes and the plan alone: where each one starts and which slabs it makes.

A step of a conv makes up to `h_split` slabs (block rows) of its output. The last conv's steps start at slabs 0,
h_split, 2 * h_split, ...; all others follow from what reads their output. A step that starts at slab `a` of a conv's
output reads the stripe of the source that starts at slab `a * stride` (`hexconv.spec.extents`), and this stripe is made
in steps of its own: at its slabs 0, h_split, ... Slabs past the end of the tensor are left out. The input is read in
one step for each stripe.

Ring buffers (`halo = "roll"`). A step makes only slabs that are not there yet. When a consumer's slabs below M are
made, the slabs of its source that are there are those below

    0 if M = 0, else M * stride + halo          halo = (reach - 1 - stride) // 8 + 1

and within a stripe also the slabs that the stripe's earlier steps made. A step of the consumer that ends below slab E,
whether it is whole or the rest of a stripe, makes the source's slabs below E * stride + halo, and leaves the others to
later steps. So every slab that is needed is made once.

Steps are kept in one long list for all settings: with or without rings, times every h_split. One pass per tensor
expands each step of a conv into the steps that make its stripe; equal steps are counted together where the list grows.
Each step counts once, for one image: images and channel tiles repeat all steps of a tensor alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.slabs import Splits
from hexconv.spec import Conv2d, Extents
from hexconv.spec.extents import ROW_BLOCK, slabs_read

MERGED_FROM = 1 << 14
"""From this many steps on, merging equal steps costs less than keeping them apart."""


@dataclass(frozen=True)
class Steps:
    """The steps that make a tensor, for one image, as arrays of one element a step.

    Attributes:
        setting: the setting, of all that are looked at together: the index of `rolls`, then that of h_split.
        start: the slab at which the step starts.
        there: slabs of the tensor that have been made before, all below this one; 0 where none are kept.
        end: one past its last slab; at or before `start` where the tensor has ended.
        times: how often the step is run.
    """

    setting: Integers
    start: Integers
    there: Integers
    end: Integers
    times: Integers

    @property
    def first(self) -> Integers:
        """The first slab that a step makes."""
        return np.maximum(self.start, self.there)

    @property
    def slabs(self) -> Integers:
        """How many slabs a step makes."""
        return np.maximum(0, self.end - self.first)

    def rows_of(self, tensor: Extents) -> Integers:
        """How many logical rows of the tensor a step makes."""
        first_row, end_row = tensor.valid_rows
        low, high = np.maximum(self.first * ROW_BLOCK, first_row), np.minimum(self.end * ROW_BLOCK, end_row)
        return np.maximum(0, high - low)


def steps_backwards(splits: Splits, rolls: Sequence[bool]) -> Iterator[Steps]:
    """The steps that make every conv's output and the input cache, from the last conv to the input.

    Args:
        splits: how the tensors are divided; one setting for each value of `h_split`.
        rolls: whether stripes roll; all settings once for each of these.

    >>> from hexconv.spec import Chain
    >>> conv = Conv2d(out_channels=32, kernel=(3, 3))
    >>> splits = Splits(Chain(input=(1, 36, 36, 32), conv=(conv, conv)), h_split=2, k_split=1)
    >>> _, steps, _ = steps_backwards(splits, [False])
    >>> steps.start.tolist(), steps.end.tolist()
    ([0, 2, 2, 4], [2, 3, 4, 5])
    """
    yield (steps := _last_steps(splits, rolls))
    for index in reversed(range(len(splits.chain.conv))):
        yield (steps := _source_steps(splits, rolls, index, _merged(steps)))


def _settings(numbers: Integers | int, rolls: Sequence[bool]) -> Integers:
    """Repeat what is known of each h_split for all settings."""
    return np.tile(np.atleast_1d(numbers), len(rolls))


def _last_steps(splits: Splits, rolls: Sequence[bool]) -> Steps:
    """Return the steps of the last conv, stripe after stripe."""
    blocks, h = splits.extents[-1].row_blocks, _settings(splits.h_split, rolls)
    setting, step = _repeated(_settings(splits.row_steps[-1], rolls))
    start = step * h[setting]
    there = np.where(np.array(rolls)[setting // np.size(splits.h_split)], start, 0)
    largest = max(int(np.prod([int(np.max(steps)) for steps in splits.row_steps], dtype=object)), 1)
    times = np.ones(len(start), integer_type(largest * ROW_BLOCK * max(t.row_blocks for t in splits.extents)))
    return Steps(setting, start, there, np.minimum(start + h[setting], blocks), times)


def _source_steps(splits: Splits, rolls: Sequence[bool], index: int, steps: Steps) -> Steps:
    """Return the steps that make the source of conv `index`; the input is read in one step."""
    conv, slabs = splits.chain.conv[index], _settings(splits.slabs[index], rolls)
    size = _settings(splits.h_split, rolls) if index else slabs
    origin, part = _repeated(ceil_divide(slabs, size)[steps.setting])
    setting = steps.setting[origin]
    first = steps.start[origin] * conv.stride[0]
    start = first + part * size[setting]
    roll = np.array(rolls)[setting // np.size(splits.h_split)]
    read = np.where(roll, made_before(conv, steps.end[origin]), first + slabs[setting])
    end = np.minimum(np.minimum(start + size[setting], read), splits.extents[index].row_blocks)
    there = np.maximum(made_before(conv, steps.there[origin]), np.where(part > 0, start, 0))
    return Steps(setting, start, np.where(roll, there, 0), end, steps.times[origin])


def made_before(conv: Conv2d, there: Integers) -> Integers:
    """Return how many slabs of a conv's source have been made once its own first `there` slabs are made.

    >>> made_before(Conv2d(out_channels=1, kernel=(3, 3)), np.array([0, 1, 2])).tolist()
    [0, 2, 3]
    """
    return np.where(there > 0, slabs_read(conv, there), 0)  # pyright: ignore[reportArgumentType]


def _repeated(times: Integers) -> tuple[Integers, Integers]:
    """Repeat index `i` as often as `times[i]` says; return also the number of each repetition, from 0.

    >>> [part.tolist() for part in _repeated(np.array([2, 1, 3]))]
    [[0, 0, 1, 2, 2, 2], [0, 1, 0, 0, 1, 2]]
    """
    index = np.repeat(np.arange(len(times)), times)
    return index, np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)


def _merged(steps: Steps) -> Steps:
    """Merge equal steps into one."""
    if len(steps.start) < MERGED_FROM:
        return steps
    key = steps.setting
    for part in (steps.start, steps.there, steps.end):
        key = key * (part.max() + 1) + np.maximum(part, 0)
    _, chosen, where = np.unique(key, return_index=True, return_inverse=True)
    times = np.zeros(len(chosen), steps.times.dtype)
    np.add.at(times, where, steps.times)
    return Steps(steps.setting[chosen], steps.start[chosen], steps.there[chosen], steps.end[chosen], times)
