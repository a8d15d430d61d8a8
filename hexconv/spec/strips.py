"""Stripes of columns: a chain computed in strips of the image, one after the other, as if they were a batch of images.

A strip is `w_split` blocks of 8 columns of the output, over all rows. What it reads is made anew for each strip, so the
columns that two strips share are recomputed. A conv that makes c columns of its output reads of its source

    columns c * stride .. (c - 1) * stride + reach        reach = (kernel - 1) * dilation + 1

Strip s begins at column min(s * width, columns - width): the last one begins early, so that all are equally wide. The
columns that it shares with the strip before it are written twice, with the same values. Strips of one image follow each
other, so filters that are staged once serve all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from hexconv.spec.chain import IN_BLOCKS, Chain
from hexconv.spec.extents import COLUMN_BLOCK, REMEMBERED, blocks
from hexconv.spec.plan import Plan


@dataclass(frozen=True)
class Strips:
    """The strips of a chain.

    Attributes:
        chain: the chain that computes all strips: a batch of them for each image.
        count: the strips of an image.
        columns: the columns of the output in a strip.
        images: the shape of the whole input, NHWC.
        outputs: the shape of the whole output, NHWC.
        stride: the columns of the input from one column of the output to the next.
    """

    chain: Chain
    count: int
    columns: int
    images: tuple[int, int, int, int]
    outputs: tuple[int, int, int, int]
    stride: int

    def image_of(self, number: Any) -> Any:
        """Return the image of strip `number` of the batch, a number or an expression."""
        return number // self.count

    def first_made(self, number: Any, least: Callable[[Any, Any], Any] = min) -> Any:
        """Return the first column of the output that strip `number` of the batch makes.

        Args:
            number: a number or an expression.
            least: the minimum of two of them.
        """
        return least(number % self.count * self.columns, self.outputs[2] - self.columns)

    def first_read(self, number: Any, least: Callable[[Any, Any], Any] = min) -> Any:
        """Return the first column of the input that strip `number` of the batch reads; the rest as in `first_made`."""
        return self.first_made(number, least) * self.stride


@lru_cache(REMEMBERED)
def strips_of(chain: Chain, plan: Plan) -> Strips | None:
    """Return the strips that a plan makes; None where it makes whole rows.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
    >>> chain = Chain(input=(2, 20, 44, 4), output_layout="NHWC", dtype="uint8", conv=(conv, conv))
    >>> strips = strips_of(chain, Plan(kernel="hvx", w_split=2))
    >>> strips.count, strips.columns, strips.chain.input
    (3, 16, (6, 20, 20, 4))
    """
    if plan.w_split is None:
        return None
    images, rows, _, channels = chain.input
    columns = chain.shapes[-1][2]
    width = min(plan.w_split * COLUMN_BLOCK, columns)
    read = width
    for conv in reversed(chain.conv):
        read = (read - 1) * conv.stride[1] + conv.reach[1]
    count, stride = blocks(columns, width), prod(conv.stride[1] for conv in chain.conv)
    of_strips = replace(chain, input=(images * count, rows, read, channels))
    return Strips(of_strips, count, width, chain.input, chain.shapes[-1], stride)


def in_strips(chain: Chain, plan: Plan) -> tuple[Chain, Plan]:
    """Return the chain and the plan of the nest: those of a batch of strips where the plan makes strips."""
    strips = strips_of(chain, plan)
    return (strips.chain, replace(plan, w_split=None)) if strips else (chain, plan)


def why_no_strips(chain: Chain, w_split: int) -> str:
    """Say why a chain can't be computed in strips of so many blocks of columns; empty if it can.

    >>> from hexconv.spec import Conv2d
    >>> same = Chain(input=(1, 20, 44, 4), dtype="uint8", conv=(Conv2d(out_channels=8, kernel=(3, 3), padding=1),))
    >>> why_no_strips(same, 2)
    'chain.conv[0] pads columns, and each strip would need a padding of its own'
    """
    columns = chain.shapes[-1][2]
    if w_split > blocks(columns, COLUMN_BLOCK):
        return f"the output has {blocks(columns, COLUMN_BLOCK)} blocks of {COLUMN_BLOCK} columns"
    if chain.output_layout == IN_BLOCKS and columns % COLUMN_BLOCK:
        return f"the last of the output's blocks of {COLUMN_BLOCK} columns has {columns % COLUMN_BLOCK}, and is whole"
    for index, conv in enumerate(chain.conv):
        if conv.padding.left or conv.padding.right:
            return f"chain.conv[{index}] pads columns, and each strip would need a padding of its own"
    return ""
