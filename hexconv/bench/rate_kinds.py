"""Drawn cases of code that few of `hexconv.bench.rate_cases` hold, for the prices of the parts of that code.

Each kind has a stream of its own: convs that scalar code serves beside HVX kernels, depthwise convs and images tall
enough for their tiles to go down, and chains of few channels, whose lanes are pixels.
"""

from collections.abc import Callable, Iterator
from itertools import count, filterfalse, tee

from hexconv.analyze import needed_macs
from hexconv.analyze.fit import vtcm_fit
from hexconv.bench.networks import conv, small
from hexconv.bench.rate_cases import FEW_MACS, HVX, IN_THE_NEST, OF_BYTES
from hexconv.compute.limits import check_supported
from hexconv.errors import HexconvError
from hexconv.kernel.depthwise import goes_down
from hexconv.search import Space
from hexconv.spec import Case, Chain, Conv2d, Padding, Requantize
from hexconv.spec.dtypes import Dtype
from hexconv.sweep.draw import Draw, Seeded
from hexconv.sweep.random_case import drawn_case

DEPTHWISE_MACS = 4_000_000  # the most needed MACs of a depthwise chain: its instructions do fewer MACs than others
SCALAR, DEPTHWISE, FEW = 2, 3, 4
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


def _planned(seed: int, kind: int, drawn: Callable[[Draw], Chain]) -> Iterator[Case]:
    """Yield chains, each under any of its plans."""
    for number in count():
        draw = Seeded(seed, kind, number)
        try:
            chain = drawn(draw)
            check_supported(chain)
        except HexconvError:
            continue
        space = Space.of(chain, HVX)
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
