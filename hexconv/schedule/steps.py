"""Steps that a strategy is made of; each shows the loop nest before and after.

A step takes and changes a `tvm.s_tir.Schedule`. Blocks keep the names that `hexconv.compute` gave them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV, _ffi_api

from hexconv.layout import Layout
from hexconv.spec import Plan
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.knobs import Order

READ = 0


@dataclass(frozen=True)
class Tiles:
    """The two loops around one outer step of a conv: over tiles of output-channel blocks and of block rows.

    Attributes:
        ko_outer: over channel tiles.
        ho_outer: over block rows.
        innermost: the inner one of both.
        source: where what the conv reads is made: once per row step, or for every channel tile of it again.
    """

    ko_outer: LoopRV
    ho_outer: LoopRV
    innermost: LoopRV
    source: LoopRV


def read_whole_blocks(sch: Schedule, block: SBlockRV, read_index: int, whole: Sequence[int] = (-3, -2, -1)) -> None:
    """Declare that `block` reads whole blocks of one of its inputs: the `whole` axes from end to end.

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
        if axis in whole or axis - len(region) in whole:
            size = sblock.reads[read_index].source.shape[axis]
            ranges += [tirx.IntImm("int32", 0), size]
        else:
            ranges += [span.min, span.min + span.extent]
    index_map = tirx.IndexMap([axis.var for axis in sblock.iter_vars], ranges, None)
    _ffi_api.ScheduleAnnotateBufferAccess(sch, block, read_index, READ, index_map)


def loop_roles(layout: Layout) -> tuple[str, ...]:
    """What the loops over a packed activation are called, in the order of its axes.

    >>> from hexconv.layout import packed
    >>> loop_roles(packed("NHCW4w32c", (1, 8, 8, 64), logical="NHWC"))
    ('n', 'ho', 'ko', 'wo', 'wi', 'ki')
    """
    outer = {"N": "n", "H": "ho", "W": "wo", "C": "ko", "B": "byte"}
    inner = {"h": "hi", "w": "wi", "c": "ki"}
    return tuple(outer.get(output.name) or inner[output.name[-1]] for output in layout.outputs)


def write_back(sch: Schedule, cached: SBlockRV, plan: Plan, layout: Layout) -> Tiles:
    """Tile the copy of the output cache to the output, in the plan's order of the outer loops.

    before:  for n, ho, wo, ko, hi, wi, ki: output[...] = output_cache[...]
    after:   for n, ko_outer, ho_outer:                                             order = "k_outer"
                 for ko_inner, ho_inner, wo, hi, wi, ki: output[...] = output_cache[...]
    or:      for n, ho_outer, ko_outer: ...                                         order = "h_outer"
    """
    loops = sch.get_loops(cached)
    tiles = tile(sch, loops, (plan.h_split, plan.k_split), plan.order, layout)
    name_loops(sch, loops[4:], ["hi", "wi", "ki"])
    return tiles


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


def tile(sch: Schedule, loops: Sequence[LoopRV], splits: tuple[int, int], order: Order, layout: Layout) -> Tiles:
    """Give a conv, or the write-back, outer loops over output-channel blocks and block rows, in the plan's order.

    before:  for n, ho, wo, ko, hi, wi, ki, ...: conv
    after:   for n, ko_outer, ho_outer:                                             order = "k_outer"
                 for ko_inner, ho_inner, wo, hi, wi, ki, ...: conv
    or:      for n, ho_outer, ko_outer: ...                                         order = "h_outer", or one row step

    A conv with one row step makes its source once for all of its channel tiles, whatever the order: so the 1x1 listings
    of seed document 003 read the input outside of conv2d #1's ko_outer, and its 3x3 listing (two row steps) inside.
    """
    n, ho, wo, ko, *rest = rows_first(layout, loops)
    rows, channels = splits
    ko_outer, ko_inner = sch.split(ko, [None, _at_most(sch, ko, channels)])
    ho_outer, ho_inner = sch.split(ho, [None, _at_most(sch, ho, rows)])
    rows_outside = order == "h_outer" or is_unit(sch, ho_outer)
    outer = (ho_outer, ko_outer) if rows_outside else (ko_outer, ho_outer)
    sch.reorder(n, *outer, ko_inner, ho_inner, wo, *rest)
    name_loops(sch, [n, ko_outer, ho_outer], ["n", "ko_outer", "ho_outer"])
    name_loops(sch, [ko_inner, ho_inner, wo], ["ko_inner", "ho_inner", "wo"])
    return Tiles(ko_outer, ho_outer, outer[1], ho_outer if rows_outside else outer[1])


def rows_first(layout: Layout, loops: Sequence[LoopRV]) -> list[LoopRV]:
    """The loops over a packed activation, and those inside of them: n, ho, wo and ko come first."""
    by_role = dict(zip(loop_roles(layout), loops, strict=False))
    return [*(by_role.pop(role) for role in ("n", "ho", "wo", "ko")), *by_role.values(), *loops[len(layout.outputs) :]]


