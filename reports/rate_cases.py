"""The cases that the rates of the latency model are fitted to and compared with.

Each kind has a stream of its own: convs that scalar code serves beside HVX kernels, depthwise convs and images tall
enough for their tiles to go down, and chains of few channels, whose lanes are pixels.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle, filterfalse, tee
from math import log2, prod

from hexconv.analyze import needed_macs
from hexconv.analyze.fit import vtcm_fit
from hexconv.compute.computable import check_supported
from hexconv.errors import HexconvError
from hexconv.kernel.depthwise import goes_down
from hexconv.search import Space
from hexconv.search.space import kinds_of_strips
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.dtypes import INTEGER_RANGE, ZERO_POINTS, Dtype
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.sweep.random_case import drawn_case, drawn_plan
from hexconv.sweep.random_chains import Draw, Scope, Seeded
from reports.network_shapes import LEAST_SIZE, chains_of, conv, small

OF_BYTES: tuple[Dtype, ...] = ("uint8", "int8")
IN_THE_NEST = Scope(dtypes=OF_BYTES, kernels=("hvx",), storages=("global", "vtcm"), turned=("filters", "buffering"))
LARGEST_L1 = 60000  # the largest L1 norm of filters over int16: an int32 holds all of their sums
FEW_MACS = 60_000_000  # the most MACs of a network's chain, after its image is cut
MOST_MACS = 300_000_000  # the most MACs of a drawn case: some seconds on the simulator
HVX = Plan(kernel="hvx")
PLAIN = Plan(kernel="plain")
LEAST = replace(PLAIN, k_split=2, h_split=2, order="h_outer", halo="roll", filters="resident")
PLANS = (PLAIN, replace(PLAIN, order="h_outer"), replace(PLAIN, filters="resident"), LEAST)
DTYPES: tuple[tuple[Dtype, Dtype], ...] = (
    ("uint8", "uint8"),
    ("uint8", "uint8"),
    ("uint8", "uint8"),
    ("uint8", "uint8"),
    ("uint8", "int8"),
    ("int8", "int8"),
    ("int16", "int8"),
    ("int16", "int16"),
)
DTYPES_OF_BYTES = tuple(pair for pair in DTYPES if pair[0] in OF_BYTES)


def plain_cases(dtype: Dtype) -> Iterator[Case]:
    """20 cases of the plain kernels, from mostly copying to mostly multiplying."""
    requantize = Requantize(multiplier=1 << 30, shift=-7) if dtype in INTEGER_RANGE else None
    filter_l1 = LARGEST_L1 if dtype == "int16" else None
    for channels, kernel, plan in ((c, k, p) for c in (1, 32, 64) for k in (1, 3) for p in (PLAIN, LEAST)):
        conv = Conv2d(out_channels=channels, kernel=(kernel, kernel), requantize=requantize, filter_l1=filter_l1)
        yield _case(Chain(input=(1, 26, 26, 64), dtype=dtype, conv=(conv,)), plan)
    for kernel, plan in ((k, p) for k in (1, 3) for p in PLANS):
        conv = Conv2d(out_channels=64, kernel=(kernel, kernel), requantize=requantize, filter_l1=filter_l1)
        yield _case(Chain(input=(1, 20, 20, 64), dtype=dtype, conv=(conv, conv)), plan)


def _case(chain: Chain, plan: Plan) -> Case:
    """Return a case with no split larger than the chain has blocks."""
    channels = -(-max(conv.out_channels for conv in chain.conv) // 32)
    return Case("rates", chain, replace(plan, k_split=min(plan.k_split, channels)))


def hvx_cases(seed: int) -> Iterator[Case]:
    """An endless stream of cases of HVX kernels: few and many channels, any dtype, padding, strides and zero points."""
    draw = random.Random(seed)
    while True:
        try:
            case = _hvx_case(draw)
            check_supported(case.chain)
        except HexconvError:
            continue
        if case.settled.kernel == "hvx" and needed_macs(case.chain) <= MOST_MACS:
            yield case


def nest_cases(seed: int) -> Iterator[Case]:
    """Yield an endless stream of cases of HVX kernels in the planned nest.

    By turns it yields a chain as in `hvx_cases`, one of the sweep's, one of ResNet-50, and one like a network's. Half
    of the plans are drawn from all plans of the chain, the others as the sweep draws them.
    """
    above = (case.chain for case in hvx_cases(seed) if case.chain.dtype in OF_BYTES)
    of_network = cycle(small(chain, FEW_MACS) for chain in chains_of("resnet50").values())
    by_turns: tuple[Callable[[Draw], Chain], ...] = (
        lambda _: next(above),
        lambda draw: drawn_case(draw, IN_THE_NEST, "drawn").chain,
        lambda _: next(of_network),
        lambda draw: small(_like_a_network(draw), FEW_MACS),
    )
    for number in count():
        draw = Seeded(seed, number)
        chain = by_turns[number % len(by_turns)](draw)
        space, is_any = Space.of(chain, HVX), draw.is_one_in(2)
        plan = space.plan(draw.number(0, space.size - 1)) if is_any else drawn_plan(draw, chain, "hvx", IN_THE_NEST)
        case = Case("drawn", chain, plan)
        if {choice.used for choice in case.kernels} == {"hvx"} and (is_any or vtcm_fit(chain, case.settled).fits):
            yield case


def sweep_cases(seed: int) -> Iterator[Case]:
    """An endless stream of the sweep's chains, each under any of its plans: few channels, groups, large kernels."""
    for number in count():
        draw = Seeded(seed, 1, number)
        chain = drawn_case(draw, IN_THE_NEST, "drawn").chain
        space = Space.of(chain, HVX)
        case = Case("drawn", chain, space.plan(draw.number(0, space.size - 1)))
        if {choice.used for choice in case.kernels} == {"hvx"}:
            yield case


