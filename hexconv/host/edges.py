"""Place the bands of an image, one per thread, so that all of them compute equally much.

Rows of an intermediate that two bands read lie at the seam between them. The lower band makes them and hands them up,
so that no row is computed twice; it would then compute more of the intermediates than the upper one. In return its
output begins lower: at the first row by which the bands above have done their share of all products. Where they then
do too much, the lower band takes over that work in whole rows of the last intermediate: it computes `ahead` more rows
than it reads itself, and hands them up.

Bands wait for each other after their first stripes, so these are balanced as well: in its first stripe each band
computes as many rows of the last intermediate as any other. Rows that are still missing for that come `behind` those
that its stripe reads.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from hexconv.host.stripes import Band, StripeRows, stripe_of
from hexconv.spec.chain import Chain


@dataclass(frozen=True)
class BandEdges:
    """Where all bands of a chain begin.

    Attributes:
        output: the first row of the output of each band, and one past the last row.
        ahead: `Band.ahead` of each band.
        behind: `Band.behind` of each band.
    """

    output: tuple[int, ...]
    ahead: tuple[int, ...]
    behind: tuple[int, ...]

    @property
    def all(self) -> list[Band]:
        """All bands, from the top of the image on."""
        return [Band(*rows, *more) for rows, *more in zip(pairwise(self.output), self.ahead, self.behind, strict=True)]

    @property
    def bands(self) -> int:
        """The number of bands."""
        return len(self.ahead)

    @property
    def are_all_wide(self) -> bool:
        """Whether each band has at least one row of the output."""
        return all(first < last for first, last in pairwise(self.output))


def even_edges(chain: Chain, bands: int) -> BandEdges:
    """Give each band equally many rows of the output, as far as whole rows allow; no rows are handed up.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> even_edges(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), 2)
    BandEdges(output=(0, 30, 60), ahead=(0, 0), behind=(0, 0))
    """
    height = chain.shapes[-1][1]
    return BandEdges(tuple(band * height // bands for band in range(bands + 1)), (0,) * bands, (0,) * bands)


def balanced_edges(chain: Chain, bands: int, stripe_rows: int) -> BandEdges:
    """Give each band equally many products, as far as whole rows allow; rows at seams are handed up.

    In the example the upper band computes 31 rows of the output and 30 of the intermediate, the lower band 29 and 32.
    In its first stripe each of them computes 8 rows of the output and 11 of the intermediate.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> balanced_edges(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), 2, 8)
    BandEdges(output=(0, 31, 60), ahead=(0, 1), behind=(1, 0))
    """
    height, total = chain.shapes[-1][1], _products(chain, chain.shapes[-1][1], 0)
    first, edges, ahead = 0, [0], [0]
    for band in range(1, bands):
        share = total * band // bands
        least = min(first + 1, height)
        edge = least + bisect_left(range(least, height), share, key=lambda row: _products(chain, row, 0))
        above = first_stripe_ends(chain, Band(first, edge), stripe_rows)
        ahead.append(_rows_ahead(chain, edge, share, above))
        edges.append(edge)
        first = edge
    without = BandEdges((*edges, height), tuple(ahead), (0,) * bands)
    return BandEdges(without.output, without.ahead, _rows_behind(chain, without, stripe_rows))


def edge_rows(chain: Chain, first: int, ahead: int) -> list[int]:
    """For each tensor, the input first, the first row that a band computes itself.

    Args:
        chain: the chain that is cut into bands.
        first: the band's first row of the output.
        ahead: rows of the last intermediate that the band computes before those that it reads.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> edge_rows(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), 31, 1)
    [30, 30, 31]
    """
    return [rows.begin for rows in stripe_of(chain, Band(first, first, ahead))]


def first_stripe_ends(chain: Chain, band: Band, stripe_rows: int) -> list[int]:
    """For each tensor, the input first, one past the last row that exists after a band's first stripe."""
    return [rows.end for rows in first_stripe(chain, band, stripe_rows)]


def first_stripe(chain: Chain, band: Band, stripe_rows: int) -> tuple[StripeRows, ...]:
    """For each tensor, the input first, the rows of a band's first stripe."""
    return stripe_of(chain, replace(band, last=min(band.first + stripe_rows, band.last)))


def _rows_behind(chain: Chain, bands: BandEdges, stripe_rows: int) -> tuple[int, ...]:
    """`behind` of each band: rows that its first stripe lacks of the largest one, as far as the next band leaves."""
    last = chain.conv[-1]
    if len(chain.conv) == 1 or last.reach[0] < last.stride[0] or not bands.are_all_wide:
        return bands.behind  # rows that a stride steps over are not computed at all
    edges = [edge_rows(chain, band.first, band.ahead) for band in bands.all]
    made = [
        first_stripe_ends(chain, band, stripe_rows)[-2] - edge[-2] for band, edge in zip(bands.all, edges, strict=True)
    ]
    limits = [*edges[1:], _needed_rows(chain)]

    def behind(band: Band, rows: int, limit: list[int]) -> int:
        def fits(more: int) -> bool:
            ends = first_stripe_ends(chain, replace(band, behind=more), stripe_rows)
            return all(end <= most for end, most in zip(ends[1:], limit[1:], strict=True))

        return next((more for more in range(max(made) - rows, 0, -1) if fits(more)), 0)

    return tuple(behind(*each) for each in zip(bands.all, made, limits, strict=True))


def _rows_ahead(chain: Chain, first: int, share: int, above: Sequence[int]) -> int:
    """How many rows a band takes over, of the last intermediate, to bring the bands above nearest to their share.

    The band above keeps its own first stripe, which ends at the rows `above`.
    """
    last = chain.conv[-1]
    if len(chain.conv) == 1 or last.reach[0] <= last.stride[0]:
        return 0  # no two bands need the same rows
    reached = bisect_left(range(first), -share, key=lambda rows: -_products(chain, first, rows))
    nearest = min((max(reached - 1, 0), reached), key=lambda rows: abs(_products(chain, first, rows) - share))

    def leaves(rows: int) -> bool:
        edges = edge_rows(chain, first, rows)[1:-1]
        return all(edge >= end for edge, end in zip(edges, above[1:-1], strict=True))

    most = min(nearest, max(edge_rows(chain, first, 0)[-2] - above[-2], 0))
    return next((rows for rows in range(most, 0, -1) if leaves(rows)), 0)


def _products(chain: Chain, first: int, ahead: int) -> int:
    """The products of all convs that the bands above row `first` of the output compute."""
    edges, needed = edge_rows(chain, first, ahead), _needed_rows(chain)
    rows = needed if first == needed[-1] else [min(edge, end) for edge, end in zip(edges, needed, strict=True)]
    of_a_row = [shape[2] * prod(taps) for shape, taps in zip(chain.shapes[1:], chain.filter_shapes, strict=True)]
    return sum(made * products for made, products in zip(rows[1:], of_a_row, strict=True))


def _needed_rows(chain: Chain) -> list[int]:
    """For each tensor, one past the last row that is read; a stride may leave some rows unread."""
    height = chain.shapes[-1][1]
    return first_stripe_ends(chain, Band(0, height), height)
