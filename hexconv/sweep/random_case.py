"""Draw random cases over the whole scope: chains, dtypes, and plans with any legal splits and knobs.

The geometry of all convs is drawn first, then the size of the output, from which the input's size follows. (If the
input were drawn first, most chains of large kernels would not fit it, and mostly small kernels would be tested.) Sizes
are drawn from ever smaller ranges until a case is within the scope's multiply-adds and elements; kernels, strides and
dtypes stay as drawn.

One integer case in six has long sums instead: it adds up as many products as are accepted, or nearly, for a few
outputs.

One integer case in six for hvx that is left has a conv in groups of several channels (`hexconv.sweep.random_chains`).

One case in three of bytes for hvx that is left has few channels and wide rows.

One case in three for hvx is an answer of the search: a piece of the best cut of the chain, under its best plan.

Case i of seed S is the same in every sweep of a kernel, since each case has a generator of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain as one_after_another
from math import prod
from typing import Any, get_args

from hexconv.analyze.block_grid import blocks_of_plan, engine_packets
from hexconv.analyze.block_nest import BlockStripes
from hexconv.errors import Unsupported
from hexconv.kernel.tiles import BYTES
from hexconv.search.cuts import best_cuts
from hexconv.search.question import Question, in_bands, placed
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, tensor_extents
from hexconv.spec.chain import EDGE_LAYOUTS, IN_BLOCKS, PIXELS, EdgeLayout
from hexconv.spec.choices import Objective
from hexconv.spec.dtypes import INTEGER_RANGE, Dtype
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.kernels import Kernel, most_threads
from hexconv.spec.knobs import KNOBS, Arch, Halo, Order, acts
from hexconv.spec.places import MIXED, Caches, Storage
from hexconv.spec.plan import WITHOUT_ENGINE, WITHOUT_TAG
from hexconv.spec.strips import why_no_strips
from hexconv.sweep.random_chains import (
    EVERYTHING,
    SWEPT,
    Draw,
    Kind,
    Scope,
    Seeded,
    Skip,
    drawn_filter_dtype,
    drawn_skips,
    drawn_zero_point,
    few_channels,
    for_engine,
    geometries,
    grouped,
    input_axis,
    long_sums,
    shaped_for_engine,
    skipped,
    with_adds,
    with_filters,
    with_pools,
    with_requantisations,
)

ARCHS: tuple[Arch, ...] = get_args(Arch)
TAGGED = tuple(arch for arch in ARCHS if arch not in WITHOUT_TAG)
"""The architectures of which TVM knows how much VTCM they have."""
LEAST_VTCM_BYTES, DOUBLINGS = 1 << 18, 5
"""Where a plan states how much VTCM there is: from 256 KiB to 8 MiB."""
ORDERS_AND_HALOS: tuple[tuple[Order, Halo], ...] = (
    ("k_outer", "recompute"),
    ("h_outer", "recompute"),
    ("h_outer", "roll"),
    ("k_outer", "roll"),
)


def drawn_plan(draw: Draw, chain: Chain, kernel: Kernel, scope: Scope) -> Plan:
    """Draw a plan for a chain.

    Args:
        draw: the source of the draws.
        chain: the chain that is planned.
        kernel: the kernel that the plan asks for.
        scope: where caches may live, and which knobs are drawn.
    """
    outputs = tensor_extents(chain)[1:]
    knobs: dict[str, Any] = {"h_split": draw.size(max(output.row_blocks for output in outputs))}
    if acts("rows", kernel) and "rows" in scope.turned and draw.is_one_in(2):
        knobs = {"rows": _rows(draw, chain)}
    if acts("storage", kernel):
        knobs["storage"] = _storage(draw, scope)
        knobs |= _vtcm(draw, scope) if knobs["storage"] != "global" else {"arch": Plan.arch}
    if acts("halo", kernel):
        knobs["order"], knobs["halo"] = draw.one_of(*ORDERS_AND_HALOS)
    if acts("k_split", kernel):
        knobs["k_split"] = draw.size(max(output.channel_blocks for output in outputs))
    for name, knob in KNOBS.items():
        if knob.drawn and acts(name, kernel) and name in scope.turned:
            knobs[name] = draw.one_of(*knob.drawn)
    if kernel == "hmx" and knobs["arch"] in WITHOUT_ENGINE:
        knobs["arch"] = Plan.arch
    if acts("threads", kernel):
        knobs["threads"] = min(knobs.get("threads", 1), most_threads(knobs["arch"]))
    if acts("w_split", kernel) and "w_split" in scope.turned and draw.is_one_in(3):
        knobs |= _strip(draw, chain, keeps=(knobs["order"], knobs["halo"]) == ("h_outer", "roll"))
    return Plan(kernel=kernel, **knobs)


def _vtcm(draw: Draw, scope: Scope) -> dict[str, Any]:
    """Draw whose VTCM there is, and how much: where that isn't known, and in one case of four."""
    if "vtcm_bytes" not in scope.turned:
        return {"arch": draw.one_of(*TAGGED)}
    arch = draw.one_of(*ARCHS)
    is_stated = draw.is_one_in(4) or arch in WITHOUT_TAG
    return {"arch": arch, "vtcm_bytes": LEAST_VTCM_BYTES << draw.number(0, DOUBLINGS) if is_stated else None}


