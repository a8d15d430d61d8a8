"""Blocks of the convs of a chain, found by name, and their places in the nest.

The loop over bands and the other guards of a band are added once TVM has found the sizes of caches, which are those of
the whole chain (`hexconv.lower.threads`). There the calls become variables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.compute.te import has_epilogue, output_name
from hexconv.kernel import NestLayouts
from hexconv.layout import Layout
from hexconv.schedule import primitives
from hexconv.schedule.primitives import Tiles
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import OUTPUT, accumulator, filter_cache
from hexconv.tir.loops import REDUCTION, Loops, is_unit, loop_roles

FILTER_LOOPS = ("ko", "co", "rh", "rw", "cio", "ki", "cii")
FEW_INPUTS_LOOPS = ("ko", "ci", "rh", "rw", "ki")
BLOCK_AXES, LANE_AXIS = (-3, -2, -1), (-1,)


@dataclass(frozen=True)
class ConvBlocks:
    """The blocks of one conv.

    Attributes:
        number: 1 for the first conv.
        sums: the block with the reduction.
        epilogue: the block that turns sums into the output, where there is one.
        filter_cache: the cache read of its filter; None for a pool.
        filter_loops: names of the loops over its packed filter.
        rc_block: input channels that are summed at a time.
        layout: the layout of its result.
        source_axes: the axes of its source that it reads from end to end.
        filter_axes: the axes of its filter that it reads from end to end.
    """

    number: int
    sums: SBlockRV
    epilogue: SBlockRV | None
    filter_cache: SBlockRV | None
    filter_loops: tuple[str, ...]
    rc_block: int
    layout: Layout
    source_axes: tuple[int, ...]
    filter_axes: tuple[int, ...]

    @property
    def result(self) -> SBlockRV:
        """The block that writes the conv's output."""
        return self.epilogue or self.sums

    @property
    def sums_axes(self) -> tuple[str, ...]:
        """The names of the loops over the axes of its sums."""
        return (*loop_roles(self.layout), *REDUCTION)

    @property
    def result_axes(self) -> tuple[str, ...]:
        """The names of the loops over the axes of its result."""
        return loop_roles(self.layout) if self.epilogue else self.sums_axes


def all_conv_blocks(sch: Schedule, chain: Chain, plan: Plan, layouts: NestLayouts) -> list[ConvBlocks]:
    """Find the blocks of all convs, in order."""
    order = range(len(chain.conv))
    # TVM stages before everything that is there: filters that stay at the top then stand in the order of the chain.
    staging = reversed(order) if plan.filters == "resident" else order
    blocks = [_conv_blocks(sch, chain, index, plan, layouts) for index in staging]
    return sorted(blocks, key=lambda conv: conv.number)


def _conv_blocks(sch: Schedule, chain: Chain, index: int, plan: Plan, layouts: NestLayouts) -> ConvBlocks:
    """Find a conv's blocks by name, stage its filter, put what it writes where the plan says."""
    name, role = output_name(chain, index, layouts), "output" if index == len(chain.conv) - 1 else "intermediates"
    epilogue = sch.get_sblock(name) if has_epilogue(chain, index, layouts) else None
    sums = sch.get_sblock(accumulator(index + 1)) if epilogue else sch.get_sblock(name)
    if epilogue:
        sch.set_scope(sums, 0, plan.scope("intermediates"))
    if name != OUTPUT:
        sch.set_scope(epilogue or sums, 0, plan.scope(role))
    return ConvBlocks(
        number=index + 1,
        sums=sums,
        epilogue=epilogue,
        filter_cache=None if chain.conv[index].pool else _staged_filter(sch, sums, index, layouts, plan),
        filter_loops=_filter_loops(layouts.filters[index]),
        # Dense convs of few channels keep the documents' loop of 32, guarded.
        rc_block=CHANNEL_BLOCK
        if not chain.conv[index].is_grouped
        else min(CHANNEL_BLOCK, max(_inputs(layouts.filters[index]), 1)),
        layout=layouts.activations[index + 1],
        source_axes=_source_axes(chain, index, layouts),
        filter_axes=_filter_axes(layouts, index),
    )


