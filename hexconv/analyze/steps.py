"""The steps of every conv, from the shapes and the plan alone: where each one starts and which slabs it makes.

A step of a conv makes up to `h_split` slabs (block rows) of its output. The last conv's steps start at slabs 0,
h_split, 2 * h_split, ...; all others follow from what reads their output. A step that starts at slab `a` of a conv's
output reads the stripe of the source that starts at slab `a * stride` (`hexconv.spec.extents`), and this stripe is made
in steps of its own: at its slabs 0, h_split, ... Slabs past the end of the tensor are left out. The input is read in
one step for each stripe.

Steps are kept in one long list for all values of h_split. One pass per tensor expands each step of a conv into the
steps that make its stripe; equal steps are counted together where the list grows. Each step counts once, for one image:
images and channel tiles repeat all steps of a tensor alike.

So it is without rings; `hexconv.analyze.rolled` has the steps of stripes that roll.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.slabs import Splits
from hexconv.spec import Extents
from hexconv.spec.extents import ROW_BLOCK

MERGED_FROM = 1 << 14
"""From this many steps on, merging equal steps costs less than keeping them apart."""


@dataclass(frozen=True)
class Steps:
    """The steps that make a tensor, for one image, as arrays of one element a step.

    Attributes:
        setting: which of all values of h_split the step belongs to.
        start: the slab at which the step starts.
        end: one past its last slab; at or before `start` where the tensor has ended.
        times: how often the step is run.
    """

    setting: Integers
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


def steps_backwards(splits: Splits) -> Iterator[Steps]:
    """The steps that make every conv's output and the input cache, from the last conv to the input.

    Args:
        splits: how the tensors are divided; one setting for each value of `h_split`.

    >>> from hexconv.spec import Chain, Conv2d
    >>> conv = Conv2d(out_channels=32, kernel=(3, 3))
    >>> splits = Splits(Chain(input=(1, 36, 36, 32), conv=(conv, conv)), h_split=2, k_split=1)
    >>> _, steps, _ = steps_backwards(splits)
    >>> steps.start.tolist(), steps.end.tolist()
    ([0, 2, 2, 4], [2, 3, 4, 5])
    """
    yield (steps := _last_steps(splits))
    for index in reversed(range(len(splits.chain.conv))):
        yield (steps := _source_steps(splits, index, _merged(steps)))


def _last_steps(splits: Splits) -> Steps:
    """Return the steps of the last conv, stripe after stripe."""
    blocks, h = splits.extents[-1].row_blocks, np.atleast_1d(splits.h_split)
    setting, step = _repeated(np.atleast_1d(splits.row_steps[-1]))
    start = step * h[setting]
    largest = max(int(np.prod([int(np.max(steps)) for steps in splits.row_steps], dtype=object)), 1)
    times = np.ones(len(start), integer_type(largest * ROW_BLOCK * max(t.row_blocks for t in splits.extents)))
    return Steps(setting, start, np.minimum(start + h[setting], blocks), times)


def _source_steps(splits: Splits, index: int, steps: Steps) -> Steps:
    """Return the steps that make the source of conv `index`; the input is read in one step."""
    conv, slabs = splits.chain.conv[index], np.atleast_1d(splits.slabs[index])
    size = np.atleast_1d(splits.h_split) if index else slabs
    origin, part = _repeated(ceil_divide(slabs, size)[steps.setting])
    setting = steps.setting[origin]
    first = steps.start[origin] * conv.stride[0]
    start, read = first + part * size[setting], first + slabs[setting]
    end = np.minimum(np.minimum(start + size[setting], read), splits.extents[index].row_blocks)
    return Steps(setting, start, end, steps.times[origin])


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
    for part in (steps.start, steps.end):
        key = key * (part.max() + 1) + np.maximum(part, 0)
    _, chosen, where = np.unique(key, return_index=True, return_inverse=True)
    times = np.zeros(len(chosen), steps.times.dtype)
    np.add.at(times, where, steps.times)
    return Steps(steps.setting[chosen], steps.start[chosen], steps.end[chosen], times)