def _strip(draw: Draw, chain: Chain, keeps: bool) -> dict[str, Any]:
    """Blocks of columns of a strip, any where the chain can be computed in strips; and whether shared ones are kept.

    Args:
        draw: the source of the draws.
        chain: the chain that is planned.
        keeps: whether a plan may keep them.
    """
    w_split = draw.size(tensor_extents(chain)[-1].column_blocks)
    if why_no_strips(chain, w_split):
        return {}
    keeps = keeps and not why_no_strips(chain, w_split, "keep") and draw.is_one_in(2)
    return {"w_split": w_split, "column_halo": "keep" if keeps else "recompute"}


def _rows(draw: Draw, chain: Chain) -> int:
    """Rows of a stripe: any, where the output lies row by row."""
    rows = tensor_extents(chain)[-1].rows
    if chain.output_layout != IN_BLOCKS:
        return draw.size(rows)
    return draw.one_of(*(some for some in (1, 2, 4, ROW_BLOCK) if some <= rows))


def _storage(draw: Draw, scope: Scope) -> Storage:
    """Draw where caches lie: all outside of VTCM, all in it, or some of them in it."""
    mixed: list[Storage] = [storage for storage in scope.storages if storage in MIXED]
    if "global" in scope.storages and (len(scope.storages) == 1 or not draw.is_one_in(2 if mixed else 4)):
        return "global"
    if "vtcm" in scope.storages and (not mixed or draw.is_one_in(2)):
        return "vtcm"
    return draw.one_of(*mixed)


def executed_macs(case: Case) -> int:
    """Return the most multiply-adds that the fused nest executes.

    Every step of a conv runs all steps of the conv before it, so work multiplies on the way to the input. Rows count in
    whole blocks, columns and channels as far as they are logical.

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> one_conv = 64 * 64 * 128 * 128
    >>> executed_macs(Case("baseline", chain, Plan())) / one_conv
    5.0
    >>> executed_macs(Case("split", chain, Plan(k_split=2, h_split=2))) / one_conv
    3.0
    """
    plan = case.settled
    stripes = BlockStripes(case.chain, (plan.h_split,))  # as if none rolled
    slabs = [*stripes.slabs[1:-1, 0].tolist(), stripes.stored[-1]]
    total, times = 0, stripes.extents[-1].batch
    for index in reversed(range(len(slabs))):
        output = stripes.extents[index + 1]
        row_macs = min(output.columns, output.logical_columns) * prod(case.chain.filter_shapes[index])
        total += times * slabs[index] * ROW_BLOCK * row_macs
        times *= -(-output.channel_blocks // plan.k_split) * int(stripes.row_steps[index, 0])
    return total


FEW_INPUTS = (3, 1, 2, 4, 5, 6, 8, 10, 16)
"""Channels of an input whose croutons hold several taps of a kernel, where these are small enough."""
LARGEST_MULTIPLIER = 2
"""The most output channels that a depthwise conv gets for each input channel."""
OF_INTEGERS: tuple[Kernel, ...] = ("plain", "plain", "hvx")
SERVES: dict[Dtype, tuple[Kernel, ...]] = {
    "float32": ("plain",),
    "float16": ("plain",),
    "uint8": (*OF_INTEGERS, "hmx"),
    "int8": (*OF_INTEGERS, "hmx"),
}
UNSERVED: dict[Kernel, int] = {"plain": 12, "hvx": 4, "hmx": 24}
"""For each kernel, in one of how many chains something is drawn that it can't serve; for hvx, in some convs only."""
SIZE_SCALES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.0)
"""The shares of the largest sizes to draw from, one after the other; the last allows nothing but sizes of one."""


