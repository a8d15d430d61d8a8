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

from hexconv.spec import Chain


def rolled_rows(chain: Chain, stripe_rows: int, first: int, last: int) -> tuple[list[int], list[int]]:
    """Per tensor: the most rows that a stripe reads of it, and the most that are new in a stripe.

    Args:
        chain: the convs.
        stripe_rows: rows of the output in a stripe.
        first: row of the output where the stripes begin.
        last: one past the row of the output where they end.
    """
    held = [0] * len(chain.shapes)
    new = [0] * len(chain.shapes)
    ended = [0] * len(chain.shapes)
    for start in range(first, last, stripe_rows):
        begin, end = start, min(start + stripe_rows, last)
        new[-1] = max(new[-1], end - begin)
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            above = begin * conv.stride[0] - conv.padding.top
            below = (end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top
            held[tensor] = max(held[tensor], below - above, 1)
            begin, end = max(ended[tensor], above), max(min(below, chain.shapes[tensor][1]), 0)
            new[tensor] = max(new[tensor], end - begin)
            ended[tensor] = end
    return held, new
