"""Steps that a strategy is made of; each shows the loop nest before and after.

A step takes and changes a `tvm.s_tir.Schedule`. Blocks keep the names that `hexconv.compute` gave them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV, _ffi_api

from hexconv.spec.extents import CHANNEL_BLOCK

READ = 0


@dataclass(frozen=True)
class Tiles:
    """The two loops around one outer step of a conv: output-channel blocks, then block rows."""

    ko_outer: LoopRV
    ho_outer: LoopRV


def read_whole_blocks(sch: Schedule, block: SBlockRV, read_index: int, block_axes: int = 3) -> None:
    """Declare that `block` reads whole blocks of one of its inputs: the last `block_axes` axes from end to end.

    before:  T.reads(input_cache[n, h // 8, w // 8, rc // 32, h % 8, w % 8, rc % 32])
    after:   T.reads(input_cache[n, h // 8, w // 8, rc // 32, 0:8, 0:8, 0:32])

    Whatever is then computed at a loop of `block` is computed in whole blocks. Without it a conv with stride 2 would
    have its input cached in blocks of 7 rows, since it never reads the 8th; packed blocks are 8x8x32 wherever they lie.
    (`Schedule.annotate_buffer_access` does the same, but refuses blocks with reduction axes.)
    """
    sblock = sch.get(block)
    region = sblock.reads[read_index].region
    ranges = []
    for axis, span in enumerate(region):
        if axis >= len(region) - block_axes:
            size = sblock.reads[read_index].source.shape[axis]
            ranges += [tirx.IntImm("int32", 0), size]
        else:
            ranges += [span.min, span.min + span.extent]
    index_map = tirx.IndexMap([axis.var for axis in sblock.iter_vars], ranges, None)
    _ffi_api.ScheduleAnnotateBufferAccess(sch, block, read_index, READ, index_map)


def write_back(sch: Schedule, cached: SBlockRV, k_split: int, h_split: int) -> Tiles:
    """Tile the copy of the output cache to the output.

    before:  for n, ho, wo, ko, hi, wi, ki: output[...] = output_cache[...]
    after:   for n, ko_outer, ho_outer:
                 for ko_inner, ho_inner, wo, hi, wi, ki: output[...] = output_cache[...]
    """
    n, ho, wo, ko, hi, wi, ki = sch.get_loops(cached)
    ko_outer, ko_inner = sch.split(ko, [None, _at_most(sch, ko, k_split)])
    ho_outer, ho_inner = sch.split(ho, [None, _at_most(sch, ho, h_split)])
    sch.reorder(n, ko_outer, ho_outer, ko_inner, ho_inner, wo, hi, wi, ki)
    name_loops(sch, [n, ko_outer, ho_outer], ["n", "ko_outer", "ho_outer"])
    name_loops(sch, [ko_inner, ho_inner, wo, hi, wi, ki], ["ko_inner", "ho_inner", "wo", "hi", "wi", "ki"])
    return Tiles(ko_outer, ho_outer)


def fuse_producer(sch: Schedule, block: SBlockRV, at: LoopRV) -> list[LoopRV]:
    """Compute `block` at loop `at` of its consumer, just before it, as much as one iteration of `at` needs.

    before:  for ...: block                      after:  for at:
             for at: consumer                                for ...: block
                                                             consumer
    Returns the loops of `block` below `at`.
    """
    outside = len(_loops_down_to(sch, block, at))
    return sch.get_loops(block)[outside:]


def _loops_down_to(sch: Schedule, block: SBlockRV, at: LoopRV) -> Sequence[LoopRV]:
    """Move `block` to `at` and return the loops around both."""
    own = len(sch.get_loops(block))
    sch.compute_at(block, at, preserve_unit_loops=True)
    return sch.get_loops(block)[:-own]


def tile_conv(sch: Schedule, loops: Sequence[LoopRV], k_split: int, h_split: int) -> Tiles:
    """Give a conv its own outer loops over output-channel blocks and block rows.

    before:  for n, ho, wo, ko, hi, wi, ki, ...: conv
    after:   for n, ko_outer, ho_outer:
                 for ko_inner, ho_inner, wo, hi, wi, ki, ...: conv
    """
    n, ho, wo, ko, *rest = loops
    ko_outer, ko_inner = sch.split(ko, [None, _at_most(sch, ko, k_split)])
    ho_outer, ho_inner = sch.split(ho, [None, _at_most(sch, ho, h_split)])
    sch.reorder(n, ko_outer, ho_outer, ko_inner, ho_inner, wo, *rest)
    name_loops(sch, [n, ko_outer, ho_outer], ["n", "ko_outer", "ho_outer"])
    name_loops(sch, [ko_inner, ho_inner, wo], ["ko_inner", "ho_inner", "wo"])
    return Tiles(ko_outer, ho_outer)


def order_reduction(sch: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """Order the inside of a conv block as seed document 003 does: one 32-channel block of the input at a time.

    before:  for hi, wi, ki, rc, rh, rw: conv
    after:   for rc_outer, hi, wi, rh, rw, ki, rc_inner: conv

    Returns rc_outer, the loop at which the sums are set to zero.
    """
    hi, wi, ki, rc, rh, rw = loops
    rc_outer, rc_inner = sch.split(rc, [None, CHANNEL_BLOCK])
    sch.reorder(rc_outer, hi, wi, rh, rw, ki, rc_inner)
    names = ["rc_outer", "hi", "wi", "rh", "rw", "ki", "rc_inner"]
    name_loops(sch, [rc_outer, hi, wi, rh, rw, ki, rc_inner], names)
    return rc_outer


def stage_read(sch: Schedule, cache: SBlockRV, at: LoopRV, names: Sequence[str], part: str) -> None:
    """Fill a cache at loop `at`, just before what reads it.

    before:  for at: conv                        after:  for at:
                                                             for ...: cache[...] = tensor[...]
                                                             conv
    """
    loops = fuse_producer(sch, cache, at)
    name_loops(sch, loops, names)
    name_part(sch, loops, part)


def name_loops(sch: Schedule, loops: Sequence[LoopRV], names: Sequence[str]) -> None:
    """Give loops the names that the lowered TIR shows; loops of one iteration vanish there and stay unnamed."""
    for loop, name in zip(loops, names, strict=True):
        if not _is_unit(sch, loop):
            sch.annotate(loop, LOOP_NAME, name)


def name_part(sch: Schedule, loops: Sequence[LoopRV], part: str) -> None:
    """Say which part of the chain the outermost of `loops` that stays in the lowered TIR begins."""
    first = next(loop for loop in loops if not _is_unit(sch, loop))
    sch.annotate(first, PART, part)


LOOP_NAME = "hexconv.loop"
PART = "hexconv.part"
EXPLICIT_READS = "explicit_read_region"


def _at_most(sch: Schedule, loop: LoopRV, factor: int) -> int:
    """A split's factor, no larger than what there is to split."""
    return min(factor, int(sch.get(loop).extent))


def _is_unit(sch: Schedule, loop: LoopRV) -> bool:
    """Whether a loop has one iteration."""
    extent = sch.get(loop).extent
    return isinstance(extent, tirx.IntImm) and extent.value == 1
