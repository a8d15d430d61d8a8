"""Random integer chains, of every kind that the HVX kernels serve."""

from dataclasses import replace
from math import log2, prod
from typing import Literal

from hypothesis import assume
from hypothesis import strategies as st

from hexconv.compute.computable import check_supported
from hexconv.errors import HexconvError, InputError
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, kernel_of, tensor_extents
from hexconv.spec.dtypes import ZERO_POINTS
from hexconv.spec.knobs import Halo, Order
from hexconv.spec.requantize import Rounding

Dtypes = tuple[Literal["uint8", "int8", "int16"], Literal["uint8", "int8", "int16"]]

BYTES: tuple[Dtypes, ...] = (("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"), ("int8", "uint8"))
HALFWORDS: tuple[Dtypes, ...] = (("int16", "int8"), ("int16", "int16"))
ORDERS_AND_HALOS: tuple[tuple[Order, Halo], ...] = (
    ("k_outer", "recompute"),
    ("h_outer", "recompute"),
    ("h_outer", "roll"),
    ("k_outer", "roll"),
)
ROUNDINGS: tuple[Rounding, ...] = ("up", "away", "even", "even")
MOST_BLOCKS = 1 << 10
LARGEST_L1 = 65535  # whose sums over int16 an int32 holds


@st.composite
def integer_chains(draw: st.DrawFn, dtypes: tuple[Dtypes, ...] = BYTES + HALFWORDS, largest: int = 14) -> Chain:
    """Channels that do and don't fill blocks, strides, dilations, paddings, zero points, biases, of some dtypes."""
    dtype, filter_dtype = draw(st.sampled_from(dtypes))
    zero_points, filter_zero_points = _zero_points(dtype), _zero_points(filter_dtype)
    rows, columns = draw(st.integers(3, largest)), draw(st.integers(3, largest))
    channels = draw(st.sampled_from([1, 3, 4, 8, 12, 32, 64, 100, 128, 160]))
    image, convs = (draw(st.sampled_from([1, 1, 2])), rows, columns, channels), []
    for last in draw(st.sampled_from([[True], [False, True], [False, True], [False, False, True]])):
        conv = _conv(draw, channels, zero_points, filter_zero_points, last)
        convs.append(replace(conv, filter_l1=draw(st.integers(1000, LARGEST_L1))) if dtype == "int16" else conv)
        channels = convs[-1].out_channels
    try:
        zero_point = draw(zero_points)
        chain = Chain(input=image, dtype=dtype, filter_dtype=filter_dtype, zero_point=zero_point, conv=tuple(convs))
        check_supported(chain)
    except HexconvError:
        assume(False)
    return chain


@st.composite
def hvx_cases(draw: st.DrawFn, dtypes: tuple[Dtypes, ...] = BYTES + HALFWORDS, largest: int = 26) -> Case:
    """Any integer chain under any plan."""
    return draw(planned(draw(integer_chains(dtypes, largest))))


@st.composite
def planned(draw: st.DrawFn, chain: Chain, most_h: int = MOST_BLOCKS) -> Case:
    """A chain under any plan of the HVX kernels, of steps of at most `most_h` blocks of rows."""
    outputs = tensor_extents(chain)[1:]
    order, halo = draw(st.sampled_from(ORDERS_AND_HALOS))
    plan = Plan(
        kernel="hvx",
        k_split=draw(st.integers(1, max(extents.channel_blocks for extents in outputs))),
        h_split=draw(st.integers(1, min(most_h, max(extents.row_blocks for extents in outputs)))),
        order=order,
        halo=halo,
        filters=draw(st.sampled_from(["per_tile", "resident"])),
        buffering=draw(st.sampled_from(["single", "double"])),
        storage=draw(st.sampled_from(["global", "vtcm"])),
    )
    assume(kernel_of(chain, plan) == "hvx")
    try:
        return Case("random", chain, plan)
    except InputError:
        assume(False)
        raise


def _zero_points(dtype: str) -> st.SearchStrategy[int]:
    return st.one_of(st.just(0), st.integers(*ZERO_POINTS[dtype]))


def _conv(
    draw: st.DrawFn,
    channels: int,
    zero_points: st.SearchStrategy[int],
    filter_zero_points: st.SearchStrategy[int],
    last: bool,
) -> Conv2d:
    kernel = draw(st.sampled_from([(1, 1), (1, 1), (3, 3), (1, 3), (5, 1)]))
    sides = draw(st.tuples(*[st.integers(0, 2)] * 4)) if draw(st.booleans()) else (0, 0, 0, 0)
    requantize = _requantize(draw, channels * prod(kernel), zero_points)
    return Conv2d(
        out_channels=draw(st.sampled_from([3, 16, 32, 40, 64, 96, 128, 160, 200])),
        kernel=kernel,
        stride=draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2)])),
        dilation=draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (1, 2)])),
        padding=Padding(top=sides[0], left=sides[1], bottom=sides[2], right=sides[3]),
        bias=draw(st.booleans()),
        filter_zero_point=draw(filter_zero_points),
        requantize=None if last and draw(st.integers(0, 4)) == 0 else requantize,
    )


def _requantize(draw: st.DrawFn, fan_in: int, zero_points: st.SearchStrategy[int]) -> Requantize:
    """Multiplier and shift that bring typical sums to typical bytes."""
    bits = max(1, int(log2(fan_in)) + 4 + draw(st.integers(-1, 1)))
    second = min(draw(st.integers(0, 7)), bits - 1)
    multiplier, shift = draw(
        st.sampled_from([(1 << (31 - (bits - second)), -second), (1 << 30, 1 - bits), (0x5A7B3C1D, -bits)])
    )
    rounding = draw(st.sampled_from(ROUNDINGS))
    how = Requantize(multiplier=multiplier, shift=shift, zero_point=draw(zero_points), rounding=rounding)
    places = draw(st.integers(0, 3)) - shift
    return replace(how, fraction_bits=places) if rounding == "even" and places > 0 and draw(st.booleans()) else how
