"""The steps of every conv, from the shapes and the plan alone: where each one starts and which slabs it makes.

A step of a conv makes up to `h_split` slabs (block rows) of its output. The last conv's steps start at slabs 0,
h_split, 2 * h_split, ...; all others follow from what reads their output. A step that starts at slab `a` of a conv's
output reads the stripe of the source that starts at slab `a * stride` (`hexconv.spec.extents`), and this stripe is made
in steps of its own: at its slabs 0, h_split, ... Slabs past the end of the tensor are left out. The input is read in
one step for each stripe.

One pass per tensor expands each step of a conv into the steps that make its stripe; equal steps are counted together
where the list grows. Each step counts once, for one image: images and channel tiles repeat all steps of a tensor alike.
So it is without rings; with them every slab is made once (`hexconv.analyze.shares`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import ROW_BLOCK

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
