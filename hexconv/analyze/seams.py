"""Which rows the bands of a host kernel compute, and which they hand up to the band above: the closed form.

Where bands begin is `hexconv.kernel.host.bands`. A band's own rows of a tensor begin where the first row of the band's
output, carried back through the convs, begins: `* stride - padding.top` per conv, 0 at least, and of the last
intermediate the rows before that the band makes ahead. The band above reads on for `reach - stride` rows. Handed up
they are where no first stripe but the last band's reads past its own rows, and each but the first band's makes as many
as are read from above. Else bands are even, and both compute them.
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
    """Where they begin if they hand rows up."""
    return balanced_edges(chain, _count(chain, plan), plan.h_split * ROW_BLOCK)


def seam_rows(chain: Chain, plan: Plan) -> dict[int, int]:
    """Per intermediate, rows that a band hands up; nothing where none are read twice, or bands are too short."""
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
    """Per tensor, rows that the band above reads of a band's own; none of the input."""
    rows = [0, *(max(conv.reach[0] - conv.stride[0], 0) for conv in chain.conv[1:])]
    rows[-1] += band.ahead
    return rows


def _first_stripe(chain: Chain, band: Band, stripe_rows: int) -> list[int]:
    """Per tensor, one past the last row that a band's first stripe needs of it, bottom padding included."""
    ends = [min(band.first + stripe_rows, band.last)]
    for index in range(len(chain.conv) - 1, -1, -1):
        conv = chain.conv[index]
        end = max(min(ends[0], chain.shapes[index + 1][1]), 0)
        behind = band.behind if 0 < index == len(chain.conv) - 1 else 0
        ends.insert(0, (end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top + behind)
    return ends


def computed_rows(chain: Chain, plan: Plan) -> list[int]:
    """Per tensor, rows of one image that all bands together compute; of the input, that they read."""
    bands, heights = bands_of(chain, plan), [shape[1] for shape in chain.shapes]
    cuts = [heights] * bands.bands
    if seam_rows(chain, plan):
        cuts = [*(edge_rows(chain, band.first, band.ahead) for band in bands.all[1:]), heights]
    rows = [
        _rows_of_band(chain, plan.h_split * ROW_BLOCK, band, cut) for band, cut in zip(bands.all, cuts, strict=True)
    ]
    return [sum(tensor) for tensor in zip(*rows, strict=True)]


def _rows_of_band(chain: Chain, stripe_rows: int, band: Band, cut: list[int]) -> list[int]:
    """Per tensor, rows that a band computes, none from row `cut` on of the intermediates."""
    rows, ended = [0] * len(chain.shapes), [0] * len(chain.shapes)
    for start in range(band.first, band.last, stripe_rows):
        begin, own_end = start, min(start + stripe_rows, band.last)
        rows[-1] += own_end - begin
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            below = (own_end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top
            above = begin * conv.stride[0] - conv.padding.top
            if start == band.first and 0 < tensor == len(chain.conv) - 1:
                above -= band.ahead  # rows behind are made sooner, not more
            begin = max(ended[tensor], above)
            ended[tensor] = max(min(below, chain.shapes[tensor][1]), 0)
            own_end = min(ended[tensor], cut[tensor]) if tensor else ended[tensor]
            rows[tensor] += max(own_end - begin, 0)
    return rows
