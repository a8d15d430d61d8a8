"""The documented strategy: stripes of the output, every earlier conv computed inside the step that needs it.

Pattern: input -> conv2d #1 -> ... -> conv2d #n -> output, as `hexconv.compute.chain_module` writes it.

    for n, ko_outer, ho_outer:                      k_split x h_split blocks of the output
        for n, ko_outer, ho_outer:                  conv2d #1: all channels, the rows that conv2d #2 needs
            input cache read                        (before ko_outer, where conv2d #1 has one row step)
            filter #1 cache read
            conv2d #1 -> intermediate
        filter #2 cache read
        conv2d #2 -> output cache
        write back output cache

1. Stage filters and output: a cache read per filter, a cache write of the output; all caches in the plan's scope.
2. Declare that convs read whole blocks, so that everything computed for them is whole blocks (`read_whole_blocks`).
3. Tile the write-back: this is the outermost nest.
4. From the last conv to the first: fuse it into the nest of the one after it, give it outer loops of its own, and read
   its filter there. The cache read that comes last is placed first, since each new stage lands just before the
consumer. 5. Set sums to zero apart from summing them (decompose_reduction), at rc_outer as the document has it.

Why not split the consumer's rows so that they always divide: the document's caches hold the rows of a whole step, and a
step that divides would be another schedule. The rest of a split is a guard (T.where) on the loop.

Source: seed document 003, "Schedule" of each section.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import tvm
from tvm import tirx
from tvm.s_tir import Schedule, ScheduleError
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.kernel import Forms, forms_of
from hexconv.kernel.bands import row_bands
from hexconv.kernel.depthwise import without_groups
from hexconv.schedule import copies, steps
from hexconv.schedule.bands import FIRST_STRIPE, end_row, first_row, of_band
from hexconv.schedule.conv_blocks import ConvBlocks, all_conv_blocks, declare_reads
from hexconv.schedule.guards import guard_accumulators
from hexconv.schedule.roll import Stage, halo_slabs, roll
from hexconv.spec import Chain, Plan
from hexconv.spec.names import INPUT_CACHE, accumulator

INPUT_LOOPS = {
    7: ("n", "ho", "wo", "co", "hi", "wi", "ci"),
    5: ("n", "ho", "co", "wo", "ci"),
    4: ("n", "ho", "wo", "co"),
}
"""By the number of axes that the input cache has."""


@dataclass(frozen=True)
class Placed:
    """A conv where it belongs.

    Attributes:
        blocks: of the conv.
        tiles: its outer loops.
        slabs: that these go over: a stripe, or the whole output.
        rc_outer: the loop at which its sums are set to zero.
    """

    blocks: ConvBlocks
    tiles: steps.Tiles
    slabs: int
    rc_outer: LoopRV


def stripe(module: tvm.IRModule, chain: Chain, plan: Plan) -> Schedule:
    """Schedule a chain's module (`chain_module(chain, forms_of(chain, plan))`) by `plan`."""
    sch, forms = Schedule(module, debug_mask="none"), forms_of(chain, plan)
    chain = without_groups(chain) if forms.has_rows else chain
    input_cache = sch.get_sblock(INPUT_CACHE)
    convs = all_conv_blocks(sch, chain, plan, forms)
    sch.set_scope(input_cache, 0, plan.scope("input"))
    for conv in convs:
        declare_reads(sch, conv)

    output = sch.cache_write(convs[-1].result, 0, plan.scope("output"))
    tiles = steps.write_back(sch, output, plan, forms.activations[-1])
    steps.name_part(sch, sch.get_loops(output)[3:], copies.WRITE_BACK)

    placed: list[Placed] = []
    for conv in reversed(convs):
        at = placed[-1].tiles.source if placed else tiles.innermost
        placed.append(_place_conv(sch, conv, at, plan, forms) if placed else _place_last(sch, conv, tiles, forms))
    input_loops = INPUT_LOOPS[len(forms.activations[0].outputs)]
    steps.stage_read(sch, input_cache, placed[-1].tiles.source, input_loops, copies.INPUT_READ)
    for conv in reversed(placed):
        at = None if plan.filters == "resident" else conv.tiles.innermost
        part = copies.filter_read(conv.blocks.number)
        steps.stage_read(sch, conv.blocks.filter_cache, at, conv.blocks.filter_loops, part)
    for conv in placed:
        _zero_apart(sch, conv.blocks, conv.rc_outer, forms)
    stages = [_stage(sch, chain, plan, conv, forms) for conv in placed]
    stages.append(_input_stage(sch, input_cache, stages, plan, forms))
    module = roll(sch.mod, stages) if plan.halo == "roll" else sch.mod
    module = guard_accumulators(module, _accumulators(sch, convs))
    main = module["main"].with_attr(copies.BUFFERING, plan.buffering) if plan.buffering == "double" else module["main"]
    return Schedule(tvm.IRModule({"main": main}), debug_mask="none")


