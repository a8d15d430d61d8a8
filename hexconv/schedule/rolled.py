"""Roll a placed chain: collect what `hexconv.schedule.roll` and `hexconv.schedule.stream` ask of its blocks."""

from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from hexconv.kernel.bands import row_bands
from hexconv.schedule import steps
from hexconv.schedule.bands import end_row, first_row, of_band
from hexconv.schedule.loops import extent
from hexconv.schedule.placed import Nest, Placed
from hexconv.schedule.roll import Stage, halo_slabs, roll
from hexconv.schedule.shares import Output, Stream
from hexconv.schedule.stream import stream
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import reads_input_rows


def rolled(sch: Schedule, chain: Chain, plan: Plan, nest: Nest) -> tvm.IRModule:
    """Return the module of a chain in blocks of 8 rows, in which every block is made once."""
    stages = [_stage(sch, chain, plan, conv) for conv in nest.convs]
    return roll(sch.mod, [*stages, _input_stage(sch, nest, stages, plan)])


def streamed(sch: Schedule, chain: Chain, plan: Plan, nest: Nest) -> tvm.IRModule:
    """Return the module of a chain in rows, in which every row is made once; a chain of one stripe stays as it is."""
    last, *others = nest.convs
    if extent(sch, last.tiles.ho_outer) == 1:
        return sch.mod
    bands = row_bands(chain, plan)
    has_bands = bands.count > 1
    output = Output(
        blocks=_names(sch, [last.blocks.result, last.blocks.sums, nest.output]),
        filter_block=_filter_block(sch, last, plan),
        conv=chain.conv[-1],
        ho_outer=sch.get(last.tiles.ho_outer).loop_var,
        stripe_rows=bands.stripe_rows,
        band=_band(last.blocks.number) if has_bands else None,
    )
    tensors = [_stream(sch, chain, plan, conv, has_bands) for conv in others]
    tensors.append(_input_stream(sch, nest))
    return stream(sch.mod, output, tensors, plan.buffering == "double" and reads_input_rows(chain))


def _stream(sch: Schedule, chain: Chain, plan: Plan, conv: Placed, has_bands: bool) -> Stream:
    """Describe the blocks and loops that make an intermediate."""
    blocks, ho = conv.blocks, sch.get(conv.ho_inner)
    return Stream(
        blocks=_names(sch, [blocks.result, blocks.sums]),
        filter_block=_filter_block(sch, conv, plan),
        conv=chain.conv[blocks.number - 1],
        buffer=steps.written(sch, blocks.result).name,
        ho=ho.loop_var,
        loop_name="ho_inner",
        all_rows=steps.all_slabs(sch, blocks.result),
        band=_band(blocks.number) if has_bands else None,
    )


def _band(tensor: int) -> tuple[tirx.Expr, tirx.Expr]:
    """Return the rows of a tensor that a thread makes: the first, and one past the last."""
    return of_band(first_row(tensor)), of_band(end_row(tensor))


def _input_stream(sch: Schedule, nest: Nest) -> Stream:
    """Describe the block and the loops that read the input."""
    ho, buffer = sch.get(nest.input_loops["ho"]), steps.written(sch, nest.input).name
    return Stream(_names(sch, [nest.input]), None, None, buffer, ho.loop_var, "ho", steps.all_slabs(sch, nest.input))


def _names(sch: Schedule, blocks: Sequence[steps.SBlockRV]) -> tuple[str, ...]:
    return tuple(sch.get(block).name_hint for block in blocks)


def _filter_block(sch: Schedule, conv: Placed, plan: Plan) -> str | None:
    """Name the block that stages a conv's filter in each tile; None if no block does."""
    return sch.get(conv.blocks.filter_cache).name_hint if plan.filters == "per_tile" else None


def _stage(sch: Schedule, chain: Chain, plan: Plan, conv: Placed) -> Stage:
    """Describe a placed conv for rings of slabs."""
    blocks = conv.blocks
    return Stage(
        # The block of an accumulator isn't named here: it runs where its epilogue does.
        blocks=_names(sch, [blocks.epilogue] if blocks.epilogue else conv.summing),
        filter_block=_filter_block(sch, conv, plan),
        conv=chain.conv[blocks.number - 1],
        ho_outer=sch.get(conv.tiles.ho_outer).loop_var,
        buffer=steps.written(sch, blocks.result).name,
        stripe_slabs=conv.slabs,
        step_slabs=min(plan.h_split, conv.slabs),
        all_slabs=steps.all_slabs(sch, blocks.result),
    )


def _input_stage(sch: Schedule, nest: Nest, convs: Sequence[Stage], plan: Plan) -> Stage:
    """Describe the read of the input's cache for rings of slabs."""
    ho, name = sch.get(nest.input_loops["ho"]), steps.written(sch, nest.input).name
    slabs, last = int(ho.extent), steps.all_slabs(sch, nest.input)
    ahead = min(_ahead_slabs(convs), last - slabs) if plan.buffering == "double" else 0
    return Stage((sch.get(nest.input).name_hint,), None, None, None, name, slabs, slabs, last, ho.loop_var, ahead)


def _ahead_slabs(convs: Sequence[Stage]) -> int:
    """Count the slabs of the input that one step of the first conv adds to those before it.

    It is none where a stride steps over slabs: the next slabs to read are then not those that follow.
    """
    kernels = [stage.conv for stage in convs if stage.conv]
    if any(halo_slabs(kernel) < 0 for kernel in kernels):
        return 0
    return convs[-1].step_slabs * kernels[-1].stride[0]