def random_case(seed: int, index: int, kernel: Kernel | None = None) -> Case:
    """Draw case `index` of `seed`, named `random-SEED-INDEX`: of any kernel but the matrix engine, or of one kernel."""
    draw = Seeded(seed, index)
    if kernel:
        return drawn_case(draw, SWEPT[kernel], f"random-{kernel}-{seed}-{index}")
    case = drawn_case(draw, EVERYTHING, f"random-{seed}-{index}")
    return answered(draw, case, EVERYTHING) if case.plan.kernel == "hvx" and draw.is_one_in(3) else case


LEAST_LIMIT_BYTES = 1 << 13
SPEEDS = (0.5, 8.0, 64.0)
"""Bytes that copies move in the time of a packet: slow memory, usual memory, and memory that hardly counts."""


def answered(draw: Draw, case: Case, scope: Scope) -> Case:
    """Return a piece of the best cut of a chain under its best plan, for any limit, objective and place of caches.

    The same case where nothing fits, or where the plan recomputes more than the scope allows.
    """
    question = Question(
        vtcm_bytes=draw.number(1, 1 << draw.number(0, DOUBLINGS + 2)) * LEAST_LIMIT_BYTES,
        objective=draw.one_of(*get_args(Objective)),
        plan=in_bands(case.plan.threads, "hvx"),
        target="hexagon",
        caches=draw.one_of(*get_args(Caches)),
        bytes_per_packet=draw.one_of(*SPEEDS),
    )
    try:
        cut = best_cuts(case.chain, question).best
    except Unsupported:
        return case
    if cut is None:
        return case
    piece = draw.one_of(*cut.pieces)
    found = Case(case.name, piece.chain, placed(piece.figures.plan, piece.figures.footprint_bytes))
    return found if _is_within(found, scope) else case


def drawn_case(draw: Draw, scope: Scope, name: str) -> Case:
    """Draw a case within a scope.

    Args:
        draw: the source of random draws.
        scope: the largest numbers to draw.
        name: the name of the case.
    """
    kind = _kind(draw, scope)
    is_long = draw.is_one_in(6 if kind.dtype in INTEGER_RANGE else 24)
    long = long_sums(draw, kind) if is_long else ()
    for drawn in one_after_another(long, _chains(draw, kind, scope)):
        smaller = for_engine(draw, drawn, scope) if kind.kernel == "hmx" and kind.is_served else drawn
        case = Case(name, smaller, drawn_plan(draw, smaller, kind.kernel, scope))
        if _is_within(case, scope):
            return case
    raise AssertionError(f"the smallest chain is within no scope: {scope}")


def _chains(draw: Draw, kind: Kind, scope: Scope) -> Iterator[Chain]:
    """Yield ever smaller chains; some have few channels, some of those for hvx wide rows too, or convs in groups."""
    if kind.kernel == "hvx" and kind.is_served and draw.is_one_in(6):
        yield from grouped(draw, kind, scope)
    if kind.kernel == "hvx" and kind.dtype in BYTES and kind.is_served and draw.is_one_in(3):
        yield from few_channels(draw, kind)
    has_few = kind.kernel == "hmx" and kind.is_served and draw.is_one_in(3)
    yield from _ever_smaller(draw, kind, scope, draw.one_of(*FEW_INPUTS) if has_few else None)


