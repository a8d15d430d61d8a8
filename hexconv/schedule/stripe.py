"""Schedule stripes of the output as documented: every earlier conv is computed inside of the step that needs it.

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
   consumer.
5. Set sums to zero apart from summing them (decompose_reduction), at rc_outer as the document has it.

The consumer's rows are not split so that they always divide: the document's caches hold the rows of a whole step, and
steps that divide would be another schedule. Where a split leaves a rest, a guard (T.where) on the loop cuts the last
step.

Source: the Hexagon document, "Schedule" of each section.

The output cache of HVX kernels is kept in rows where the output is, or where a stripe is some of its rows; that of the
plain kernel keeps the document's blocks. Whatever the output's layout, what is copied runs along what lies together.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir import Schedule, ScheduleError
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.kernel import NestLayouts, layouts_of
from hexconv.kernel.form import without_groups
from hexconv.layout import Layout
from hexconv.schedule import primitives
from hexconv.schedule.conv_blocks import ConvBlocks, Nest, Placed, all_conv_blocks, declare_reads, inner_axes, streaming
from hexconv.schedule.primitives import Tiles, around_step
from hexconv.schedule.stream import Scheduled, rolled
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK, slab_convs, steps_over_slabs
from hexconv.spec.names import INPUT_CACHE, OUTPUT
from hexconv.tir import parts
from hexconv.tir.loops import (
    REDUCTION,
    STEP,
    Loops,
    extent,
    inner_roles,
    inside_blocks,
    loop_roles,
    name_loops,
    name_part,
    note,
    own_loops,
    source_roles,
)
from hexconv.tir.trees import conjuncts


def guard_accumulators(module: tvm.IRModule, results: dict[str, str]) -> tvm.IRModule:
    """Compute only the sums that the epilogue takes.

    The epilogue of a conv is guarded where its step reaches past the stripe. When TVM places the sums inside of that
    stripe, it no longer knows the stripe's end, and guards the sums by the end of the tensor alone. Here the sums get
    the epilogue's guard for everything that the loops around both decide. The sums keep only the conditions on loops of
    their own.

    before:  for ho_inner, wo:                              after:  for ho_inner, wo:
                 where(slab < blocks and rc < C): sums                  where(slab < stripe and rc < C): sums
                 where(slab < stripe): result = f(sums)                 where(slab < stripe): result = f(sums)

    Args:
        module: a scheduled module with blocks.
        results: for each block that makes sums, the block of its epilogue, both by name.
    """
    epilogues: dict[str, s_tir.SBlockRealize] = {}

    def note(realize: s_tir.SBlockRealize) -> None:
        if realize.block.name_hint in results.values():
            epilogues[realize.block.name_hint] = realize

    def guarded(realize: s_tir.SBlockRealize) -> s_tir.SBlockRealize:
        if realize.block.name_hint not in results:
            return realize
        epilogue = epilogues[results[realize.block.name_hint]]
        outside = [loop for value in epilogue.iter_values for loop in tirx.analysis.undefined_vars(value, [])]
        own = [condition for condition in conjuncts(realize.predicate) if not _uses_only(condition, outside)]
        return s_tir.SBlockRealize(realize.iter_values, tirx.all(epilogue.predicate, *own), realize.block)

    main = module["main"]
    tvm_ffi.structural_walk(main.body, (s_tir.SBlockRealize, note))
    return tvm.IRModule({"main": main.with_body(tvm_ffi.structural_map(main.body, (s_tir.SBlockRealize, guarded)))})


def _uses_only(condition: tirx.Expr, loops: Sequence[tirx.Var]) -> bool:
    """Whether a condition depends on no loops but these."""
    return all(any(free.same_as(loop) for loop in loops) for free in tirx.analysis.undefined_vars(condition, []))


STEP_ORDER = ("ho_inner", "ko_inner", "hi", "wo", "wi", "ki")
"""The loops of one step from the outside in; a layout has some of them."""


def write_laid_out(sch: Schedule, output: SBlockRV, plan: Plan, layout: Layout, channels_together: int) -> Tiles:
    """Tile the copy of an output cache to an output that lies otherwise, in the plan's order of the outer loops.

    before:  for n, h, w, c: output[...] = output_cache[...]                                                  NHWC
    after:   for n, ho_outer, ko_outer:                                                        order = "h_outer"
                 for ho_inner, ko_inner, wo, ki: output[...] = output_cache[...]

    Args:
        sch: the schedule.
        output: the block that copies.
        plan: says how many rows and blocks of 32 channels a tile has.
        layout: the layout of the output.
        channels_together: how many channels lie together in the cache.
    """
    loops = own_loops(sch, output, loop_roles(layout))
    ho_outer, rows = _rows(sch, loops, plan)
    ko_outer, channels = _channels(sch, loops, plan, channels_together)
    found = {**{name: loops[name] for name in ("wo", "wi", "ki") if name in loops}, **rows, **channels}
    step = {name: found[name] for name in STEP_ORDER if name in found}
    name_loops(sch, step)
    outer = {"n": loops["n"], "ko_outer": ko_outer, "ho_outer": ho_outer}
    return around_step(sch, plan.order, plan.halo == "roll", outer, step)


def _rows(sch: Schedule, loops: Loops, plan: Plan) -> tuple[LoopRV, Loops]:
    """The loop over stripes, and those inside of one."""
    ho, rows = loops["ho"], plan.stripe_rows
    if "hi" not in loops:
        outer, inner = sch.split(ho, [None, min(rows, extent(sch, ho))])
        return outer, {"ho_inner": inner}
    if rows % ROW_BLOCK == 0:
        outer, inner = sch.split(ho, [None, min(rows // ROW_BLOCK, extent(sch, ho))])
        return outer, {"ho_inner": inner, "hi": loops["hi"]}
    outer, inner = sch.split(loops["hi"], [None, rows])
    sch.reorder(ho, outer, loops["wo"])
    return sch.fuse(ho, outer), {"ho_inner": inner}


def _channels(sch: Schedule, loops: Loops, plan: Plan, together: int) -> tuple[LoopRV, Loops]:
    """The loop over tiles of channels, and those inside of one."""
    ko = loops["ko"]
    if "ki" in loops:
        outer, inner = sch.split(ko, [None, min(plan.k_split, extent(sch, ko))])
        return outer, {"ko_inner": inner}
    channels = extent(sch, ko)
    groups = ceil(min(plan.k_split * CHANNEL_BLOCK, channels) / together)
    outer, some, one = sch.split(ko, [None, groups, min(together, channels)])
    return outer, {"ko_inner": some, "ki": one}


def stripe(module: tvm.IRModule, chain: Chain, plan: Plan) -> Scheduled:
    """Schedule a chain's module (`chain_module(chain, layouts_of(chain, plan))`) by `plan`."""
    sch, layouts = Schedule(module, debug_mask="none"), layouts_of(chain, plan)
    chain = without_groups(chain) if layouts.has_rows else chain
    input_cache = sch.get_sblock(INPUT_CACHE)
    convs = all_conv_blocks(sch, chain, plan, layouts)
    sch.set_scope(input_cache, 0, plan.scope("input"))
    for conv in convs:
        declare_reads(sch, conv)

    output, tiles = _write_back(sch, convs[-1], plan, layouts)
    name_part(sch, tiles.step, parts.WRITE_BACK)

    placed: list[Placed] = []
    for conv in reversed(convs):
        at = _home(chain, placed, conv.number).tiles.source if placed else tiles.innermost
        later = [slab_convs(chain)[each.blocks.number - 1] for each in streaming(sch, placed)]
        if placed:
            placed.append(_place_conv(sch, conv, at, plan, layouts, later, conv.number in chain.whole))
        else:
            placed.append(_place_last(sch, conv, tiles, plan, layouts))
    axes = source_roles(layouts.activations[0])
    input_at = _home(chain, placed, 0).tiles.source
    input_loops = primitives.stage_read(sch, input_cache, input_at, axes, parts.INPUT_READ)
    for conv in reversed(placed):
        if not conv.blocks.filter_cache:
            continue
        # Stripes that roll inside of a channel tile all use its filter; with rows outside, ko_outer is the innermost.
        tile = conv.tiles.ko_outer if plan.halo == "roll" else conv.tiles.innermost
        at = None if plan.filters == "resident" else tile
        part = parts.filter_read(conv.blocks.number)
        primitives.stage_read(sch, conv.blocks.filter_cache, at, conv.blocks.filter_loops, part)
    placed = [replace(conv, init=_zero_apart(sch, conv, layouts)) for conv in placed]
    nest = Nest(output, tuple(placed), input_cache, input_loops)
    in_bands = plan if layouts.has_rows else replace(plan, threads=1)  # threads of blocks share the steps of all rows
    scheduled = rolled(sch, chain, in_bands, nest, layouts) if plan.halo == "roll" else Scheduled(sch.mod)
    module = guard_accumulators(scheduled.module, _epilogues(sch, placed))
    return replace(scheduled, module=module, overlaps=plan.buffering == "double")


