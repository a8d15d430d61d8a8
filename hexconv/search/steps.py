"""The rows that the steps of each conv make, for all values of `h_split` at once (`hexconv.analyze.steps`, on vectors).

Steps are kept in one long list for all settings (with or without rolling, times every h_split). One pass per tensor
expands each step of a conv into the steps that make its stripe; equal steps are counted together where the list grows.
Channel tiles repeat all steps of a tensor alike, so that here each step counts once, for one image.
"""

from dataclasses import dataclass

import numpy as np

from hexconv.analyze.slabs import halo_slabs
from hexconv.search.exact import Integers, ceil_divide, integer_type
from hexconv.search.stripes import Stripes
from hexconv.spec import Chain, Conv2d, Extents
from hexconv.spec.extents import ROW_BLOCK

MERGED_FROM = 1 << 14
"""From this many steps on, merging equal steps costs less than keeping them apart."""


@dataclass(frozen=True)
class Made:
    """Counts of one tensor by setting, [recompute, roll] x [H]: logical rows made, and steps that stage a filter."""

    rows: Integers
    stagings: Integers


@dataclass(frozen=True)
class _Steps:
    """A list of steps: setting (roll * H + index of h_split), first slab, slabs there before, end, times run."""

    setting: Integers
    start: Integers
    there: Integers
    end: Integers
    times: Integers

    @property
    def first(self) -> Integers:
        """The first slab that a step makes."""
        return np.maximum(self.start, self.there)


def tensors_made(chain: Chain, stripes: Stripes) -> tuple[Made, ...]:
    """Return the work on every tensor: the input, then the output of each conv."""
    steps = _last_steps(stripes)
    made = [_made(stripes.extents[-1], steps, len(stripes.h_splits))]
    for index in reversed(range(len(chain.conv))):
        steps = _source_steps(chain.conv[index], index, stripes, _merged(steps))
        made.append(_made(stripes.extents[index], steps, len(stripes.h_splits)))
    return tuple(reversed(made))


def _last_steps(stripes: Stripes) -> _Steps:
    """Return the steps of the last conv, stripe after stripe."""
    blocks, count = stripes.extents[-1].row_blocks, len(stripes.h_splits)
    h = np.tile(stripes.h_splits, 2)
    setting, step = _repeated(np.tile(stripes.row_steps[-1], 2))
    start = step * h[setting]
    there = np.where(setting >= count, start, 0)
    largest = max(int(np.prod([int(steps.max()) for steps in stripes.row_steps], dtype=object)), 1)
    times = np.ones(len(start), integer_type(largest * ROW_BLOCK * max(t.row_blocks for t in stripes.extents)))
    return _Steps(setting, start, there, np.minimum(start + h[setting], blocks), times)


def _source_steps(conv: Conv2d, index: int, stripes: Stripes, steps: _Steps) -> _Steps:
    """Return the steps that make the source of conv `index`; the input is read in one step."""
    slabs, h = np.tile(stripes.slabs[index], 2), np.tile(stripes.h_splits, 2)
    size = h if index else slabs
    origin, part = _repeated(ceil_divide(slabs, size)[steps.setting])
    setting = steps.setting[origin]
    first = steps.start[origin] * conv.stride[0]
    start = first + part * size[setting]
    rolls = setting >= len(stripes.h_splits)
    read = np.where(rolls, _made_before(conv, steps.end[origin]), first + slabs[setting])
    end = np.minimum(np.minimum(start + size[setting], read), stripes.extents[index].row_blocks)
    there = np.maximum(_made_before(conv, steps.there[origin]), np.where(part > 0, start, 0))
    return _Steps(setting, start, np.where(rolls, there, 0), end, steps.times[origin])


def _made_before(conv: Conv2d, there: Integers) -> Integers:
    """Return how many slabs of a conv's source are made when its own first `there` slabs are."""
    return np.where(there > 0, there * conv.stride[0] + halo_slabs(conv), 0)


def _made(tensor: Extents, steps: _Steps, count: int) -> Made:
    """Count the rows and the stagings of one tensor by setting."""
    first_row, end_row = tensor.valid_rows
    low, high = np.maximum(steps.first * ROW_BLOCK, first_row), np.minimum(steps.end * ROW_BLOCK, end_row)
    stages = (steps.first < steps.end) | (steps.setting < count)
    rows = _summed(steps, np.maximum(0, high - low), count)
    return Made(rows, _summed(steps, stages.astype(np.int64), count))


def _summed(steps: _Steps, values: Integers, count: int) -> Integers:
    """Sum times x value by setting: [2, H]."""
    total = np.zeros(2 * count, steps.times.dtype)
    np.add.at(total, steps.setting, steps.times * values)
    return total.reshape(2, count)


def _repeated(times: Integers) -> tuple[Integers, Integers]:
    """Repeat index `i` as often as `times[i]` says; return also the number of each repetition, from 0.

    >>> [part.tolist() for part in _repeated(np.array([2, 1, 3]))]
    [[0, 0, 1, 2, 2, 2], [0, 1, 0, 0, 1, 2]]
    """
    index = np.repeat(np.arange(len(times)), times)
    return index, np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)


def _merged(steps: _Steps) -> _Steps:
    """Merge equal steps into one."""
    if len(steps.start) < MERGED_FROM:
        return steps
    key = steps.setting
    for part in (steps.start, steps.there, steps.end):
        key = key * (part.max() + 1) + np.maximum(part, 0)
    _, chosen, where = np.unique(key, return_index=True, return_inverse=True)
    times = np.zeros(len(chosen), steps.times.dtype)
    np.add.at(times, where, steps.times)
    return _Steps(steps.setting[chosen], steps.start[chosen], steps.there[chosen], steps.end[chosen], times)
