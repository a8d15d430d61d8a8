"""Change a schedule by the steps that a strategy is made of; each docstring shows the loop nest before and after.

A step takes and changes a `tvm.s_tir.Schedule`. Blocks keep the names that `hexconv.compute` gave them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV, _ffi_api

from hexconv.layout import Layout
from hexconv.spec import Plan
from hexconv.spec.knobs import Order
from hexconv.tir.loops import (
    REDUCTION,
    STRIPES,
    Loops,
    extent,
    inside_blocks,
    is_unit,
    loop_roles,
    name_loops,
    name_part,
    own_loops,
)
from hexconv.tir.parts import Part

READ = 0
EXPLICIT_READS = "explicit_read_region"
"""TVM's annotation of a block whose reads are declared."""


@dataclass(frozen=True)
class Tiles:
    """The two loops around one outer step of a conv: over tiles of output-channel blocks and of block rows.

    Attributes:
        ko_outer: the loop over channel tiles.
        ho_outer: the loop over block rows.
        innermost: the inner one of both.
        source: the loop at which the conv's source is made: once per row step, or again for every channel tile.
        step: the loops of one step, inside of both.
    """

    ko_outer: LoopRV
    ho_outer: LoopRV
    innermost: LoopRV
    source: LoopRV
    step: Loops


def read_whole_blocks(sch: Schedule, block: SBlockRV, read_index: int, whole: Sequence[int]) -> None:
    """Declare that `block` reads whole blocks of one of its inputs: the `whole` axes from end to end.

    before:  T.reads(input_cache[n, h // 8, w // 8, rc // 32, h % 8, w % 8, rc % 32])
    after:   T.reads(input_cache[n, h // 8, w // 8, rc // 32, 0:8, 0:8, 0:32])

    Whatever is then computed at a loop of `block` is computed in whole blocks. Without it a conv with stride 2 would
    have its input cached in blocks of 7 rows, since it never reads the 8th; packed blocks are 8x8x32 wherever they lie.
    (`Schedule.annotate_buffer_access` does the same, but refuses blocks with reduction axes.)
    """
    sblock = sch.get(block)
    region = sblock.reads[read_index].region
    ranges: list[tirx.Expr] = []
    for axis, span in enumerate(region):
        if axis in whole or axis - len(region) in whole:
            size = sblock.reads[read_index].source.shape[axis]
            ranges += [tirx.IntImm("int32", 0), size]
        else:
            ranges += [span.min, span.min + span.extent]
    index_map = tirx.IndexMap([axis.var for axis in sblock.iter_vars], ranges, None)
    _ffi_api.ScheduleAnnotateBufferAccess(sch, block, read_index, READ, index_map)


def write_back(sch: Schedule, cached: SBlockRV, plan: Plan, layout: Layout) -> Tiles:
    """Tile the copy of the output cache to the output, in the plan's order of the outer loops.

    before:  for n, ho, wo, ko, hi, wi, ki: output[...] = output_cache[...]
    after:   for n, ko_outer, ho_outer:                                             order = "k_outer"
                 for ko_inner, ho_inner, wo, hi, wi, ki: output[...] = output_cache[...]
    or:      for n, ho_outer, ko_outer: ...                                         order = "h_outer"
    or:      for ko_outer, n, ho_outer: ...                                         order = "k_outer", halo = "roll"
    """
    loops = own_loops(sch, cached, loop_roles(layout))
    tiles = tile(sch, loops, (plan.h_split, plan.k_split), plan.order, rolls=plan.halo == "roll")
    name_loops(sch, inside_blocks(loops))
    return tiles


def fuse_producer(sch: Schedule, block: SBlockRV, at: LoopRV, names: Sequence[str]) -> Loops:
    """Compute `block` at loop `at` of its consumer, just before the consumer, as much as one iteration of `at` needs.

    before:  for ...: block                      after:  for at:
             for at: consumer                                for ...: block
                                                             consumer
    Returns the loops of `block` below `at`: one for each axis, by the axes' `names`.
    """
    sch.compute_at(block, at, preserve_unit_loops=True)
    return own_loops(sch, block, names)