def _stage(sch: Schedule, chain: Chain, plan: Plan, conv: Placed, forms: Forms) -> Stage:
    """A placed conv, as rings need to know it."""
    blocks, result = conv.blocks, sch.get(conv.blocks.result).name_hint
    is_output = blocks.number == len(chain.conv)
    has_bands = forms.has_rows and row_bands(chain, plan).count > 1
    stem = result.removesuffix("_update")
    return Stage(
        # Sums that were taken apart are two blocks; an accumulator runs where its epilogue does, and isn't named here.
        blocks=(result,) if result == stem else (f"{stem}_init", result),
        filter_block=sch.get(blocks.filter_cache).name_hint if plan.filters == "per_tile" else None,
        conv=chain.conv[blocks.number - 1],
        ho_outer=sch.get(conv.tiles.ho_outer).loop_var,
        buffer=steps.written(sch, blocks.result).name,
        stripe_slabs=conv.slabs,
        step_slabs=min(_step_slabs(forms, blocks.number, plan, conv.slabs), conv.slabs),
        all_slabs=steps.all_slabs(sch, blocks.result),
        unit=forms.row_units[blocks.number],
        band=(of_band(first_row(blocks.number)), of_band(end_row(blocks.number))) if has_bands else None,
        first_stripe=of_band(FIRST_STRIPE) if has_bands and is_output else tirx.const(0, "int32"),
    )


def _step_slabs(forms: Forms, tensor: int, plan: Plan, slabs: int) -> int:
    """The slabs that one step makes of a tensor; a stripe of rows is made whole."""
    return slabs if forms.row_units[tensor] == 1 else plan.h_split


def _input_stage(sch: Schedule, cache: SBlockRV, convs: Sequence[Stage], plan: Plan, forms: Forms) -> Stage:
    """The input cache read, as rings need to know it.

    Args:
        sch: with all convs placed.
        cache: the block that reads the input.
        convs: from the last to the first.
        plan: that places them.
        forms: its layouts.
    """
    loops = sch.get_loops(cache)[-len(forms.activations[0].outputs) :]
    ho, name = sch.get(loops[1]), steps.written(sch, cache).name
    slabs, last = int(ho.extent), steps.all_slabs(sch, cache)
    ahead = min(_ahead_slabs(convs, forms), last - slabs) if plan.buffering == "double" else 0
    unit = forms.row_units[0]
    return Stage((sch.get(cache).name_hint,), None, None, None, name, slabs, slabs, last, ho.loop_var, ahead, unit)


def _ahead_slabs(convs: Sequence[Stage], forms: Forms) -> int:
    """The slabs of the input that one step adds to those before it: of the first conv, or of the chain if in rows.

    None where a stride steps over slabs: the next ones are then not those that follow.
    """
    kernels = [stage.conv for stage in convs if stage.conv]
    if any(halo_slabs(kernel, forms.row_units[0]) < 0 for kernel in kernels):
        return 0
    if forms.has_rows:
        return convs[0].step_slabs * convs[0].unit * prod(kernel.stride[0] for kernel in kernels)
    return convs[-1].step_slabs * kernels[-1].stride[0]


def _accumulators(sch: Schedule, convs: Sequence[ConvBlocks]) -> dict[str, str]:
    """The block of each epilogue by the name of its accumulator."""
    return {accumulator(conv.number): sch.get(conv.epilogue).name_hint for conv in convs if conv.epilogue}


