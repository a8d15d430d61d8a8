"""How many rows the caches hold if stripes roll over the image, from the shapes alone: the closed form.

A stripe is some rows of the output, or of one band of the output. In each stripe a conv computes those rows that the
next conv reads and that no stripe before has computed. Its cache holds all rows that the stripe reads, padding
included.

Rows. Let the new rows of a tensor in some stripe be b .. e-1. They read, in the coordinates of the conv's input,

    first = b * stride - padding.top        one past the last = (e - 1) * stride + reach - padding.top

and the cache of the conv's input holds as many rows as the widest of these ranges over all stripes. The new rows of the
conv's input end at the range's end, or at the input's height if that is less. They begin where the new rows of the
stripe before ended, or at `first` if a stride steps over rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hexconv.kernel.host.bands import Band
from hexconv.spec import Chain


@dataclass(frozen=True)
class StripeRows:
    """Rows of every tensor in one stripe, the input first.

    Attributes:
        held: the rows of each tensor that the stripe reads, padding included; 0 for the output.
        new: the rows of each tensor that the stripe computes; for the input, those that it copies.
    """

    held: tuple[int, ...]
    new: tuple[int, ...]


def stripe_rows_of(chain: Chain, stripe_rows: int, band: Band) -> Iterator[StripeRows]:
    """The rows of every tensor in every stripe, from the top of the image to its bottom.

    Args:
        chain: the convs.
        stripe_rows: the rows of the output in one stripe.
        band: the rows of the output that the stripes make.
    """
    ended = [0] * len(chain.shapes)
    for start in range(band.first, band.last, stripe_rows):
        begin, end = start, min(start + stripe_rows, band.last)
        held, new = [0], [end - begin]
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            above = begin * conv.stride[0] - conv.padding.top
            below = conv.rows_read(end) - conv.padding.top
            if start == band.first and 0 < tensor == len(chain.conv) - 1:
                above, below = above - band.ahead, below + band.behind
            begin, end = max(ended[tensor], above), max(min(below, chain.shapes[tensor][1]), ended[tensor])
            held.insert(0, max(below - above, 1))
            new.insert(0, max(end - begin, 0))
            ended[tensor] = end
        yield StripeRows(tuple(held), tuple(new))


def rolled_rows(chain: Chain, stripe_rows: int, band: Band) -> tuple[list[int], list[int]]:
    """The most rows of each tensor that a stripe reads, and the most that are new in a stripe."""
    stripes = list(stripe_rows_of(chain, stripe_rows, band))
    held, new = ([getattr(stripe, which) for stripe in stripes] for which in ("held", "new"))
    return [max(rows) for rows in zip(*held, strict=True)], [max(rows) for rows in zip(*new, strict=True)]
