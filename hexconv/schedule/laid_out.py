"""The way out of a chain whose output lies otherwise than its cache: tiles of the copy, in the order of the output.

The output cache of HVX kernels is kept in rows where the output is, or where a stripe is some of its rows; that of the
plain kernel keeps the document's blocks. Whatever the output's layout, what is copied runs along what lies together.
"""

from math import ceil

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.layout import Layout
from hexconv.schedule import steps
from hexconv.schedule.steps import Tiles
from hexconv.spec import Plan
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK


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
    loops = dict(zip(steps.loop_roles(layout), sch.get_loops(output), strict=True))
    n, wo = loops["n"], loops["wo"]
    ho_outer, rows = _rows(sch, loops, plan)
    ko_outer, channels = _channels(sch, loops, plan, channels_together)
    inner = [rows[0], channels[0], *rows[1:], wo, *([loops["wi"]] if "wi" in loops else []), *channels[1:]]
    rows_outside = plan.order == "h_outer" or steps.is_unit(sch, ho_outer)
    outer = (ho_outer, ko_outer) if rows_outside else (ko_outer, ho_outer)
    sch.reorder(n, *outer, *inner)
    steps.name_loops(sch, [n, ko_outer, ho_outer, wo], ["n", "ko_outer", "ho_outer", "wo"])
    steps.name_loops(sch, [rows[0], channels[0]], ["ho_inner", "ko_inner"])
    within = {"hi": rows[1:], "wi": [loops["wi"]] if "wi" in loops else [], "ki": channels[1:]}
    for name, some in within.items():
        steps.name_loops(sch, some, [name] * len(some))
    return Tiles(ko_outer, ho_outer, outer[1], ho_outer if rows_outside else outer[1])


def _rows(sch: Schedule, loops: dict[str, LoopRV], plan: Plan) -> tuple[LoopRV, list[LoopRV]]:
    """The loop over stripes, and those inside of one."""
    ho, rows = loops["ho"], plan.stripe_rows
    if "hi" not in loops:
        outer, inner = sch.split(ho, [None, min(rows, steps.extent(sch, ho))])
        return outer, [inner]
    if rows % ROW_BLOCK == 0:
        outer, inner = sch.split(ho, [None, min(rows // ROW_BLOCK, steps.extent(sch, ho))])
        return outer, [inner, loops["hi"]]
    outer, inner = sch.split(loops["hi"], [None, rows])
    sch.reorder(ho, outer, loops["wo"])
    return sch.fuse(ho, outer), [inner]


def _channels(sch: Schedule, loops: dict[str, LoopRV], plan: Plan, together: int) -> tuple[LoopRV, list[LoopRV]]:
    """The loop over tiles of channels, and those inside of one."""
    ko = loops["ko"]
    if "ki" in loops:
        outer, inner = sch.split(ko, [None, min(plan.k_split, steps.extent(sch, ko))])
        return outer, [inner, loops["ki"]]
    channels = steps.extent(sch, ko)
    groups = ceil(min(plan.k_split * CHANNEL_BLOCK, channels) / together)
    outer, some, one = sch.split(ko, [None, groups, min(together, channels)])
    return outer, [some, one]
