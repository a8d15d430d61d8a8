"""Chains and cases over the whole scope, with small shapes; they shrink towards one 1x1 conv of one element."""

from dataclasses import replace
from math import gcd

from hypothesis import strategies as st

from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.chain import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS

MOST_CONVS = 4
LARGEST_INPUT = 40  # rows or columns: a chain gets no further conv in front once its input is as large
ORDERS_AND_HALOS = (("k_outer", "recompute"), ("h_outer", "recompute"), ("h_outer", "roll"))
DTYPES = ("float32", "float16", "int8", "uint8", "int16")


def pairs(largest: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(1, largest), st.integers(1, largest))


@st.composite
def geometries(draw: st.DrawFn) -> Conv2d:
    """Kernel, stride, dilation and padding; one output channel."""
    conv = Conv2d(out_channels=1, kernel=draw(pairs(7)), stride=draw(pairs(3)), dilation=draw(pairs(3)))
    rows, columns = conv.reach
    sides = (draw(st.integers(0, most)) for most in (rows, columns, rows, columns))
    return replace(conv, padding=Padding(**dict(zip(("top", "left", "bottom", "right"), sides, strict=True))))


CHANNELS = st.one_of(st.integers(1, 8), st.sampled_from((32, 64)), st.integers(9, 100))
"""One block or more, whole or not."""


def zero_points(dtype: str) -> st.SearchStrategy[int]:
    return st.integers(*ZERO_POINTS.get(dtype, (0, 0)))


@st.composite
def requantisations(draw: st.DrawFn, dtype: str) -> Requantize:
    """Scales that leave something of the sums, and any other."""
    shift = draw(st.one_of(st.integers(-12, -4), st.integers(-31, 30)))
    return Requantize(
        multiplier=draw(st.integers(1, 2**31 - 1)),
        shift=shift,
        zero_point=draw(zero_points(dtype)),
        rounding=draw(st.sampled_from(("away", "up"))),
    )


@st.composite
def chains(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES, channels: st.SearchStrategy[int] = CHANNELS) -> Chain:
    dtype = draw(st.sampled_from(dtypes))
    filter_dtype = draw(st.sampled_from((None, *FILTER_DTYPES.get(dtype, ()))))
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    convs: list[Conv2d] = []
    for _ in range(draw(st.integers(1, MOST_CONVS))):
        conv = draw(geometries())
        convs.insert(0, conv)
        height, width = (needed_input(conv, axis, size) for axis, size in ((0, height), (1, width)))
        if max(height, width) > LARGEST_INPUT:
            break
    counts = [draw(channels)]
    finished = []
    for conv in convs:
        conv = draw(with_arithmetic(dtype, filter_dtype or dtype, conv, channels, conv is convs[-1]))
        finished.append(in_groups(conv, counts[-1], draw(st.sampled_from(("one", "one", "some", "depthwise")))))
        counts.append(finished[-1].out_channels)
    image = (draw(st.integers(1, 4)), height, width, counts[0])
    zero_point = draw(zero_points(dtype))
    return Chain(input=image, dtype=dtype, filter_dtype=filter_dtype, zero_point=zero_point, conv=tuple(finished))


def in_groups(conv: Conv2d, inputs: int, style: str) -> Conv2d:
    """In one group, in the most that both numbers of channels allow, or in one per input channel."""
    groups = {"one": 1, "some": gcd(inputs, conv.out_channels), "depthwise": inputs}[style]
    return replace(conv, groups=groups, out_channels=-(-conv.out_channels // groups) * groups)


def needed_input(conv: Conv2d, axis: int, outputs: int) -> int:
    """Rows (axis 0) or columns that give at least so many outputs."""
    pad = conv.padding
    padding = pad.top + pad.bottom if axis == 0 else pad.left + pad.right
    return max(1, (outputs - 1) * conv.stride[axis] + conv.reach[axis] - padding)


@st.composite
def with_arithmetic(
    draw: st.DrawFn, dtype: str, filter_dtype: str, conv: Conv2d, channels: st.SearchStrategy[int], is_last: bool
) -> Conv2d:
    conv = replace(conv, out_channels=draw(channels), bias=draw(st.booleans()))
    if dtype not in INTEGER_RANGE:
        return replace(conv, activation=draw(st.sampled_from(("none", "relu", "relu6"))))
    stays_int32 = is_last and draw(st.booleans())
    requantize = None if stays_int32 else draw(requantisations(dtype))
    filter_l1 = draw(filter_sums(dtype))
    return replace(conv, filter_zero_point=draw(zero_points(filter_dtype)), filter_l1=filter_l1, requantize=requantize)


def filter_sums(dtype: str) -> st.SearchStrategy[int | None]:
    """Any; for int16, those whose sums an int32 holds."""
    some = st.one_of(st.just(65535), st.integers(1, 65535))
    return some if dtype == "int16" else st.one_of(st.none(), some)


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES, storage: tuple[str, ...] = ("global", "vtcm")) -> Case:
    chain = draw(chains(dtypes))
    outputs = tensor_extents(chain)[1:]
    order, halo = draw(st.sampled_from(ORDERS_AND_HALOS))
    plan = Plan(
        k_split=draw(st.integers(1, max(output.channel_blocks for output in outputs))),
        h_split=draw(st.integers(1, max(output.row_blocks for output in outputs))),
        order=order,
        halo=halo,
        filters=draw(st.sampled_from(("per_tile", "resident"))),
        buffering=draw(st.sampled_from(("single", "double"))),
        kernel="plain",
        storage=draw(st.sampled_from(storage)),
    )
    return Case("drawn", chain, plan)
