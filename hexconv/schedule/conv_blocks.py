"""The blocks of every conv of a chain: found by name, their filters staged, their reads declared."""

from dataclasses import dataclass

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV

from hexconv.compute.chain import has_epilogue, output_name
from hexconv.compute.stored import filter_layout
from hexconv.schedule import steps
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK

FILTER_LOOPS = ("ko", "co", "rh", "rw", "cio", "ki", "cii")
FEW_INPUTS_LOOPS = ("ko", "ci", "rh", "rw", "ki")
BLOCK_AXES, LANE_AXIS, CHANNEL_AXIS = (-3, -2, -1), (-1,), 3


@dataclass(frozen=True)
class ConvBlocks:
    """The blocks of one conv.

    Attributes:
        number: 1 for the first conv.
        sums: the block with the reduction.
        epilogue: the block that turns sums into the output, where there is one.
        filter_cache: the cache read of its filter.
        filter_loops: names of the loops over its packed filter.
        rc_block: input channels that are summed at a time.
        groups: of the conv.
    """

    number: int
    sums: SBlockRV
    epilogue: SBlockRV | None
    filter_cache: SBlockRV
    filter_loops: tuple[str, ...]
    rc_block: int
    groups: int

    @property
    def result(self) -> SBlockRV:
        """The block that writes the conv's output."""
        return self.epilogue or self.sums


def all_conv_blocks(sch: Schedule, chain: Chain, plan: Plan) -> list[ConvBlocks]:
    """The blocks of all convs, in order."""
    order = range(len(chain.conv))
    # TVM stages before everything that is there: filters that stay at the top then stand in the order of the chain.
    staging = reversed(order) if plan.filters == "resident" else order
    blocks = [_conv_blocks(sch, chain, index, plan.scope) for index in staging]
    return sorted(blocks, key=lambda conv: conv.number)


def _conv_blocks(sch: Schedule, chain: Chain, index: int, scope: str) -> ConvBlocks:
    """Find a conv's blocks by name, stage its filter, put what it writes into `scope`."""
    name = output_name(chain, index)
    epilogue = sch.get_sblock(name) if has_epilogue(chain, index) else None
    sums = sch.get_sblock(f"accumulator{index + 1}") if epilogue else sch.get_sblock(name)
    if epilogue:
        sch.set_scope(sums, 0, scope)
    if name != "output":
        sch.set_scope(epilogue or sums, 0, scope)
    conv = chain.conv[index]
    axes = len(filter_layout(conv, chain.shapes[index][3]).physical_shape)
    loops = FILTER_LOOPS if axes == len(FILTER_LOOPS) else FEW_INPUTS_LOOPS
    # Dense convs of few channels keep the documents' loop of 32, guarded.
    rc_block = CHANNEL_BLOCK if conv.groups == 1 else min(CHANNEL_BLOCK, chain.filter_shapes[index][1])
    return ConvBlocks(index + 1, sums, epilogue, sch.cache_read(sums, 1, scope), loops, rc_block, conv.groups)


def declare_reads(sch: Schedule, conv: ConvBlocks) -> None:
    """A conv reads whole blocks of its source and of its filter; its epilogue, of its sums.

    A tile of a conv in groups needs the channels of its own groups alone, but these differ from tile to tile in number:
    its source is made with all channels, as that of any other conv is.
    """
    steps.read_whole_blocks(sch, conv.sums, 0, BLOCK_AXES if conv.groups == 1 else (CHANNEL_AXIS, *BLOCK_AXES))
    steps.read_whole_blocks(sch, conv.sums, 1, BLOCK_AXES if conv.filter_loops == FILTER_LOOPS else LANE_AXIS)
    if conv.epilogue:
        steps.read_whole_blocks(sch, conv.epilogue, 0)
