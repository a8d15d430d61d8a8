"""The blocks of a chain where they belong in the nest."""

from dataclasses import dataclass

from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.schedule.conv_blocks import ConvBlocks
from hexconv.schedule.steps import Tiles


@dataclass(frozen=True)
class Placed:
    """A conv where it belongs.

    Attributes:
        blocks: of the conv.
        tiles: its outer loops.
        slabs: that these go over: a stripe, or the whole output.
        ho_inner: over those of a step.
        rc_outer: the loop at which its sums are set to zero.
    """

    blocks: ConvBlocks
    tiles: Tiles
    slabs: int
    ho_inner: LoopRV
    rc_outer: LoopRV


@dataclass(frozen=True)
class Nest:
    """All that is placed.

    Attributes:
        output: the block that copies to the output.
        convs: from the last to the first.
        input: the block that reads the input.
    """

    output: SBlockRV
    convs: tuple[Placed, ...]
    input: SBlockRV