def tile(sch: Schedule, loops: Loops, splits: tuple[int, int], order: Order, rolls: bool) -> Tiles:
    """Give a conv, or the write-back, outer loops over output-channel blocks and block rows, in the plan's order.

    before:  for n, ho, wo, ko, hi, wi, ki, ...: conv
    after:   for n, ko_outer, ho_outer:                                             order = "k_outer"
                 for ko_inner, ho_inner, wo, hi, wi, ki, ...: conv
    or:      for n, ho_outer, ko_outer: ...                                         order = "h_outer", or one row step

    A conv with one row step makes its source once for all of its channel tiles, whatever the order: so the 1x1 listings
    of the Hexagon document read the input outside of conv2d #1's ko_outer, and its 3x3 listing (two row steps) inside.
    """
    rows, channels = splits
    ko_outer, ko_inner = sch.split(loops["ko"], [None, min(channels, extent(sch, loops["ko"]))])
    ho_outer, ho_inner = sch.split(loops["ho"], [None, min(rows, extent(sch, loops["ho"]))])
    step = {"ko_inner": ko_inner, "ho_inner": ho_inner, "wo": loops["wo"]}
    name_loops(sch, step)
    whole = {**step, **inside_blocks(loops)}
    return around_step(sch, order, rolls, {"n": loops["n"], "ko_outer": ko_outer, "ho_outer": ho_outer}, whole)


def around_step(sch: Schedule, order: Order, rolls: bool, outer: Loops, step: Loops) -> Tiles:
    """Put the loops over tiles around those of one step, in the plan's order; one row step allows `h_outer` alone.

    before:  n, ko_outer, ho_outer and the loops of one step in any order
    after:   for n, ko_outer, ho_outer: for loops of one step: ...                  order = "k_outer"
    or:      for n, ho_outer, ko_outer: for loops of one step: ...                  order = "h_outer", or one row step
    or:      for ko_outer, n, ho_outer: for loops of one step: ...                  order = "k_outer", stripes that roll
    """
    n, ko_outer, ho_outer = (outer[name] for name in ("n", "ko_outer", "ho_outer"))
    rows_outside = order == "h_outer" or is_unit(sch, ho_outer)
    outside, innermost = ([n, ho_outer], ko_outer) if rows_outside else ([n, ko_outer], ho_outer)
    sch.reorder(*(reversed(outside) if rolls and not rows_outside else outside), innermost, *step.values())
    name_loops(sch, {"n": n, "ko_outer": ko_outer, STRIPES: ho_outer})
    return Tiles(ko_outer, ho_outer, innermost, ho_outer if rows_outside else innermost, step)


def in_step(loops: Loops) -> Loops:
    """Return the loops of a block that is computed in one step of its consumer, in the order that they have there."""
    step = {"n": loops["n"], "ko_inner": loops["ko"], "ho_inner": loops["ho"], "wo": loops["wo"]}
    return {**step, **inside_blocks(loops)}


def order_reduction(sch: Schedule, loops: Loops, block: int) -> Loops:
    """Order the inside of a conv block as the Hexagon document does: one block of input channels at a time.

    before:  for hi, wi, ki, rc, rh, rw: conv                      a nest of rows has others than hi and wi
    after:   for rc_outer, hi, wi, rh, rw, ki, rc_inner: conv

    Returns the new loops; `rc_outer` is the loop at which the sums are set to zero.
    """
    rc_outer, rc_inner = sch.split(loops["rc"], [None, block])
    pixels = {name: loop for name, loop in loops.items() if name not in ("ki", *REDUCTION)}
    taps = {"rh": loops["rh"], "rw": loops["rw"], "ki": loops["ki"]}
    ordered = {"rc_outer": rc_outer, **pixels, **taps, "rc_inner": rc_inner}
    sch.reorder(*ordered.values())
    name_loops(sch, ordered)
    return ordered


def stage_read(sch: Schedule, cache: SBlockRV, at: LoopRV | None, names: Sequence[str], part: Part) -> Loops:
    """Fill a cache at loop `at`, just before the block that reads it; without a loop, once and before all other blocks.

    before:  for at: conv                        after:  for at:
                                                             for ...: cache[...] = tensor[...]
                                                             conv
    Returns the loops over the axes of the cache, by the axes' `names`.
    """
    loops = fuse_producer(sch, cache, at, names) if at else own_loops(sch, cache, names)
    name_loops(sch, loops)
    name_part(sch, loops, part)
    return loops


def written(sch: Schedule, block: SBlockRV) -> tirx.Var:
    """Return the buffer that a block writes."""
    return sch.get(block).writes[0].source


def all_slabs(sch: Schedule, block: SBlockRV) -> int:
    """Count the block rows of the whole tensor that a block writes."""
    return int(written(sch, block).shape[1])
