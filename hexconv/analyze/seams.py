"""Which rows the bands of a host kernel compute, and which they hand up to the band above: the closed form.

`hexconv.kernel.host.bands` says where bands begin. A band's own rows of a tensor begin at the row that the first row of
the band's output reads, carried back through the convs by `* stride - padding.top` for each, but at 0 at least. Of the
last intermediate, the rows that the band makes ahead come before that. The band above reads the next `reach - stride`
rows too. A band hands them up if no band's first stripe, except the last band's, reads past the band's own rows, and if
the first stripe of each band, except the first, makes as many rows as the band above reads. Else bands are even, and
both bands compute these rows.
"""

from itertools import pairwise

from hexconv.kernel.host.bands import Band, BandEdges, balanced_edges, edge_rows, even_edges
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import ROW_BLOCK


def bands_of(chain: Chain, plan: Plan) -> BandEdges:
    """Where the bands of a plan begin."""
    return _handing(chain, plan) if seam_rows(chain, plan) else even_edges(chain, _count(chain, plan))


def _count(chain: Chain, plan: Plan) -> int:
    return min(plan.threads, chain.shapes[-1][1])


def _handing(chain: Chain, plan: Plan) -> BandEdges:
    """Where the bands begin if they hand rows up."""
    return balanced_edges(chain, _count(chain, plan), plan.h_split * ROW_BLOCK)


def seam_rows(chain: Chain, plan: Plan) -> dict[int, int]:
    """How many rows a band hands up of each intermediate; empty if no row is read twice, or bands are too short."""
    bands, convs = _handing(chain, plan), chain.conv
    if not bands.are_all_wide:
        return {}
    kept = [_read_above(chain, band) for band in bands.all]
    ends = [_first_stripe(chain, band, plan.h_split * ROW_BLOCK) for band in bands.all]
    edges = [edge_rows(chain, band.first, band.ahead) for band in bands.all]
    for tensor in range(1, len(convs)):
        height = chain.shapes[tensor][1]
        for above, below in pairwise(range(bands.bands)):
            handed = min(edges[below][tensor] + kept[below][tensor], height)
            if ends[above][tensor] > edges[below][tensor] or min(ends[below][tensor], height) < handed:
                return {}
    most = {tensor: max(rows[tensor] for rows in kept) for tensor in range(1, len(convs))}
    return {tensor: rows for tensor, rows in most.items() if rows} if bands.bands > 1 else {}


def _read_above(chain: Chain, band: Band) -> list[int]:
    """How many of a band's own rows of each tensor the band above reads; none of the input."""
    rows = [0, *(max(conv.reach[0] - conv.stride[0], 0) for conv in chain.conv[1:])]
    rows[-1] += band.ahead
    return rows


def _first_stripe(chain: Chain, band: Band, stripe_rows: int) -> list[int]:
    """One past the last row of each tensor that a band's first stripe needs, bottom padding included."""
    ends = [min(band.first + stripe_rows, band.last)]
    for index in range(len(chain.conv) - 1, -1, -1):
        conv = chain.conv[index]
        end = max(min(ends[0], chain.shapes[index + 1][1]), 0)
        behind = band.behind if 0 < index == len(chain.conv) - 1 else 0
        ends.insert(0, conv.rows_read(end) - conv.padding.top + behind)
    return ends


def computed_rows(chain: Chain, plan: Plan) -> list[int]:
    """How many rows of each tensor of one image all bands together compute; for the input, how many they read."""
    bands, heights = bands_of(chain, plan), [shape[1] for shape in chain.shapes]
    cuts = [heights] * bands.bands
    if seam_rows(chain, plan):
        cuts = [*(edge_rows(chain, band.first, band.ahead) for band in bands.all[1:]), heights]
    rows = [
        _rows_of_band(chain, plan.h_split * ROW_BLOCK, band, cut) for band, cut in zip(bands.all, cuts, strict=True)
    ]
    return [sum(tensor) for tensor in zip(*rows, strict=True)]


def _rows_of_band(chain: Chain, stripe_rows: int, band: Band, cut: list[int]) -> list[int]:
    """How many rows of each tensor a band computes; of intermediate t only rows below `cut[t]`."""
    rows, ended = [0] * len(chain.shapes), [0] * len(chain.shapes)
    for start in range(band.first, band.last, stripe_rows):
        begin, own_end = start, min(start + stripe_rows, band.last)
        rows[-1] += own_end - begin
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            below = conv.rows_read(own_end) - conv.padding.top
            above = begin * conv.stride[0] - conv.padding.top
            if start == band.first and 0 < tensor == len(chain.conv) - 1:
                above -= band.ahead  # `behind` makes rows sooner, not more of them
            begin = max(ended[tensor], above)
            ended[tensor] = max(min(below, chain.shapes[tensor][1]), 0)
            own_end = min(ended[tensor], cut[tensor]) if tensor else ended[tensor]
            rows[tensor] += max(own_end - begin, 0)
    return rows
