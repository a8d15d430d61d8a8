"""Kernels, strides, dilations and paddings of a random chain."""

from collections.abc import Sequence
from dataclasses import replace

from hexconv.spec import Conv2d, Padding
from hexconv.sweep.draw import Draw

LARGEST_KERNEL, LARGEST_STRIDE, LARGEST_DILATION = 7, 3, 3
LONGEST_STRIDE = 20
"""Of one conv of a chain: more than two blocks of rows, so that whole stripes are stepped over."""
FARTHEST_PADDING = 26
"""On one side: more than three blocks of rows, so that whole stripes see nothing but padding."""


def geometries(draw: Draw, convs: int) -> list[Conv2d]:
    """The convs of a chain, each with one output channel so far."""
    strider = draw.number(0, convs - 1) if draw.is_one_in(4) else None
    return [_geometry(draw, LONGEST_STRIDE if index == strider else LARGEST_STRIDE) for index in range(convs)]


def _geometry(draw: Draw, longest_stride: int) -> Conv2d:
    """One conv; few kernels are large where strides step over rows, that a conv reads less than it steps."""
    largest_kernel = LARGEST_KERNEL if longest_stride == LARGEST_STRIDE else draw.one_of(1, 3, LARGEST_KERNEL)
    kernel, stride, dilation = (
        (draw.number(1, largest), draw.number(1, largest))
        for largest in (largest_kernel, longest_stride, LARGEST_DILATION)
    )
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation)
    return replace(conv, padding=_padding(draw, conv))


def _padding(draw: Draw, conv: Conv2d) -> Padding:
    """None; as many outputs as inputs where the stride is 1; up to once, or twice, what one output reads; or far."""
    rows, columns = conv.reach
    style = draw.number(0, 7)
    if style < 2:
        return Padding()
    if style < 4:
        return Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    if style < 6:
        return _sides(draw, rows, columns)
    if style < 7:
        return _sides(draw, 2 * rows, 2 * columns)
    return _far(draw)


def _sides(draw: Draw, rows: int, columns: int) -> Padding:
    """Up to so many rows and columns, each side for itself."""
    top, left, bottom, right = (draw.number(0, most) for most in (rows, columns, rows, columns))
    return Padding(top=top, left=left, bottom=bottom, right=right)


def _far(draw: Draw) -> Padding:
    """Far beyond the image on one side, and perhaps on the opposite one."""
    far, opposite = draw.number(1, FARTHEST_PADDING), draw.number(0, FARTHEST_PADDING) if draw.is_one_in(3) else 0
    side, other = draw.one_of(("top", "bottom"), ("bottom", "top"), ("left", "right"), ("right", "left"))
    return Padding(**{side: far, other: opposite})


def input_axis(draw: Draw, convs: Sequence[Conv2d], axis: int, output: int) -> int:
    """A size of the input, along rows (0) or columns (1), that gives at least so many outputs.

    A conv needs `(output - 1) * stride + reach` elements, its padding included, and may be given up to `stride - 1`
    more that nothing reads.
    """
    size = output
    for conv in reversed(convs):
        pad = conv.padding
        padding = (pad.top + pad.bottom, pad.left + pad.right)[axis]
        unread = draw.number(0, conv.stride[axis] - 1)
        size = max(1, (size - 1) * conv.stride[axis] + conv.reach[axis] - padding + unread)
    return size
