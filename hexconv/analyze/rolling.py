"""How many rows the caches of a kernel hold whose stripes roll, from the shapes alone: the closed form.

A stripe is some rows of the output, or of a band of it that rolls by itself. Each conv computes the rows that the next
one reads in the stripe and that no stripe before has computed, and its cache holds all rows that the stripe reads,
padding included.

Rows. Let a stripe of some tensor be its new rows b .. e-1. They read, in the coordinates of the conv's input,

    first = b * stride - padding.top        one past the last = (e - 1) * stride + reach - padding.top

and the cache of that input holds as many rows as the widest of these over all stripes. The input's own new rows end at
the lesser of its height and that last row; they begin where those of the stripe before ended, or at `first` where a
stride steps over rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hexconv.kernel.host.bands import Band
from hexconv.spec import Chain


@dataclass(frozen=True)
class StripeRows:
    """Rows of every tensor in one stripe, the input first.

    Attributes:
        held: rows that the stripe reads, padding included; 0 of the output.
        new: rows that the stripe computes, or of the input, copies.
    """

    held: tuple[int, ...]
    new: tuple[int, ...]


def stripe_rows_of(chain: Chain, stripe_rows: int, band: Band) -> Iterator[StripeRows]:
    """Every stripe's rows, from the top on.

    Args:
        chain: the convs.
        stripe_rows: rows of the output in a stripe.
        band: the stripes' rows of the output.
    """
    ended = [0] * len(chain.shapes)
    for start in range(band.first, band.last, stripe_rows):
        begin, end = start, min(start + stripe_rows, band.last)
        held, new = [0], [end - begin]
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            above = begin * conv.stride[0] - conv.padding.top
            below = (end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top
            if start == band.first and 0 < tensor == len(chain.conv) - 1:
                above, below = above - band.ahead, below + band.behind
            begin, end = max(ended[tensor], above), max(min(below, chain.shapes[tensor][1]), ended[tensor])
            held.insert(0, max(below - above, 1))
            new.insert(0, max(end - begin, 0))
            ended[tensor] = end
        yield StripeRows(tuple(held), tuple(new))


def rolled_rows(chain: Chain, stripe_rows: int, band: Band) -> tuple[list[int], list[int]]:
    """Per tensor: the most rows that a stripe reads of it, and the most that are new in a stripe."""
    stripes = list(stripe_rows_of(chain, stripe_rows, band))
    held, new = ([getattr(stripe, which) for stripe in stripes] for which in ("held", "new"))
    return [max(rows) for rows in zip(*held, strict=True)], [max(rows) for rows in zip(*new, strict=True)]