def _like_a_network(draw: Draw) -> Chain:
    """One to three convs over the image that a network begins with, or over a smaller one of more channels."""
    dtype, filters = draw.one_of(*DTYPES_OF_BYTES)
    is_first, convs = draw.is_one_in(5), []
    level = 0 if is_first else draw.number(0, 4)
    for _ in range(draw.number(1, 3)):
        kernel = draw.one_of(1, 3, 3, 5 if is_first else 3, 7 if is_first else 1)
        channels = CHANNEL_BLOCK * draw.number(1, 2 << level) if draw.is_one_in(3) else 64 << level
        convs.append(conv(min(channels, 512), kernel, draw.one_of(1, 1, 1, 2)))
    side = draw.number(24, 112) >> (0 if is_first else level)
    channels = draw.number(1, 4) if is_first else CHANNEL_BLOCK * draw.one_of(1 << level, 2 << level)
    return Chain(
        input=(1, max(side, LEAST_SIZE), max(side, LEAST_SIZE), min(channels, 512)),
        dtype=dtype,
        filter_dtype=filters,
        zero_point=draw.one_of(0, 0, 114) if dtype == "uint8" else 0,
        conv=tuple(convs),
    )


def mixed_cases(seed: int) -> Iterator[Case]:
    """An endless stream of cases in the nest of HVX kernels; scalar code serves one conv of each, some depthwise."""
    draw = random.Random(seed)
    while True:
        try:
            chain = _mixed(draw, _hvx_case(draw).chain)
            check_supported(chain)
        except HexconvError:
            continue
        plan = drawn_plan(Seeded(seed, draw.randrange(1 << 30)), chain, "hvx", IN_THE_NEST)
        case = Case("drawn", chain, plan)
        is_mixed = {choice.used for choice in case.kernels} == {"hvx", "plain"}
        if is_mixed and needed_macs(chain) <= FEW_MACS and vtcm_fit(chain, case.settled).fits:
            yield case


def _mixed(draw: random.Random, chain: Chain) -> Chain:
    """A chain of bytes gets one conv whose results are shifted to the left, which HVX kernels don't do."""
    index = draw.randrange(len(chain.conv))
    conv, inputs = chain.conv[index], chain.shapes[index][3]
    if chain.dtype not in OF_BYTES or not conv.requantize:
        return chain
    multiplier = draw.choice((1 << 30, 0x5A7B3C1D, 1 << 20))
    conv = replace(conv, requantize=replace(conv.requantize, multiplier=multiplier, shift=draw.choice((1, 2))))
    if index and draw.random() < 1 / 4:
        conv = replace(conv, groups=inputs, out_channels=inputs)
    return replace(chain, conv=(*chain.conv[:index], conv, *chain.conv[index + 1 :]))


def _hvx_case(draw: random.Random) -> Case:
    """Draw a case of one to three convs."""
    dtype, filter_dtype = draw.choice(DTYPES)
    convs_of_chain, channels = draw.choice((1, 1, 2, 2, 3)), draw.choice((1, 3, 4, 8, 16, 32, 32, 64, 100, 128, 256))
    rows, columns, convs, source = draw.randint(6, 36), draw.randint(6, 36), [], channels
    for index in range(convs_of_chain):
        is_last = index == convs_of_chain - 1
        convs.append(_conv(draw, dtype, filter_dtype, source, is_last))
        source = convs[-1].out_channels
    chain = Chain(
        input=(draw.choice((1, 1, 1, 2)), rows, columns, channels),
        dtype=dtype,
        filter_dtype=filter_dtype,
        zero_point=draw.choice((0, 0, 0, 5)) if dtype != "int16" else 0,
        conv=tuple(convs),
    )
    return Case("drawn", chain, Plan(kernel="hvx", h_split=draw.randint(1, tensor_extents(chain)[-1].row_blocks)))


