"""Draw random cases over the whole scope: sizes, kernels, strides, dilations, paddings, dtypes and plans in any mix.

The geometry of all convs is drawn first, then the size of the output, from which the input's size follows. (If the
input were drawn first, most chains of large kernels would not fit it, and mostly small kernels would be tested.) Sizes
are drawn from ever smaller ranges until a case is within the scope's multiply-adds and elements; kernels, strides and
dtypes stay as drawn.

One integer case in six has long sums instead: it adds up as many products as are accepted, or nearly, for a few
outputs.

One integer case in six for hvx that is left has a conv in groups of several channels (`hexconv.sweep.grouped`).

One case in three of bytes for hvx that is left has few channels and wide rows.

Case i of seed S is the same in every sweep, since each case has a generator of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from hexconv.kernel.depthwise import BYTES
from hexconv.spec import Case, Chain, Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.edges import EDGE_LAYOUTS, IN_BLOCKS, PIXELS, EdgeLayout
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.kernels import Kernel
from hexconv.sweep.arithmetic import drawn_filter_dtype, drawn_zero_point, with_filters, with_requantisations
from hexconv.sweep.draw import Draw, Seeded
from hexconv.sweep.few_channels import few_channels
from hexconv.sweep.geometry import geometries, input_axis
from hexconv.sweep.grouped import grouped
from hexconv.sweep.long_sums import long_sums
from hexconv.sweep.plans import drawn_plan
from hexconv.sweep.scope import EVERYTHING, Kind, Scope
from hexconv.sweep.work import executed_macs

LARGEST_MULTIPLIER = 2
"""The most output channels that a depthwise conv gets for each input channel."""
SERVES: dict[Dtype, tuple[Kernel, ...]] = {"float32": ("plain",), "float16": ("plain",)}
OF_INTEGERS: tuple[Kernel, ...] = ("plain", "plain", "hvx")
UNSERVED: dict[Kernel, int] = {"plain": 12, "hvx": 4}
"""For each kernel, in one of how many chains something is drawn that it can't serve; for hvx, in some convs only."""
SIZE_SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.0)
"""The shares of the largest sizes to draw from, one after the other; the last allows nothing but sizes of one."""


def random_case(seed: int, index: int) -> Case:
    """Draw case `index` of `seed`, named `random-SEED-INDEX`."""
    return drawn_case(Seeded(seed, index), EVERYTHING, f"random-{seed}-{index}")


def drawn_case(draw: Draw, scope: Scope, name: str) -> Case:
    """Draw a case within a scope.

    Args:
        draw: the source of random draws.
        scope: the largest numbers to draw.
        name: the name of the case.
    """
    kind = _kind(draw, scope)
    is_long = draw.is_one_in(6 if kind.dtype in INTEGER_RANGE else 24)
    for smaller in long_sums(draw, kind) if is_long else _chains(draw, kind, scope):
        case = Case(name, smaller, drawn_plan(draw, smaller, kind.kernel, scope))
        if _is_within(case, scope):
            return case
    raise AssertionError(f"the smallest chain is within no scope: {scope}")


def _chains(draw: Draw, kind: Kind, scope: Scope) -> Iterator[Chain]:
    """Yield ever smaller chains; some of those for hvx have convs in groups, or few channels and wide rows."""
    if kind.kernel == "hvx" and kind.is_served and draw.is_one_in(6):
        yield from grouped(draw, kind, scope)
    if kind.kernel == "hvx" and kind.dtype in BYTES and kind.is_served and draw.is_one_in(3):
        yield from few_channels(draw, kind)
    yield from _ever_smaller(draw, kind, scope)


def _is_within(case: Case, scope: Scope) -> bool:
    """Whether a case takes no more work and memory than the scope allows."""
    return executed_macs(case) <= scope.macs and prod(case.chain.input) <= scope.elements


def _kind(draw: Draw, scope: Scope) -> Kind:
    """Draw a dtype, and a kernel that serves chains of it: hvx for one integer chain in three."""
    dtype: Dtype = draw.one_of(*scope.dtypes)
    kernels: list[Kernel] = [kernel for kernel in SERVES.get(dtype, OF_INTEGERS) if kernel in scope.kernels]
    kernel = kernels[draw.number(0, len(kernels) - 1)] if kernels else OF_INTEGERS[0]
    return Kind(dtype, drawn_filter_dtype(draw, dtype), kernel, is_served=not draw.is_one_in(UNSERVED[kernel]))


def _ever_smaller(draw: Draw, kind: Kind, scope: Scope) -> Iterator[Chain]:
    """Yield chains of one geometry with sizes from ever smaller ranges, then with ever fewer convs, all sizes one."""
    convs = geometries(draw, draw.number(1, scope.convs))
    for scale in SIZE_SCALES:
        yield _chain(draw, kind, scope, convs, scale)
    for first in range(1, len(convs)):
        yield _chain(draw, kind, scope, convs[first:], 0.0)


def _chain(draw: Draw, kind: Kind, scope: Scope, geometry: Sequence[Conv2d], scale: float) -> Chain:
    """Draw the sizes of a chain of given geometry."""
    most = max(1, round(scope.channels * scale))
    channels = [_size(draw, most, CHANNEL_BLOCK) for _ in range(len(geometry) + 1)]
    convs = []
    for index, conv in enumerate(geometry):
        groups, channels[index + 1] = _groups(draw, *channels[index : index + 2])
        convs.append(replace(conv, out_channels=channels[index + 1], groups=groups))
    # In one case of eight the output is 1x1; with padding, inputs then get as small as 1x1.
    most = 1 if draw.is_one_in(8) else max(1, round(scope.output * scale))
    height, width = (input_axis(draw, convs, axis, _size(draw, most, ROW_BLOCK)) for axis in (0, 1))
    convs = [with_filters(draw, kind, conv) for conv in convs]
    return Chain(
        input=(draw.number(1, scope.batch), height, width, channels[0]),
        dtype=kind.dtype,
        filter_dtype=kind.filter_dtype,
        zero_point=drawn_zero_point(draw, kind.dtype),
        input_layout=_edge_layout(draw, PIXELS),
        output_layout=_edge_layout(draw, IN_BLOCKS),
        conv=with_requantisations(draw, kind, convs, channels),
    )


def _edge_layout(draw: Draw, usual: EdgeLayout) -> EdgeLayout:
    """Draw how an input or an output lies: in one case of three otherwise than usual."""
    if not draw.is_one_in(3):
        return usual
    others: list[EdgeLayout] = [layout for layout in EDGE_LAYOUTS if layout != usual]
    return draw.one_of(*others)


def _groups(draw: Draw, inputs: int, outputs: int) -> tuple[int, int]:
    """Draw the groups of a conv (one, one per input channel, or any other number), and make its outputs fit them."""
    style = draw.number(0, 5)
    if style < 4:
        return 1, outputs
    if style == 4:
        return inputs, inputs * draw.number(1, LARGEST_MULTIPLIER)
    # Groups of whole channel blocks have filters of their own, so they are drawn wherever there are enough channels.
    whole = inputs // CHANNEL_BLOCK if inputs % CHANNEL_BLOCK == 0 else 1
    parts = whole if whole > 1 else inputs
    groups = draw.one_of(*([count for count in range(2, parts + 1) if parts % count == 0] or [1]))
    return groups, -(-outputs // groups) * groups


def _size(draw: Draw, most: int, block: int) -> int:
    """Draw a size from 1 to `most`, each order of magnitude equally likely; one in four is a whole number of blocks."""
    size = draw.size(most)
    return -(-size // block) * block if draw.is_one_in(4) and size <= most // block * block else size
