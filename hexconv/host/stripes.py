"""Which rows of every tensor a stripe of the host kernel reads, and which of them it makes, from the shapes alone.

A stripe is some rows of the output, or of one band of the output. In each stripe a conv computes those rows that the
next conv reads and that no stripe before has computed. Its cache holds all rows that the stripe reads, padding
included.

Rows. Let the new rows of a tensor in some stripe be b .. e-1. They read, in the coordinates of the conv's input,

    first = b * stride - padding.top        one past the last = (e - 1) * stride + reach - padding.top

and the cache of the conv's input holds as many rows as the widest of these ranges over all stripes. The new rows of the
conv's input end at the range's end, or at the input's height if that is less. They begin where the new rows of the
stripe before ended, or at `first` if a stride steps over rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hexconv.spec.chain import Chain


@dataclass(frozen=True)
class Band:
    """One band: the rows `first .. last - 1` of the output.

    Attributes:
        first: its first row of the output.
        last: one past its last row of the output.
        ahead: rows of the last intermediate that its first stripe computes before those that it reads.
        behind: rows of the last intermediate that its first stripe computes after those that it reads.
    """

    first: int
    last: int
    ahead: int = 0
    behind: int = 0


@dataclass(frozen=True)
class StripeRows:
    """The rows of one tensor in one stripe.

    Attributes:
        above: the first row that the stripe reads, negative in the top padding; of the output, that it makes.
        below: one past the last row that it reads, bottom padding included; of the output, that it makes.
        begin: the first row that it computes; of the input, that it copies.
        end: one past the last row that it computes.
    """

    above: int
    below: int
    begin: int
    end: int

    @property
    def held(self) -> int:
        """The rows that a cache holds of the tensor in this stripe."""
        return max(self.below - self.above, 1)

    @property
    def new(self) -> int:
        """How many rows the stripe computes."""
        return max(self.end - self.begin, 0)


def stripe_of(
    chain: Chain, band: Band, ended: Sequence[int] | None = None, limits: Sequence[int] | None = None
) -> tuple[StripeRows, ...]:
    """The rows of every tensor in one stripe, the input first.

    Args:
        chain: the convs.
        band: the rows of the output in the stripe, and those of the last intermediate that it makes ahead and behind.
        ended: of each tensor, the rows that earlier stripes have made, all below these; none if this is the first.
        limits: of each tensor, the rows that are made at all; without them, those that there are.
    """
    last, heights = len(chain.conv) - 1, limits or [shape[1] for shape in chain.shapes]

    def read(index: int, reader: StripeRows) -> StripeRows:
        conv, is_last = chain.conv[index], 0 < index == last
        above = reader.begin * conv.stride[0] - conv.padding.top - (band.ahead if is_last else 0)
        below = conv.rows_read(reader.end) - conv.padding.top + (band.behind if is_last else 0)
        made = ended[index] if ended else 0
        return StripeRows(above, below, max(made, above), max(min(below, heights[index]), made))

    return chain.backwards(StripeRows(band.first, band.last, band.first, band.last), read)


def stripes_of(
    chain: Chain, stripe_rows: int, band: Band, limits: Sequence[int] | None = None
) -> Iterator[tuple[StripeRows, ...]]:
    """The rows of every tensor in every stripe of a band, from its top to its bottom.

    Args:
        chain: the convs.
        stripe_rows: the rows of the output in one stripe.
        band: the rows of the output that the stripes make.
        limits: as in `stripe_of`.
    """
    stripe = None
    for start in range(band.first, band.last, stripe_rows):
        end = min(start + stripe_rows, band.last)
        part = Band(start, end) if stripe else Band(start, end, band.ahead, band.behind)
        stripe = stripe_of(chain, part, [rows.end for rows in stripe] if stripe else None, limits)
        yield stripe