def _home(chain: Chain, placed: Sequence[Placed], tensor: int) -> Placed:
    """Return the conv in whose steps a tensor is made; convs are placed from the last one on."""
    return placed[len(chain.conv) - 1 - chain.homes[tensor]]


def _write_back(sch: Schedule, last: ConvBlocks, plan: Plan, layouts: NestLayouts) -> tuple[SBlockRV, primitives.Tiles]:
    """Tile the copy of the output cache to the output: these are the outermost tiles; return its block and them."""
    if layouts.lays_output_out:
        output = sch.get_sblock(OUTPUT)
        primitives.read_whole_blocks(sch, output, 0, inner_axes(last.layout))
    else:
        output = sch.cache_write(last.result, 0, plan.scope("output"))
        if not layouts.has_output_rows:
            return output, primitives.write_back(sch, output, plan, layouts.output)
    return output, write_laid_out(sch, output, plan, layouts.output, layouts.channel_units[-1])


def _epilogues(sch: Schedule, convs: Sequence[Placed]) -> dict[str, str]:
    """Return, for each block that makes sums, the block of its epilogue, both by name."""
    return {
        sch.get(block).name_hint: sch.get(conv.blocks.epilogue).name_hint
        for conv in convs
        if conv.blocks.epilogue
        for block in conv.summing
    }


