"""Draw the kernels, strides, dilations and paddings of a random chain."""

from collections.abc import Sequence
from dataclasses import replace

from hexconv.spec import Conv2d, Padding
from hexconv.spec.extents import ROW_BLOCK
from hexconv.sweep.draw import Draw

LARGEST_KERNEL, LARGEST_STRIDE, LARGEST_DILATION = 7, 3, 3
LONGEST_STRIDE = 20
"""The longest stride, in one conv of a chain: more than two blocks of rows, so that it steps over whole stripes."""
FARTHEST_PADDING = 34
"""The most padding on one side: more than four blocks of rows, so that whole stripes see nothing but padding."""


DEEPEST_PADDING = 9
"""The most padding on one side of each conv where padding alone makes a tall output: block rows are all padding."""


def geometries(draw: Draw, convs: int) -> list[Conv2d]:
    """Draw the convs of a chain, each with one output channel so far."""
    if draw.is_one_in(4):
        return [_padded(draw, is_first=index == 0) for index in range(convs)]
    strider = draw.number(0, convs - 1) if draw.is_one_in(4) else None
    return [_geometry(draw, LONGEST_STRIDE if index == strider else LARGEST_STRIDE) for index in range(convs)]


def _geometry(draw: Draw, longest_stride: int) -> Conv2d:
    """Draw a conv; where strides step over rows, few kernels are large, so that a conv reads less than it steps."""
    largest_kernel = LARGEST_KERNEL if longest_stride == LARGEST_STRIDE else draw.one_of(1, 3, LARGEST_KERNEL)
    kernel, stride, dilation = (
        (draw.number(1, largest), draw.number(1, largest))
        for largest in (largest_kernel, longest_stride, LARGEST_DILATION)
    )
    if draw.is_one_in(6):
        # With strides of one, stripes and padding meet in all ways before the padding ends.
        dense = Conv2d(out_channels=1, kernel=kernel, stride=draw.one_of((1, 1), stride), dilation=dilation)
        return replace(dense, padding=_far(draw))
    conv = Conv2d(out_channels=1, kernel=kernel, stride=stride, dilation=dilation)
    return replace(conv, padding=_near(draw, conv))


def _padded(draw: Draw, is_first: bool) -> Conv2d:
    """Draw a conv of a chain that gets taller: small kernels, hardly a stride, rows of padding on both sides.

    The first makes parts of a block of an image of one row; the others often begin a whole block above theirs.
    """
    kernel = draw.number(1, 3), draw.number(1, 2)
    stride = draw.one_of(1, 2, 2) if is_first else draw.one_of(1, 1, 1, 1, 2)
    top, bottom = draw.number(0, DEEPEST_PADDING), draw.number(0, DEEPEST_PADDING)
    if is_first and not draw.is_one_in(4):
        made = ROW_BLOCK // draw.one_of(1, 2, 4, stride, stride, stride)
        bottom = max(0, (made - 1) * stride + kernel[0] - 1 - top)
    if not is_first:
        top = draw.one_of(0, 0, ROW_BLOCK, ROW_BLOCK, top)
    padding = Padding(top=top, left=draw.number(0, 1), bottom=bottom, right=draw.number(0, 1))
    return Conv2d(out_channels=1, kernel=kernel, stride=(stride, 1), padding=padding)


def _near(draw: Draw, conv: Conv2d) -> Padding:
    """Draw no padding, the same size for input and output at stride 1, or up to once or twice what an output reads."""
    rows, columns = conv.reach
    style = draw.number(0, 6)
    if style < 2:
        return Padding()
    if style < 4:
        return Padding(top=(rows - 1) // 2, left=(columns - 1) // 2, bottom=rows // 2, right=columns // 2)
    times = 1 if style < 6 else 2
    top, left, bottom, right = (draw.number(0, times * most) for most in (rows, columns, rows, columns))
    return Padding(top=top, left=left, bottom=bottom, right=right)


def _far(draw: Draw) -> Padding:
    """Draw padding far beyond the image on one side, and perhaps on the opposite one.

    Often by whole blocks of rows: a stripe begins where the image does.
    """
    blocks = ROW_BLOCK * draw.number(1, FARTHEST_PADDING // ROW_BLOCK)
    far = draw.one_of(blocks, draw.number(1, FARTHEST_PADDING))
    opposite = draw.number(0, FARTHEST_PADDING) if draw.is_one_in(3) else 0
    sides = (("top", "bottom"), ("top", "bottom"), ("bottom", "top"), ("left", "right"), ("right", "left"))
    side, other = draw.one_of(*sides)
    return Padding(**{side: far, other: opposite})


def input_axis(draw: Draw, convs: Sequence[Conv2d], axis: int, output: int) -> int:
    """Draw a size of the input, along rows (0) or columns (1), that gives at least `output` outputs.

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