def _conv(draw: random.Random, dtype: Dtype, filter_dtype: Dtype, channels: int, is_last: bool) -> Conv2d:
    """Draw a conv."""
    kernel = draw.choice([(1, 1), (1, 1), (3, 3), (3, 3), (1, 3), (5, 1), (5, 5)])
    same = (kernel[0] // 2, kernel[1] // 2) * draw.choice((0, 1))
    out_channels = draw.choice((3, 8, 16, 32, 40, 64, 64, 96, 128, 128, 160, 256))
    bits = max(1, int(log2(channels * prod(kernel))) + 4)
    multiplier, shift = draw.choice([(1 << 30, 1 - bits), (0x5A7B3C1D, -bits), (1 << 28, min(0, 3 - bits))])
    requantize = Requantize(
        multiplier=multiplier,
        shift=shift,
        zero_point=_zero_point(draw, dtype),
        rounding=draw.choice(("away", "up")),
    )
    return Conv2d(
        out_channels=out_channels,
        kernel=kernel,
        stride=draw.choice([(1, 1)] * 3 + [(2, 2)]),
        dilation=draw.choice([(1, 1)] * 4 + [(2, 2)]),
        padding=Padding(**dict(zip(("top", "left", "bottom", "right"), same * 2, strict=False))),
        bias=draw.random() < 0.4,
        filter_zero_point=_zero_point(draw, filter_dtype),
        requantize=None if is_last and draw.random() < 0.15 else requantize,
        filter_l1=LARGEST_L1 if dtype == "int16" else None,
    )


def _zero_point(draw: random.Random, dtype: Dtype) -> int:
    """Draw a zero point, which is 0 twice out of three times."""
    return draw.randint(*ZERO_POINTS.get(dtype, (0, 0))) if draw.random() < 1 / 3 else 0


DEPTHWISE_MACS = 4_000_000  # the most needed MACs of a depthwise chain: its instructions do fewer MACs than others
SCALAR, DEPTHWISE, FEW, GROUPED, DENSE, STRIPS = 2, 3, 4, 5, 6, 7
"""The second number of each stream's seed."""


def scalar_cases(seed: int) -> Iterator[Case]:
    """An endless stream of the sweep's chains in the nest of HVX kernels, some convs of which scalar code serves."""
    drawn = _planned(seed, SCALAR, lambda draw: drawn_case(draw, IN_THE_NEST, "drawn").chain)
    return (case for case in drawn if {choice.used for choice in case.kernels} == {"hvx", "plain"})


def depthwise_cases(seed: int) -> Iterator[Case]:
    """An endless stream of depthwise convs, alone or beside convs of 1x1; by turns their tiles go down the image."""
    down, along = tee(_only_hvx(_planned(seed, DEPTHWISE, lambda draw: small(_depthwise(draw), DEPTHWISE_MACS))))
    for pair in zip(filter(_goes_down, down), filterfalse(_goes_down, along), strict=True):
        yield from pair


def few_channel_cases(seed: int) -> Iterator[Case]:
    """An endless stream of chains of few channels over wide images, as networks of super-resolution have them."""
    return _only_hvx(_planned(seed, FEW, lambda draw: small(_few_channels(draw), FEW_MACS)))


def grouped_cases(seed: int) -> Iterator[Case]:
    """An endless stream of convs of groups of 4 or 8 channels, alone or beside convs of 1x1."""
    return _only_hvx(_planned(seed, GROUPED, lambda draw: small(_grouped(draw), DEPTHWISE_MACS)))


def dense_cases(seed: int) -> Iterator[Case]:
    """An endless stream of chains that begin as networks do: with 1 to 3 channels, under many filters."""
    return _only_hvx(_planned(seed, DENSE, lambda draw: small(_first_of_network(draw), FEW_MACS // 4)))


def strip_cases(seed: int) -> Iterator[Case]:
    """An endless stream of depthwise convs and of few channels by turns, in strips of columns."""

    def drawn(draw: Draw) -> Chain:
        return small(draw.one_of(_depthwise, _few_channels)(draw), DEPTHWISE_MACS)

    return _only_hvx(_planned(seed, STRIPS, drawn, in_strips=True))


def _planned(seed: int, kind: int, drawn: Callable[[Draw], Chain], in_strips: bool = False) -> Iterator[Case]:
    """Yield chains, each under any of its plans of whole rows, or of strips."""
    for number in count():
        draw = Seeded(seed, kind, number)
        try:
            chain = drawn(draw)
            check_supported(chain)
        except HexconvError:
            continue
        space = Space.of(chain, HVX)
        space = replace(space, strips=kinds_of_strips(chain, "hvx")) if in_strips else space
        if not space.size:
            continue
        case = Case("drawn", chain, space.plan(draw.number(0, space.size - 1)))
        if needed_macs(chain) <= FEW_MACS and vtcm_fit(chain, case.settled).fits:
            yield case


def _goes_down(case: Case) -> bool:
    return any(goes_down(case.chain, case.settled, index) for index in range(len(case.chain.conv)))


def _only_hvx(cases: Iterator[Case]) -> Iterator[Case]:
    return (case for case in cases if {choice.used for choice in case.kernels} == {"hvx"})


def _depthwise(draw: Draw) -> Chain:
    """One to three convs of which one is depthwise; the image is tall in one chain of two."""
    channels = draw.one_of(8, 16, 24, 32, 40, 64, 96, 144)
    depthwise = _spatial(draw, channels, groups=channels, kernel=draw.one_of(3, 3, 3, 5, 5, 7))
    before = [conv(channels, 1)] if draw.is_one_in(3) else []
    behind = [conv(draw.one_of(16, 24, 32, 64, 96), 1)] if draw.is_one_in(3) else []
    rows = draw.number(40, 120) if draw.is_one_in(2) else draw.number(8, 40)
    inputs = draw.one_of(8, 16, 32, 64) if before else channels
    return _chain(draw, (rows, draw.number(8, 60), inputs), *before, depthwise, *behind)


def _grouped(draw: Draw) -> Chain:
    """One to three convs of which one has groups of 4 or 8 channels, in some chains as many as fill no vector."""
    groups, inside = draw.number(2, 24), draw.one_of(4, 8)
    channels = groups * inside
    grouped = _spatial(draw, channels, groups=groups, kernel=draw.one_of(1, 2, 3, 3, 3, 5))
    before = [conv(channels, 1)] if draw.is_one_in(3) else []
    behind = [conv(draw.one_of(16, 24, 32, 64, 96), 1)] if draw.is_one_in(3) else []
    inputs = draw.one_of(8, 21, 32, 64) if before else channels
    return _chain(draw, (draw.number(4, 40), draw.number(4, 50), inputs), *before, grouped, *behind)


def _first_of_network(draw: Draw) -> Chain:
    """A conv of 1 to 3 channels, and perhaps one behind it."""
    first = _spatial(draw, draw.one_of(24, 32, 48, 56, 64, 96, 128), 1, draw.one_of(3, 3, 5, 7))
    behind = [conv(draw.one_of(16, 32, 64), draw.one_of(1, 3))] if draw.is_one_in(3) else []
    return _chain(draw, (draw.number(10, 64), draw.number(34, 112), draw.one_of(1, 2, 3, 3)), first, *behind)


def _few_channels(draw: Draw) -> Chain:
    """One to five convs of few channels; most keep the image's size."""
    convs = []
    for _ in range(draw.number(1, 5)):
        channels = draw.one_of(draw.number(1, 8), draw.number(4, 28), 12, 16, 32, 48, 56)
        convs.append(_spatial(draw, channels, 1, draw.one_of(1, 3, 3, 5)))
    inputs = draw.one_of(1, 1, 3, 3, draw.number(2, 28), draw.number(2, 28))
    return _chain(draw, (draw.number(10, 48), draw.number(20, 130), inputs), *convs)


def _spatial(draw: Draw, channels: int, groups: int, kernel: int) -> Conv2d:
    """Return a conv whose stride, dilation, padding and requantisation are drawn."""
    stride, dilation = draw.one_of((1, 1), (1, 1), (1, 1), (2, 2)), draw.one_of((1, 1), (1, 1), (1, 1), (1, 1), (1, 2))
    sides = [reach // 2 for reach in ((kernel - 1) * each + 1 for each in dilation)] if draw.number(0, 3) else [0, 0]
    return Conv2d(
        out_channels=channels,
        kernel=(kernel, kernel),
        stride=stride,
        dilation=dilation,
        groups=groups,
        padding=Padding(top=sides[0], left=sides[1], bottom=sides[0], right=sides[1]),
        bias=draw.is_one_in(2),
        requantize=_requantize(draw),
    )


def _requantize(draw: Draw) -> Requantize:
    multiplier, shift = draw.one_of((1 << 30, -6), (0x5A7B3C1D, -8), (0x5A7B3C1D, -8), (1 << 28, -4))
    return Requantize(multiplier=multiplier, shift=shift, rounding=draw.one_of("away", "up", "up", "even"))


def _chain(draw: Draw, size: tuple[int, int, int], *convs: Conv2d) -> Chain:
    dtype: Dtype = draw.one_of(*OF_BYTES)
    return Chain(
        input=(1, *size),
        dtype=dtype,
        filter_dtype=draw.one_of("int8", "uint8", "int8"),
        zero_point=draw.one_of(0, 0, 114) if dtype == "uint8" else 0,
        conv=convs,
    )
