"""Describe the blocks of a chain at their places in the nest."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.schedule.conv_blocks import ConvBlocks
from hexconv.schedule.loops import Loops, is_unit
from hexconv.schedule.steps import Tiles


@dataclass(frozen=True)
class Placed:
    """A conv at its place in the nest.

    Attributes:
        blocks: the blocks of the conv.
        tiles: the outer loops of the conv.
        ho_inner: the loop over the rows, or blocks of rows, of one step.
        sums: the loops of its sums; they are set to zero at `rc_outer`.
        init: the block that sets its sums to zero, where it is one of its own.
    """

    blocks: ConvBlocks
    tiles: Tiles
    ho_inner: LoopRV
    sums: Loops
    init: SBlockRV | None = None

    @property
    def summing(self) -> list[SBlockRV]:
        """The blocks that make its sums, in program order."""
        return [self.init, self.blocks.sums] if self.init else [self.blocks.sums]


@dataclass(frozen=True)
class Nest:
    """All blocks of a chain at their places.

    Attributes:
        output: the block that copies to the output.
        convs: the convs, from the last to the first.
        input: the block that reads the input.
        input_loops: the loops over the axes of the input's cache.
    """

    output: SBlockRV
    convs: tuple[Placed, ...]
    input: SBlockRV
    input_loops: Loops


def streaming(sch: Schedule, convs: Sequence[Placed]) -> list[Placed]:
    """Return the convs from the one whose steps are the stripes on: the first of those given that has several steps.

    Args:
        sch: the schedule.
        convs: convs, from the last one of a chain on.
    """
    return [*dropwhile(lambda conv: is_unit(sch, conv.tiles.ho_outer), convs)]