def _is_within(case: Case, scope: Scope) -> bool:
    """Whether a case takes no more work and memory than the scope allows."""
    if executed_macs(case) > scope.macs or prod(case.chain.input) > scope.elements:
        return False
    if case.settled.kernel != "hmx":
        return True
    return engine_packets(blocks_of_plan(case.chain, case.settled)).of_one.taps <= scope.taps


def _kind(draw: Draw, scope: Scope) -> Kind:
    """Draw a dtype, and a kernel that serves chains of it: hvx for one integer chain in three."""
    dtype: Dtype = draw.one_of(*scope.dtypes)
    kernels: list[Kernel] = [kernel for kernel in SERVES.get(dtype, OF_INTEGERS) if kernel in scope.kernels]
    kernel = kernels[draw.number(0, len(kernels) - 1)] if kernels else OF_INTEGERS[0]
    return Kind(dtype, drawn_filter_dtype(draw, dtype), kernel, is_served=not draw.is_one_in(UNSERVED[kernel]))


def _ever_smaller(draw: Draw, kind: Kind, scope: Scope, inputs: int | None) -> Iterator[Chain]:
    """Yield chains of one geometry with sizes from ever smaller ranges, then with ever fewer convs, all sizes one.

    The last is the last conv without its padding, of which alone an output may have more rows than a scope allows. A
    stated number of input channels stays, those of the first conv.
    """
    convs = geometries(draw, draw.number(1, scope.convs))
    convs = shaped_for_engine(convs, scope) if kind.kernel == "hmx" and kind.is_served else convs
    skips = drawn_skips(draw, len(convs)) if kind.kernel != "hmx" and kind.dtype != "int16" else []
    convs = skipped(draw, convs, skips)
    for scale in SIZE_SCALES:
        yield _chain(draw, kind, scope, convs, scale, skips, inputs)
    for first in range(1, len(convs)):
        yield _chain(draw, kind, scope, convs[first:], 0.0)
    yield _chain(draw, kind, scope, [replace(convs[-1], padding=Padding())], 0.0)


def _chain(
    draw: Draw,
    kind: Kind,
    scope: Scope,
    geometry: Sequence[Conv2d],
    scale: float,
    skips: Sequence[Skip] = (),
    inputs: int | None = None,
) -> Chain:
    """Draw the sizes of a chain of given geometry, in which later convs add some tensors."""
    most = max(1, round(scope.channels * scale))
    channels = [_size(draw, most, CHANNEL_BLOCK) for _ in range(len(geometry) + 1)]
    channels[0] = inputs or channels[0]
    convs = []
    for index, conv in enumerate(geometry):
        if index or not inputs:
            groups, channels[index + 1] = _groups(draw, *channels[index : index + 2])
        else:
            groups = 1
        for wanted in (channels[tensor] for tensor, last in skips if last == index):
            groups, channels[index + 1] = groups if wanted % groups == 0 else 1, wanted
        convs.append(replace(conv, out_channels=channels[index + 1], groups=groups))
    # In one case of eight the output is 1x1; with padding, inputs then get as small as 1x1.
    most = 1 if draw.is_one_in(8) else max(1, round(scope.output * scale))
    height, width = (input_axis(draw, convs, axis, _size(draw, most, ROW_BLOCK)) for axis in (0, 1))
    convs = [with_filters(draw, kind, conv) for conv in convs]
    chain = Chain(
        input=(draw.number(1, scope.batch), height, width, channels[0]),
        dtype=kind.dtype,
        filter_dtype=kind.filter_dtype,
        zero_point=drawn_zero_point(draw, kind.dtype),
        input_layout=_edge_layout(draw, PIXELS),
        output_layout=_edge_layout(draw, IN_BLOCKS),
        conv=with_requantisations(draw, kind, convs, channels),
    )
    return with_adds(draw, with_pools(draw, chain) if kind.kernel == "plain" else chain, skips)


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
