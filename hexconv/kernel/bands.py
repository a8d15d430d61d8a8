"""Bands of a nest of rows: which rows of every tensor each thread makes. No TVM.

Bands are of the output's rows, as even as whole rows allow: `rows` each, the last one has the rest, and the fringe of
its last block. A band runs the stripes of the whole output that it meets, and of each of them makes its own rows alone.
Of every tensor before the output it makes what its rows of the output read, in rows of the stored tensor

    first = band * rows * S         end = (band + 1) * rows * S + M      no more than there are, in the last band all

where S is the product of the strides behind the tensor, and M, from 0 at the output on, grows by every conv that reads:
M' = (M - 1) * stride + reach. Rows at a seam are made by both bands, so no band waits for another one.

A stripe keeps its place whatever the band, and so does every row in its cache: a band needs caches as large as the
whole chain has.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

from hexconv.kernel.forms import ACTIVATION_TAG
from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.extents import ROW_BLOCK


@dataclass(frozen=True)
class Span:
    """The rows of one tensor that a band makes.

    Attributes:
        scale: rows of it for a row of the output.
        more: rows of it that a band reads beyond its own.
        rows: of the whole stored tensor.
    """

    scale: int
    more: int
    rows: int


@dataclass(frozen=True)
class RowBands:
    """The bands of a chain.

    Attributes:
        count: how many there are.
        rows: of the output in each but the last.
        stripe_rows: rows of the output in a stripe.
        spans: of every tensor, the input first.
        tops: the stored row of every tensor at which its logical row 0 stands.
    """

    count: int
    rows: int
    stripe_rows: int
    spans: tuple[Span, ...]
    tops: tuple[int, ...]

    def first(self, tensor: int, band: Any) -> Any:
        """The first row of a tensor that a band makes; `band` is a number, or an expression."""
        return band * (self.rows * self.spans[tensor].scale)

    def end(self, tensor: int, band: int) -> int:
        """One past the last row of a tensor that a band makes."""
        span = self.spans[tensor]
        most = (band + 1) * self.rows * span.scale + span.more
        return span.rows if band == self.count - 1 else min(most, span.rows)

    def stripes(self, band: int) -> range:
        """The stripes of the output that a band meets.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> bands = row_bands(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan(kernel="hvx", threads=4))
        >>> [(bands.first(1, band), bands.end(1, band), bands.stripes(band)) for band in range(2)]
        [(0, 17, range(0, 2)), (15, 32, range(1, 4))]
        """
        return range(self.first(-1, band) // self.stripe_rows, ceil(self.end(-1, band) / self.stripe_rows))

    @property
    def most_stripes(self) -> int:
        """Of any band."""
        return max(len(self.stripes(band)) for band in range(self.count))


def row_bands(chain: Chain, plan: Plan) -> RowBands:
    """The bands of a chain under a plan; no more than the output has rows."""
    extents = tensor_extents(chain)
    output = extents[-1]
    rows = ceil(output.rows / plan.threads)
    written = output.rows if chain.output_layout != ACTIVATION_TAG else output.row_blocks * ROW_BLOCK
    spans = [Span(1, 0, written)]
    for conv, source in zip(reversed(chain.conv), reversed(extents[:-1]), strict=True):
        stride, reader = conv.stride[0], spans[0]
        spans.insert(0, Span(reader.scale * stride, (reader.more - 1) * stride + conv.reach[0], source.rows))
    stripe_rows = min(plan.stripe_rows, written)
    tops = tuple(tensor.top for tensor in extents)
    return RowBands(ceil(output.rows / rows), rows, stripe_rows, tuple(spans), tops)
