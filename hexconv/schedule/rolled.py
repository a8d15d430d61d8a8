"""Roll a placed chain: collect what `hexconv.schedule.stream` asks of its blocks and loops."""

from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV

from hexconv.kernel import Forms
from hexconv.kernel.bands import row_bands
from hexconv.schedule import steps
from hexconv.schedule.bands import end_row, first_row, of_band
from hexconv.schedule.loops import is_unit
from hexconv.schedule.placed import Nest, Placed, streaming
from hexconv.schedule.shares import Output, Stream
from hexconv.schedule.stream import stream
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.extents import in_slabs, reads_input_rows


def rolled(sch: Schedule, chain: Chain, plan: Plan, nest: Nest, forms: Forms) -> tvm.IRModule:
    """Return the module of a chain in which every row, or every slab of 8 rows in a nest of blocks, is made once.

    Convs at the end of the chain that take one step stay as they are; so does a chain of such convs alone.
    """
    convs = streaming(sch, nest.convs)
    if not convs:
        return sch.mod
    last, *others = convs
    bands = row_bands(chain, plan)
    has_bands = bands.count > 1
    kernels = chain.conv if forms.has_rows else [*map(in_slabs, chain.conv)]
    number = last.blocks.number
    output = Output(
        blocks=_names(sch, [*_makers(last), *([nest.output] if number == len(kernels) else [])]),
        filter_block=_filter_block(sch, last, plan),
        conv=kernels[number - 1],
        ho_outer=sch.get(last.tiles.ho_outer).loop_var,
        stripe_rows=bands.stripe_rows if forms.has_rows else plan.h_split,
        band=_band(number) if has_bands else None,
    )
    tensors = [_stream(sch, plan, conv, kernels[conv.blocks.number - 1], has_bands) for conv in others]
    tensors.append(_input_stream(sch, nest))
    return stream(sch.mod, output, tensors, plan.buffering == "double" and reads_input_rows(chain))


def _stream(sch: Schedule, plan: Plan, conv: Placed, kernel: Conv2d, has_bands: bool) -> Stream:
    """Describe the blocks and loops that make an intermediate."""
    blocks, ho, ho_outer = conv.blocks, sch.get(conv.ho_inner), conv.tiles.ho_outer
    return Stream(
        blocks=_names(sch, _makers(conv)),
        filter_block=_filter_block(sch, conv, plan),
        conv=kernel,
        buffer=steps.written(sch, blocks.result).name,
        ho=ho.loop_var,
        loop_name="ho_inner",
        all_rows=steps.all_slabs(sch, blocks.result),
        ho_outer=sch.get(ho_outer).loop_var,
        step_rows=None if is_unit(sch, ho_outer) else int(ho.extent),
        band=_band(blocks.number) if has_bands else None,
    )


def _makers(conv: Placed) -> list[SBlockRV]:
    """Return the blocks that make a conv's result, and its sums before."""
    return [*dict.fromkeys([conv.blocks.result, *conv.summing])]


def _band(tensor: int) -> tuple[tirx.Expr, tirx.Expr]:
    """Return the rows of a tensor that a thread makes: the first, and one past the last."""
    return of_band(first_row(tensor)), of_band(end_row(tensor))


def _input_stream(sch: Schedule, nest: Nest) -> Stream:
    """Describe the block and the loops that read the input."""
    ho, buffer = sch.get(nest.input_loops["ho"]), steps.written(sch, nest.input).name
    return Stream(_names(sch, [nest.input]), None, None, buffer, ho.loop_var, "ho", steps.all_slabs(sch, nest.input))


def _names(sch: Schedule, blocks: Sequence[SBlockRV]) -> tuple[str, ...]:
    return tuple(sch.get(block).name_hint for block in blocks)


def _filter_block(sch: Schedule, conv: Placed, plan: Plan) -> str | None:
    """Name the block that stages a conv's filter in each tile; None if no block does."""
    return sch.get(conv.blocks.filter_cache).name_hint if plan.filters == "per_tile" else None
