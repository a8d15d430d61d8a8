"""A chain under a plan whose nest is kept in blocks, and whose stripes make new slabs alone (`halo = "roll"`).

The stripes are the steps of the last conv that takes more than one. Convs behind it make all that they make in one
step, as without rings. Tensors before it have rings, whose slabs are made once, `h_split` at a time: a conv whose
reader has stride s takes s steps for each step of its reader (`hexconv.analyze.shares`).
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hexconv.analyze.blocks import Made, PlannedBlocks
from hexconv.analyze.row_step import Steps, most_in_flight
from hexconv.analyze.shares import Share, ahead_of, shares_of
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.extents import ROW_BLOCK, in_slabs, reads_input_rows


def planned_blocks(chain: Chain, plan: Plan) -> PlannedBlocks:
    """Return what follows from a chain under a plan; each figure is computed once."""
    kind = RolledBlocks if plan.halo == "roll" else PlannedBlocks
    return kind(chain, plan)


@dataclass(frozen=True)
class RolledBlocks(PlannedBlocks):
    """A chain under a plan whose nest is kept in blocks, and whose stripes make new slabs alone."""

    @cached_property
    def _whole(self) -> PlannedBlocks:
        """The same without rings."""
        return PlannedBlocks(self.chain, self.plan)

    @cached_property
    def rings(self) -> int:
        """How many tensors have rings: those before the conv whose steps are the stripes, none if there is none."""
        return max((number for number, steps in enumerate(self._whole.row_steps, 1) if steps > 1), default=0)

    @cached_property
    def _kernels(self) -> list[Conv2d]:
        """The convs up to that one, which count slabs."""
        return [in_slabs(conv) for conv in self.chain.conv[: self.rings]]

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The share of each tensor that has a ring.

        >>> from hexconv.spec import Conv2d
        >>> conv, plan = Conv2d(out_channels=8, kernel=(3, 3)), Plan(order="h_outer", halo="roll", h_split=2)
        >>> planned = RolledBlocks(Chain(input=(1, 64, 64, 8), conv=(conv, conv)), plan)
        >>> [(share.made, share.lead, share.ring) for share in planned.shares]
        [(2, 2, 3), (2, 1, 3)]
        """
        rows = [tensor.row_blocks for tensor in self.extents]
        return shares_of(self._kernels, rows, self.plan.h_split, self.plan.h_split)

    @cached_property
    def ahead(self) -> int:
        """The slabs of the input that its ring holds ahead."""
        is_ahead = self.rings and self.plan.buffering == "double" and reads_input_rows(self.chain)
        return ahead_of(self._kernels, self.shares[0], self.extents[0].row_blocks) if is_ahead else 0

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
    def made_once(self) -> tuple[Made, ...]:
        """What the steps of every tensor make in one pass over all of them."""
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
        """How many copies of the input are under way at once, with double buffering."""
        if not self.ahead:  # a ring has a group for each step that only reads, and one for the next step
            return 1 + self.reads_first if self.rings else super().reads_in_flight
        share, before = self.shares[0], self.run_in * self.shares[0].steps
        trips = self.row_steps[self.rings - 1] * share.steps
        start = np.arange(-before - self.reads_first, trips - before) * share.apart + share.lead + self.ahead
        steps = Steps(start, start + share.made, (0, self.extents[0].row_blocks), times=1)
        return most_in_flight(steps, self.reads_first, self.ahead)
