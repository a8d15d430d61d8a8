"""Draw chains whose convs have groups of more than one channel, in more than one block of 32 channels.

A conv in groups stands alone, behind a conv of 1x1, in front of one, or both; groups of its outputs and inputs may
differ in size, and blocks of 32 channels may begin inside of a group and end inside of another one.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from hexconv.kernel.hvx.tiles import WORD_CHANNELS
from hexconv.spec import Chain, Conv2d, Padding
from hexconv.spec.edges import EDGE_LAYOUTS, EdgeLayout
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.sweep.arithmetic import drawn_zero_point, with_filters, with_requantisations
from hexconv.sweep.draw import Draw
from hexconv.sweep.geometry import input_axis
from hexconv.sweep.scope import Kind, Scope

SIZES = (4, 8, 16, 32, 64, 2, 6, 10, 12, 24, 40, 48, 80, 96)
"""Channels of a group, as networks have them, and sizes that fill no words."""
LEAST_CHANNELS = CHANNEL_BLOCK + WORD_CHANNELS
MOST_ROWS, MOST_COLUMNS = 9, 24
SMALLER = ((1.0, 1.0), (0.3, 1.0), (0.1, 0.3), (0.0, 0.0))
"""Shares of the largest rows and columns to draw from, one after the other."""


def grouped(draw: Draw, kind: Kind, scope: Scope) -> Iterator[Chain]:
    """Yield chains of one geometry and ever fewer pixels, then the conv in groups alone; none of few channels."""
    sizes = [size for size in SIZES if max(2, ceil(LEAST_CHANNELS / size)) * size <= scope.channels]
    if not sizes:
        return
    inputs = draw.one_of(*sizes)
    groups = draw.number(max(2, ceil(LEAST_CHANNELS / inputs)), scope.channels // inputs)
    outputs = draw.one_of(inputs, inputs, inputs, 2 * inputs, draw.number(1, CHANNEL_BLOCK))
    middle = replace(_conv(draw), out_channels=groups * outputs, groups=groups)
    before, behind = draw.is_one_in(2), draw.is_one_in(2)
    convs = [Conv2d(out_channels=groups * inputs)] * before + [middle]
    convs += [Conv2d(out_channels=draw.number(1, scope.channels))] * behind
    first = draw.number(1, scope.channels) if before else groups * inputs
    ends: list[EdgeLayout] = [draw.one_of(*EDGE_LAYOUTS) for _ in ("input", "output")]
    made = [(rows, columns, first, convs) for rows, columns in SMALLER]
    for rows, columns, channels, some in (*made, (0.0, 0.0, groups * inputs, [middle])):
        most = (max(1, round(MOST_ROWS * rows)), max(1, round(MOST_COLUMNS * columns)))
        height, width = (input_axis(draw, some, axis, draw.number(1, size)) for axis, size in enumerate(most))
        yield Chain(
            input=(1, height, width, channels),
            dtype=kind.dtype,
            filter_dtype=kind.filter_dtype,
            zero_point=drawn_zero_point(draw, kind.dtype),
            input_layout=ends[0],
            output_layout=ends[1],
            conv=with_requantisations(
                draw,
                kind,
                [with_filters(draw, kind, conv) for conv in some],
                [channels, *(conv.out_channels for conv in some)],
            ),
        )


def _conv(draw: Draw) -> Conv2d:
    """Draw a geometry: mostly 3x3 or 1x1, with any of a stride, a dilation and a padding."""
    kernel = draw.one_of((3, 3), (3, 3), (1, 1), (draw.number(1, 3), draw.number(1, 5)))
    stride = draw.one_of((1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 1))
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=draw.one_of((1, 1), (1, 1), (2, 2), (1, 3)))
    rows, columns = conv.reach
    same = Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    return replace(conv, padding=draw.one_of(Padding(), same))