def _place_last(sch: Schedule, conv: ConvBlocks, tiles: primitives.Tiles, plan: Plan, layouts: NestLayouts) -> Placed:
    """Compute the last conv in the tiles of the write-back."""
    loops = primitives.in_step(primitives.fuse_producer(sch, conv.result, tiles.innermost, conv.result_axes))
    sch.reorder(*loops.values())
    name_loops(sch, {name: loops[name] for name in ("n", "ko_inner", "ho_inner", "wo")})
    name_part(sch, loops, parts.convolution(conv.number))
    _name_step(sch, conv, loops["ko_inner"], layouts)
    return Placed(conv, tiles, loops["ho_inner"], _place_sums(sch, conv, loops, _sums_loop(plan, layouts)))


def _name_step(sch: Schedule, conv: ConvBlocks, loop: LoopRV, layouts: NestLayouts) -> None:
    """Mark the loop with which each step of a conv begins, if a kernel fills the steps."""
    if layouts.has_rows:
        sch.annotate(loop, STEP, conv.number)


def _place_conv(
    sch: Schedule,
    conv: ConvBlocks,
    at: LoopRV,
    plan: Plan,
    layouts: NestLayouts,
    later: Sequence[Conv2d],
    is_whole: bool,
) -> Placed:
    """Compute any other conv at loop `at`, in loops of its own; `later` are those of its steps, which count slabs."""
    loops = primitives.fuse_producer(sch, conv.result, at, conv.result_axes)
    # A stripe of rows is made in one step, and one that rolls where the next one begins after a gap.
    # So are those between a tensor and the conv that adds it.
    steps_over = plan.halo == "roll" and steps_over_slabs(later)
    is_one_step = layouts.has_rows or steps_over or is_whole
    rows = extent(sch, loops["ho"]) if is_one_step else plan.h_split
    splits = (rows, plan.k_split * CHANNEL_BLOCK // layouts.channel_units[conv.number])
    # A stripe that rolls makes new rows of each tensor once, for all channel tiles of what reads them.
    rolls = plan.halo == "roll"
    tiles = primitives.tile(sch, loops, splits, "h_outer" if rolls and later else plan.order, rolls)
    before = f"conv2d #{conv.number} before computing conv2d #{conv.number + 1}"
    note(sch, tiles.ko_outer, f"compute over all output channels of {before}")
    note(sch, tiles.ho_outer, f"compute enough height of {before}")
    name_part(sch, tiles.step, parts.convolution(conv.number))
    _name_step(sch, conv, tiles.step["ko_inner"], layouts)
    return Placed(conv, tiles, tiles.step["ho_inner"], _place_sums(sch, conv, tiles.step, _sums_loop(plan, layouts)))


def _sums_loop(plan: Plan, layouts: NestLayouts) -> str:
    """Return the loop of a step at which sums are computed: of a block, or of a row of blocks where threads share rows.

    before:  for ko_inner, ho_inner, wo: init; compute; epilogue                                    threads = 1
    after:   for ko_inner, ho_inner: for wo: init; compute                                          threads = 4
                                     for wo: epilogue
    """
    return "ho_inner" if plan.threads > 1 and not layouts.has_rows else "wo"


def _place_sums(sch: Schedule, conv: ConvBlocks, step: Loops, at: str) -> Loops:
    """Compute the sums of an epilogue at loop `at` of its step, just before it; return the loops of the sums."""
    own = {name: loop for name, loop in step.items() if name in (*inner_roles(conv.layout), *REDUCTION)}
    if conv.epilogue:
        name_loops(sch, own)
        name_part(sch, own, parts.convolution(conv.number, "epilogue"))
        loops = primitives.fuse_producer(sch, conv.sums, step[at], conv.sums_axes)
        name_loops(sch, {"wo": loops["wo"]})
        own = inside_blocks(loops)
    return primitives.order_reduction(sch, own, conv.rc_block)


def _zero_apart(sch: Schedule, conv: Placed, layouts: NestLayouts) -> SBlockRV | None:
    """Split a conv's block into init and compute, each with its own loops inside of wo.

    before:  for rc_outer, hi, ...: if first: sums = 0; sums += ...
    after:   for hi, wi, ki: sums = 0
             for rc_outer, hi, wi, ...: sums += ...

    Where a later conv's stride steps over whole slabs, the stripes of a tensor leave slabs out. TVM can't take such a
    block apart ("not quasi-affine"); such a block stays whole.
    """
    if layouts.has_rows:
        return None  # a kernel sets its sums itself, and reads whole rows
    blocks = conv.blocks
    try:
        init = sch.decompose_reduction(blocks.sums, conv.sums["rc_outer"])
    except ScheduleError:
        _read_as_is(sch, blocks, [blocks.sums])
        return None
    own = own_loops(sch, init, inner_roles(blocks.layout))
    name_loops(sch, own)
    name_part(sch, own, parts.convolution(blocks.number, "init"))
    name_part(sch, conv.sums, parts.convolution(blocks.number, "compute"))
    _read_as_is(sch, blocks, [init, blocks.sums])
    return init


def _read_as_is(sch: Schedule, conv: ConvBlocks, sums: Sequence[SBlockRV]) -> None:
    """Undo `read_whole_blocks` once everything is placed: from here on TVM looks at the region that is really read."""
    for block in (*sums, *([conv.epilogue] if conv.epilogue else [])):
        sch.unannotate(block, primitives.EXPLICIT_READS)