def _place_last(sch: Schedule, conv: ConvBlocks, tiles: steps.Tiles, forms: Forms) -> Placed:
    """Compute the last conv in the tiles of the write-back."""
    n, ho, wo, ko, *inner = steps.fuse_producer(sch, conv.result, tiles.innermost)
    sch.reorder(n, ko, ho, wo, *inner)
    steps.name_loops(sch, [n, ko, ho, wo], ["n", "ko_inner", "ho_inner", "wo"])
    steps.name_part(sch, [n, ko, ho, wo, *inner], copies.convolution(conv.number))
    _name_step(sch, conv, ko, forms)
    return Placed(conv, tiles, steps.all_slabs(sch, conv.result), _place_sums(sch, conv, wo, inner))


def _name_step(sch: Schedule, conv: ConvBlocks, loop: LoopRV, forms: Forms) -> None:
    """Say which loop a step of a conv begins with that a kernel is going to fill."""
    if forms.has_rows:
        sch.annotate(loop, steps.STEP, conv.number)


def _place_conv(sch: Schedule, conv: ConvBlocks, at: LoopRV, plan: Plan, forms: Forms) -> Placed:
    """Compute any other conv at loop `at`, in outer loops of its own."""
    loops = steps.fuse_producer(sch, conv.result, at)
    slabs = steps.extent(sch, loops[1])
    splits = (_step_slabs(forms, conv.number, plan, slabs), plan.k_split // forms.channel_units[conv.number])
    tiles = steps.tile(sch, loops, splits, plan.order, conv.layout)
    before = f"conv2d #{conv.number} before computing conv2d #{conv.number + 1}"
    steps.note(sch, tiles.ko_outer, f"compute over all output channels of {before}")
    steps.note(sch, tiles.ho_outer, f"compute enough height of {before}")
    outer = len(sch.get_loops(conv.result)) - len(loops) - 2
    body = sch.get_loops(conv.result)[outer + 3 :]
    steps.name_part(sch, body, copies.convolution(conv.number))
    _name_step(sch, conv, body[0], forms)
    return Placed(conv, tiles, slabs, _place_sums(sch, conv, body[2], body[3:]))


def _place_sums(sch: Schedule, conv: ConvBlocks, wo: LoopRV, inner: Sequence[LoopRV]) -> LoopRV:
    """Compute the sums of an epilogue at wo, just before it; return rc_outer of the sums."""
    if conv.epilogue:
        steps.name_loops(sch, inner, steps.inner_roles(conv.layout))
        steps.name_part(sch, inner, f"conv2d #{conv.number} epilogue")
        inner = steps.fuse_producer(sch, conv.sums, wo)[4:]
    return steps.order_reduction(sch, inner, steps.inner_roles(conv.layout), conv.rc_block)


def _zero_apart(sch: Schedule, conv: ConvBlocks, rc_outer: LoopRV, forms: Forms) -> None:
    """Split a conv's block into init and compute, each with its own loops inside of wo.

    before:  for rc_outer, hi, ...: if first: sums = 0; sums += ...
    after:   for hi, wi, ki: sums = 0
             for rc_outer, hi, wi, ...: sums += ...

    Where a later conv's stride steps over whole slabs, the stripes of a tensor leave slabs out. TVM can't take such a
    block apart ("not quasi-affine"); it stays as it is before.
    """
    if forms.has_rows:
        return  # a kernel sets its sums itself, and reads whole rows
    try:
        init = sch.decompose_reduction(conv.sums, rc_outer)
    except ScheduleError:
        _read_as_is(sch, conv, [conv.sums])
        return
    own = sch.get_loops(init)[-3:]
    steps.name_loops(sch, own, ["hi", "wi", "ki"])
    steps.name_part(sch, own, f"conv2d #{conv.number} init")
    below = sch.get_loops(conv.sums)
    steps.name_part(sch, below[-7:], f"conv2d #{conv.number} compute")
    _read_as_is(sch, conv, [init, conv.sums])


def _read_as_is(sch: Schedule, conv: ConvBlocks, sums: Sequence[SBlockRV]) -> None:
    """Undo `read_whole_blocks`, which has served: from here on TVM looks at what is really read."""
    for block in (*sums, *([conv.epilogue] if conv.epilogue else [])):
        sch.unannotate(block, steps.EXPLICIT_READS)
