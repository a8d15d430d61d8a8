"""Tile the copy to an output that lies otherwise than its cache, in the order of the output.

The output cache of HVX kernels is kept in rows where the output is, or where a stripe is some of its rows; that of the
plain kernel keeps the document's blocks. Whatever the output's layout, what is copied runs along what lies together.
"""

from math import ceil

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.layout import Layout
from hexconv.schedule.loops import Loops, extent, loop_roles, name_loops, own_loops
from hexconv.schedule.steps import Tiles, around_step
from hexconv.spec import Plan
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK

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
    return around_step(sch, plan.order, loops["n"], ko_outer, ho_outer, step)


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
