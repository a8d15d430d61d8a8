"""Which first convs of few channels read an unfolded input (`hexconv.spec.unfolded`), and what is left of them."""

from dataclasses import replace
from functools import lru_cache
from math import prod

from hexconv.spec.chain import PIXELS, Chain, Conv2d, Padding
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.unfolded import Unfolding

VECTOR_BYTES = 128
"""A vector of HVX, by which an input is unfolded: a shorter one is copied as it is."""
MOST_ROWS = 8
"""The most rows of taps that are unfolded: each has a bit of a byte that says whether the image has it."""
ONE_BYTE = ("uint8", "int8")


@lru_cache(REMEMBERED)
def unfolding_of(chain: Chain) -> Unfolding | None:
    """Return how the input of a chain is unfolded for an engine of 32 channels; None where it is not.

    It is the way that leaves the fewest taps, and of those the one that reads the fewest rows at a time. Only pixels in
    memory are unfolded, of one byte an element, that no later conv adds.

    >>> convs = {kernel: Conv2d(out_channels=8, kernel=(kernel, kernel)) for kernel in (1, 3, 7)}
    >>> chains = [Chain(input=(1, 16, 16, 3), dtype="uint8", conv=(conv,)) for conv in convs.values()]
    >>> [found and found.kernel for found in map(unfolding_of, chains)]
    [None, (3, 3), (1, 7)]
    """
    conv, (_, rows, columns, channels) = chain.conv[0], chain.input
    is_alone = not conv.is_grouped and len(chain.readers[0]) == 1
    in_pixels = chain.input_layout == PIXELS and chain.dtype in ONE_BYTE and prod(chain.input) >= VECTOR_BYTES
    ways = [(1, conv.kernel[1]), (conv.kernel[0], 1), conv.kernel]
    fit = [way for way in ways if 1 < prod(way) <= CHANNEL_BLOCK // channels and way[0] <= MOST_ROWS]
    if not (is_alone and in_pixels and fit):
        return None
    kernel = max(fit, key=prod)
    made, given = chain.shapes[1][1:3], (rows, columns)
    before = conv.padding.top, conv.padding.left
    axes = [
        (made[axis], conv.stride[axis], conv.dilation[axis], before[axis])
        if kernel[axis] > 1
        else (given[axis], 1, 1, 0)
        for axis in (0, 1)
    ]
    outputs, strides, dilations, padding = zip(*axes, strict=True)
    return Unfolding(chain.input, outputs, kernel, strides, dilations, padding)


def unfolded_conv(conv: Conv2d, by: Unfolding) -> Conv2d:
    """Return the first conv of a chain as it reads the unfolded input.

    >>> stem = Conv2d(out_channels=64, kernel=(7, 7), stride=2, padding=3)
    >>> by = unfolding_of(Chain(input=(1, 224, 224, 3), dtype="uint8", conv=(stem,)))
    >>> conv = unfolded_conv(stem, by) if by else stem
    >>> conv.kernel, conv.stride, conv.padding
    ((7, 1), (2, 1), Padding(top=3, left=0, bottom=3, right=0))
    """
    down, across = (taps > 1 for taps in by.kernel)
    pad = conv.padding
    return replace(
        conv,
        kernel=_but(conv.kernel, down, across),
        stride=_but(conv.stride, down, across),
        dilation=_but(conv.dilation, down, across),
        padding=Padding(
            top=0 if down else pad.top,
            bottom=0 if down else pad.bottom,
            left=0 if across else pad.left,
            right=0 if across else pad.right,
        ),
    )


def _but(pair: tuple[int, int], down: bool, across: bool) -> tuple[int, int]:
    """Return a pair with 1 for the axes whose taps are unfolded."""
    return (1 if down else pair[0], 1 if across else pair[1])