def order_reduction(sch: Schedule, loops: Sequence[LoopRV], roles: Sequence[str], block: int = CHANNEL_BLOCK) -> LoopRV:
    """Order the inside of a conv block as seed document 003 does: one block of input channels at a time.

    before:  for hi, wi, ki, rc, rh, rw: conv
    after:   for rc_outer, hi, wi, rh, rw, ki, rc_inner: conv

    `roles` are the names of hi, wi and ki, or of what a nest of rows has instead. Returns rc_outer, the loop at which
    the sums are set to zero.
    """
    *pixels, ki, rc, rh, rw = loops
    rc_outer, rc_inner = sch.split(rc, [None, block])
    sch.reorder(rc_outer, *pixels, rh, rw, ki, rc_inner)
    names = ["rc_outer", *roles[:-1], "rh", "rw", "ki", "rc_inner"]
    name_loops(sch, [rc_outer, *pixels, rh, rw, ki, rc_inner], names)
    return rc_outer


def inner_roles(layout: Layout) -> tuple[str, ...]:
    """The names of the loops over a packed activation inside of those over blocks.

    >>> from hexconv.layout import packed
    >>> inner_roles(packed("NHWC8h8w32c", (1, 8, 8, 64))), inner_roles(packed("NHCW4w32c", (1, 8, 8, 64)))
    (('hi', 'wi', 'ki'), ('wi', 'ki'))
    """
    return tuple(role for role in loop_roles(layout) if role not in ("n", "ho", "wo", "ko"))


def stage_read(sch: Schedule, cache: SBlockRV, at: LoopRV | None, names: Sequence[str], part: str) -> None:
    """Fill a cache at loop `at`, just before what reads it; without a loop, before everything and once.

    before:  for at: conv                        after:  for at:
                                                             for ...: cache[...] = tensor[...]
                                                             conv
    """
    loops = fuse_producer(sch, cache, at) if at else sch.get_loops(cache)
    name_loops(sch, loops, names)
    name_part(sch, loops, part)


def name_loops(sch: Schedule, loops: Sequence[LoopRV], names: Sequence[str]) -> None:
    """Give loops the names that the lowered TIR shows; loops of one iteration vanish there and stay unnamed."""
    for loop, name in zip(loops, names, strict=True):
        if not is_unit(sch, loop):
            sch.annotate(loop, LOOP_NAME, name)


def name_part(sch: Schedule, loops: Sequence[LoopRV], part: str) -> None:
    """Say which part of the chain the outermost of `loops` that stays in the lowered TIR begins."""
    longer = [loop for loop in loops if not is_unit(sch, loop)]
    sch.annotate([*longer, loops[-1]][0], PART, part)


def note(sch: Schedule, loop: LoopRV, text: str) -> None:
    """Say what a loop is there for; loops of one iteration vanish, and with them the need to say it."""
    if not is_unit(sch, loop):
        sch.annotate(loop, NOTE, text)


def with_extent(loop: tirx.For, extent: int, name: str) -> tirx.For:
    """The same loop, running `extent` times under its name; a part of the chain that began inside begins with it."""
    begins: dict[str, str] = {}

    def without_part(inner: tirx.For) -> tirx.For:
        if PART not in inner.annotations:
            return inner
        begins[PART] = inner.annotations[PART]
        rest = {key: value for key, value in inner.annotations.items() if key != PART}
        return tirx.For(inner.loop_var, inner.min, inner.extent, inner.kind, inner.body, annotations=rest)

    body = tvm_ffi.structural_map(loop.body, (tirx.For, without_part))
    annotations = {**loop.annotations, LOOP_NAME: name, **begins}
    return tirx.For(loop.loop_var, loop.min, extent, loop.kind, body, annotations=annotations)


LOOP_NAME = "hexconv.loop"
PART = "hexconv.part"
NOTE = "hexconv.note"
EXPLICIT_READS = "explicit_read_region"
STEP = "hexconv.step"
"""Annotation of the loop around one step of a conv that a kernel fills: the number of the conv."""


def extent(sch: Schedule, loop: LoopRV) -> int:
    """How often a loop runs."""
    return int(sch.get(loop).extent)


def written(sch: Schedule, block: SBlockRV) -> tirx.Var:
    """The buffer that a block writes."""
    return sch.get(block).writes[0].source


def all_slabs(sch: Schedule, block: SBlockRV) -> int:
    """Block rows of the whole tensor that a block writes."""
    return int(written(sch, block).shape[1])


def _at_most(sch: Schedule, loop: LoopRV, factor: int) -> int:
    """A split's factor, no larger than what there is to split."""
    return min(factor, extent(sch, loop))


def is_unit(sch: Schedule, loop: LoopRV) -> bool:
    """Whether a loop has one iteration."""
    extent = sch.get(loop).extent
    return isinstance(extent, tirx.IntImm) and extent.value == 1
