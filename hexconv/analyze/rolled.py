"""The slabs of a nest of blocks whose stripes stream (`halo = "roll"`): what rings hold, and what steps make.

The stripes are the steps of the last conv that takes more than one step. Convs behind it make all that they make in one
step, as they do without rings. Tensors before it have rings, whose slabs are made once (`hexconv.analyze.shares`),
`h_split` slabs at a time: a conv whose reader has stride s takes s steps for each step of its reader.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hexconv.analyze.row_step import Steps
from hexconv.analyze.shares import Share, ahead_of, shares_of
from hexconv.analyze.slabs import Splits
from hexconv.spec import Chain, Conv2d
from hexconv.spec.extents import ROW_BLOCK, in_slabs, reads_input_rows


@dataclass(frozen=True)
class Made:
    """What the steps of a tensor make: its logical rows, its slabs, and how many steps stage a filter."""

    rows: int
    slabs: int
    stagings: int


@dataclass(frozen=True)
class Rolled:
    """A chain in stripes of some slabs that stream.

    Attributes:
        chain: the chain.
        h_split: the slabs of a step.
    """

    chain: Chain
    h_split: int

    @cached_property
    def _whole(self) -> Splits:
        """What is held without rings."""
        return Splits(self.chain, self.h_split, 1)

    @cached_property
    def streamed(self) -> int:
        """How many tensors have rings: those before the conv whose steps are the stripes, none if there is none."""
        return max((number for number, steps in enumerate(self._whole.row_steps, 1) if steps > 1), default=0)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The share of each tensor that has a ring.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
        >>> chain = Chain(input=(1, 64, 64, 8), conv=(conv, conv))
        >>> [(share.made, share.lead, share.ring) for share in Rolled(chain, h_split=2).shares]
        [(2, 2, 3), (2, 1, 3)]
        """
        rows = [tensor.row_blocks for tensor in self._whole.extents]
        return shares_of(self._kernels, rows, self.h_split, self.h_split)

    @cached_property
    def _kernels(self) -> list[Conv2d]:
        """The convs up to that one, which count slabs."""
        return [in_slabs(conv) for conv in self.chain.conv[: self.streamed]]

    @cached_property
    def ahead(self) -> int:
        """The slabs of the input that a ring holds ahead where it is read ahead."""
        is_read = self.streamed and reads_input_rows(self.chain)
        return ahead_of(self._kernels, self.shares[0], self._whole.extents[0].row_blocks) if is_read else 0

    @cached_property
    def run_in(self) -> int:
        """The stripes before the first one that do more than read the input."""
        return max((share.warm_up() for share in self.shares[1:]), default=0)

    def reads_first(self, ahead: int) -> int:
        """How many steps come first that only read the input, if it is read so many slabs ahead."""
        if not self.streamed:
            return 0
        first = self.shares[0]
        return max(first.warm_up(ahead) - self.run_in, 0) * first.steps

    @cached_property
    def slabs(self) -> tuple[int, ...]:
        """The slabs that are held of every tensor, without those that are read ahead."""
        return (*(share.ring for share in self.shares), *self._whole.slabs[self.streamed :])

    @cached_property
    def step_slabs(self) -> tuple[int, ...]:
        """The slabs that each conv makes in a step."""
        return (*(share.made for share in self.shares[1:]), *self._whole.step_slabs[max(self.streamed - 1, 0) :])

    @cached_property
    def row_steps(self) -> tuple[int, ...]:
        """The trips of the loop over the steps of each conv; stripes that run in are some."""
        if not self.streamed:
            return self._whole.row_steps
        steps = [*(share.steps for share in self.shares[1:]), 1]
        parts = [of_source // of_reader for of_source, of_reader in pairwise(steps)]
        whole = self._whole.row_steps[self.streamed - 1 :]
        return (*parts, whole[0] + self.run_in, *whole[1:])

    @cached_property
    def made(self) -> tuple[Made, ...]:
        """What the steps of every tensor make, for one image."""
        return tuple(self._made(tensor) for tensor in range(len(self._whole.extents)))

    def _made(self, tensor: int) -> Made:
        stored = self._whole.extents[tensor]
        if tensor < self.streamed:
            share = self.shares[tensor]
            rows = share.rows_within(*stored.valid_rows, unit=ROW_BLOCK)
            return Made(rows, share.rows_within(0, stored.row_blocks), share.making_steps(stored.row_blocks))
        first, end = stored.valid_rows
        return Made(end - first, stored.row_blocks, self._whole.row_steps[tensor - 1] if tensor else 1)

    def reads(self, ahead: int) -> Steps:
        """Return the steps that read the input, so many slabs ahead, those included that run in."""
        share, stripes = self.shares[0], self.row_steps[self.streamed - 1]
        first = -self.run_in * share.steps
        numbers = np.arange(first - self.reads_first(ahead), first + stripes * share.steps)
        start = numbers * share.apart + share.lead + ahead
        return Steps(start, start + share.made, (0, self._whole.extents[0].row_blocks), times=1)
