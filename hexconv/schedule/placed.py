"""The blocks of a chain where they belong in the nest."""

from dataclasses import dataclass

from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.schedule.conv_blocks import ConvBlocks
from hexconv.schedule.steps import Tiles


@dataclass(frozen=True)
class Placed:
    """A conv at its place in the nest.

    Attributes:
        blocks: the blocks of the conv.
        tiles: the outer loops of the conv.
        slabs: how many rows, or blocks of rows, the outer loops go over: those of a stripe, or of the whole output.
        ho_inner: the loop over the rows, or blocks of rows, of one step.
        rc_outer: the loop at which its sums are set to zero.
    """

    blocks: ConvBlocks
    tiles: Tiles
    slabs: int
    ho_inner: LoopRV
    rc_outer: LoopRV


@dataclass(frozen=True)
class Nest:
    """All blocks of a chain at their places.

    Attributes:
        output: the block that copies to the output.
        convs: the convs, from the last to the first.
        input: the block that reads the input.
    """

    output: SBlockRV
    convs: tuple[Placed, ...]
    input: SBlockRV
