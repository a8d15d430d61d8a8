"""Draw chains of few channels and wide rows: narrow blocks of channels lie between their convs.

In two chains of three most convs have pixels as lanes. In the others any zero point of a filter is as likely as 0, and
lanes are channels more often.
"""

from collections.abc import Iterator
from dataclasses import replace

from hexconv.spec import Chain, Conv2d, Padding
from hexconv.spec.edges import EDGE_LAYOUTS, EdgeLayout
from hexconv.spec.narrowing import MADE_UNSIGNED
from hexconv.sweep.arithmetic import drawn_zero_point, with_filters, with_requantisations
from hexconv.sweep.draw import Draw
from hexconv.sweep.geometry import input_axis
from hexconv.sweep.scope import Kind

MOST_CHANNELS = 28
MANY_CHANNELS = (36, 40, 48, 56, 60)
"""More channels than a block of 32 has, which narrow blocks hold without filling up."""
LEAST_COLUMNS, MOST_COLUMNS = 8, 140
MOST_ROWS = 12


def few_channels(draw: Draw, kind: Kind) -> Iterator[Chain]:
    """Yield chains of one geometry with ever fewer rows, then with convs left out at the front."""
    convs = [_conv(draw) for _ in range(draw.number(2, 4))]
    channels = [draw.one_of(draw.number(1, MOST_CHANNELS), draw.number(1, 4)), *(_channels(draw) for _ in convs)]
    convs = [replace(conv, out_channels=out) for conv, out in zip(convs, channels[1:], strict=True)]
    width, zero_point = draw.number(LEAST_COLUMNS, MOST_COLUMNS), drawn_zero_point(draw, kind.dtype)
    keeps_zeros = draw.is_one_in(3)
    ends: list[EdgeLayout] = [draw.one_of(*EDGE_LAYOUTS) for _ in ("input", "output")]
    for rows, first in ((draw.number(1, MOST_ROWS), 0), (1, 0), *((1, first) for first in range(1, len(convs)))):
        left = convs[first:]
        height, columns = (input_axis(draw, left, axis, size) for axis, size in enumerate((rows, width)))
        filtered = [_with_filters(draw, kind, conv, keeps_zeros) for conv in left]
        yield Chain(
            input=(1, height, columns, channels[first]),
            dtype=kind.dtype,
            filter_dtype=kind.filter_dtype,
            zero_point=zero_point,
            input_layout=ends[0],
            output_layout=ends[1],
            conv=with_requantisations(draw, kind, filtered, channels[first:]),
        )


def _with_filters(draw: Draw, kind: Kind, conv: Conv2d, keeps_zeros: bool) -> Conv2d:
    """Add what a conv sums; unless zero points are kept, five in six of them are such that pixels as lanes serve."""
    filtered = with_filters(draw, kind, conv)
    if keeps_zeros or draw.is_one_in(6):
        return filtered
    is_signed = (kind.filter_dtype or kind.dtype) == "int8"
    return replace(filtered, filter_zero_point=0 if is_signed else draw.one_of(0, MADE_UNSIGNED))


def _channels(draw: Draw) -> int:
    """Draw the output channels of a conv; one in eight has more than 32, one in eight fills its block."""
    return draw.one_of(*[draw.number(1, MOST_CHANNELS)] * 6, draw.one_of(*MANY_CHANNELS), 32)


def _conv(draw: Draw) -> Conv2d:
    """Draw a conv; most are small, without stride, and keep the size of what they read."""
    kernel, dilation = (draw.number(1, 3), draw.number(1, 5)), (1, draw.one_of(1, 1, 1, 2))
    stride = draw.one_of((1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (2, 2))
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation)
    rows, columns = conv.reach
    same = Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    return replace(conv, padding=draw.one_of(Padding(), same))