def _staged_filter(sch: Schedule, sums: SBlockRV, index: int, layouts: NestLayouts, plan: Plan) -> SBlockRV:
    """Stage a filter in its cache, as it lies, or widened."""
    scope = filter_scope(layouts, index, plan)
    if not layouts.packings[index].memory:
        return sch.cache_read(sums, 1, scope)
    block = sch.get_sblock(filter_cache(index + 1))
    sch.set_scope(block, 0, scope)
    return block


def filter_scope(layouts: NestLayouts, index: int, plan: Plan) -> str:
    """Return the scope of the cache of a conv's filter: outside of VTCM where scalar loads read it."""
    return "global" if layouts.packings[index].is_words else plan.scope("filters")


def _inputs(filter: Layout) -> int:
    """The input channels of the packed filter of groups."""
    return next(axis.size for axis in filter.axes if axis.name == "I")


def _filter_loops(filter: Layout) -> tuple[str, ...]:
    """The loops over a packed filter; one in the order of a kernel is copied as it lies."""
    loops = {7: FILTER_LOOPS, 5: FEW_INPUTS_LOOPS}
    axes = len(filter.outputs)
    return loops.get(axes) or ("ko", *(f"axis{axis}" for axis in range(1, axes)))


def _source_axes(chain: Chain, index: int, layouts: NestLayouts) -> tuple[int, ...]:
    """The axes of its source that a conv reads from end to end.

    A tile of a conv in groups needs the channels of its own groups alone, but these differ from tile to tile in number:
    its source is made with all channels, as that of any other conv is. Rows are made whole.
    """
    source = layouts.activations[index]
    if layouts.has_rows:
        return tuple(range(2, len(source.outputs)))
    channels = [output.name for output in source.outputs].index("C")
    return (channels, *BLOCK_AXES) if chain.conv[index].is_grouped else BLOCK_AXES


def _filter_axes(layouts: NestLayouts, index: int) -> tuple[int, ...]:
    """The axes of its filter that a conv reads from end to end."""
    if layouts.has_rows:
        return tuple(range(1, len(layouts.filters[index].outputs)))
    return BLOCK_AXES if len(layouts.filters[index].outputs) == len(FILTER_LOOPS) else LANE_AXIS


def declare_reads(sch: Schedule, conv: ConvBlocks) -> None:
    """A conv reads whole blocks, or rows, of its source and of its filter; its epilogue, of its sums.

    Of a tensor that is added it reads whole rows: where their blocks begin doesn't matter.
    """
    primitives.read_whole_blocks(sch, conv.sums, 0, conv.source_axes)
    if conv.filter_cache:
        primitives.read_whole_blocks(sch, conv.sums, 1, conv.filter_axes)
    if conv.epilogue:
        sums = primitives.written(sch, conv.sums)
        for place, read in enumerate(sch.get(conv.epilogue).reads):
            if read.source.same_as(sums):
                primitives.read_whole_blocks(sch, conv.epilogue, place, inner_axes(conv.layout))
            elif len(read.region) > 1:  # all else are vectors
                primitives.read_whole_blocks(sch, conv.epilogue, place, range(2, len(read.region)))


def inner_axes(layout: Layout) -> tuple[int, ...]:
    """The axes of a packed activation inside of those over blocks, counted from its end."""
    return tuple(range(4 - len(layout.outputs), 0))


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


FIRST_STRIPE = "first_stripe"


def first_row(tensor: int) -> str:
    """Return the name of a number of the band: the first row of a tensor that the band makes."""
    return f"first_row{tensor}"


def end_row(tensor: int) -> str:
    """Return the name of a number of the band: one past the last row of a tensor that the band makes."""
    return f"end_row{tensor}"


def of_band(name: str) -> tirx.Expr:
    """Return the call that stands for a number of the band."""
    return tirx.call_pure_extern("int32", f"hexconv_{name}")
