"""Name the loops of a schedule where TVM makes them, and find them by their names from then on.

Loops over a tensor have the names of its axes: `n`, `ho`, `wo`, `ko`, then `hi`, `wi`, `ki` inside of blocks. Loops
over a sum are `rc`, `rh` and `rw`. A split names both halves: `ko_outer` goes over tiles, `ko_inner` over the blocks of
one step.
"""

from collections.abc import Sequence

import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.layout import Layout
from hexconv.tir.parts import Part

Loops = dict[str, LoopRV]
"""Loops by name, from the outside in."""

LOOP_NAME = "hexconv.loop"
"""Annotation of a loop: its name."""
PART = "hexconv.part"
"""Annotation of the loop that a part of the chain begins with: the name of the part."""
NOTE = "hexconv.note"
"""Annotation of a loop: what it is there for."""
STEP = "hexconv.step"
"""Annotation of the loop around one step of a conv that a kernel fills: the number of the conv."""

OVER_BLOCKS = ("n", "ho", "wo", "ko")
"""The loops over the blocks of a packed activation."""
REDUCTION = ("rc", "rh", "rw")
"""The loops over a conv's sum: input channels, rows and columns of the kernel."""
STRIPES = "ho_outer"
"""The name of the loop over the stripes of a tensor; the outermost one goes over those of the output."""


def loop_roles(layout: Layout) -> tuple[str, ...]:
    """Name the loops over a packed activation, in the order of its axes.

    >>> from hexconv.layout import packed
    >>> loop_roles(packed("NHCW4w32c", (1, 8, 8, 64), logical="NHWC"))
    ('n', 'ho', 'ko', 'wo', 'wi', 'ki')
    """
    outer = {"N": "n", "H": "ho", "W": "wo", "C": "ko", "B": "byte"}
    inner = {"h": "hi", "w": "wi", "c": "ki"}
    return tuple(outer.get(output.name) or inner[output.name[-1]] for output in layout.outputs)


def source_roles(layout: Layout) -> tuple[str, ...]:
    """Name the loops over a packed activation where it is read: its channels are input channels there.

    >>> from hexconv.layout import packed
    >>> source_roles(packed("NHWC8h8w32c", (1, 8, 8, 64)))
    ('n', 'ho', 'wo', 'co', 'hi', 'wi', 'ci')
    """
    return tuple({"ko": "co", "ki": "ci"}.get(role, role) for role in loop_roles(layout))


def inner_roles(layout: Layout) -> tuple[str, ...]:
    """Name the loops over a packed activation that stand inside of those over blocks.

    >>> from hexconv.layout import packed
    >>> inner_roles(packed("NHWC8h8w32c", (1, 8, 8, 64))), inner_roles(packed("NHCW4w32c", (1, 8, 8, 64)))
    (('hi', 'wi', 'ki'), ('wi', 'ki'))
    """
    return tuple(role for role in loop_roles(layout) if role not in OVER_BLOCKS)


def own_loops(sch: Schedule, block: SBlockRV, names: Sequence[str]) -> Loops:
    """Name the loops that TVM made over the axes of a block: one for each axis, in their order, inside of all others.

    TVM gives a block's loops as a list, so this is the one place that takes loops from their positions.
    """
    loops = sch.get_loops(block)
    return dict(zip(names, loops[len(loops) - len(names) :], strict=True))


def inside_blocks(loops: Loops) -> Loops:
    """Return the loops that stand inside of those over the blocks of an activation."""
    return {name: loop for name, loop in loops.items() if name not in OVER_BLOCKS}


def name_loops(sch: Schedule, loops: Loops) -> None:
    """Give loops the names that the lowered TIR shows; loops of one iteration vanish there and stay unnamed."""
    for name, loop in loops.items():
        if not is_unit(sch, loop):
            sch.annotate(loop, LOOP_NAME, name)


def name_part(sch: Schedule, loops: Loops, part: Part) -> None:
    """Annotate the outermost of `loops` that stays in the lowered TIR with the part of the chain that begins there."""
    *_, innermost = loops.values()
    sch.annotate(next((loop for loop in loops.values() if not is_unit(sch, loop)), innermost), PART, part.name)


def note(sch: Schedule, loop: LoopRV, text: str) -> None:
    """Annotate a loop with what it is there for, unless it has one iteration: such loops vanish."""
    if not is_unit(sch, loop):
        sch.annotate(loop, NOTE, text)


def extent(sch: Schedule, loop: LoopRV) -> int:
    """Return how often a loop runs."""
    return int(sch.get(loop).extent)


def is_unit(sch: Schedule, loop: LoopRV) -> bool:
    """Whether a loop has one iteration."""
    extent = sch.get(loop).extent
    return isinstance(extent, tirx.IntImm) and extent.value == 1


def with_extent(loop: tirx.For, extent: int, name: str) -> tirx.For:
    """Let a loop run `extent` times under a name; a part of the chain that began inside of it now begins with it."""
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
