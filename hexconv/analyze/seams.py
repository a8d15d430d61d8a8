"""Which rows the bands of a host kernel compute, and which they hand up to the band above: the closed form.

Where bands begin is `hexconv.spec.bands`. A band's own rows of a tensor begin where the first row of the band's output,
carried back through the convs, begins: `* stride - padding.top` per conv, 0 at least, and of the last intermediate the
rows before that the band makes ahead. The band above reads on for `reach - stride` rows. Handed up they are where no
first stripe but the last band's reads past its own rows, and each but the first band's makes as many as are read from
above. Else bands are even, and both compute them.
"""

from itertools import pairwise

from hexconv.spec import Chain, Plan
from hexconv.spec.bands import BandEdges, balanced_edges, edge_rows, even_edges
from hexconv.spec.extents import ROW_BLOCK


def bands_of(chain: Chain, plan: Plan) -> BandEdges:
    """Where the bands of a plan begin."""
    return _handing(chain, plan) if seam_rows(chain, plan) else even_edges(chain, _count(chain, plan))


def _count(chain: Chain, plan: Plan) -> int:
    return min(plan.threads, chain.shapes[-1][1])


def _handing(chain: Chain, plan: Plan) -> BandEdges:
    """Where they begin if they hand rows up."""
    return balanced_edges(chain, _count(chain, plan))


def seam_rows(chain: Chain, plan: Plan) -> dict[int, int]:
    """Per intermediate, rows that a band hands up; nothing where none are read twice, or bands are too short."""
    bands, convs = _handing(chain, plan), chain.conv
    if not bands.are_all_wide:
        return {}
    kept = {tensor: convs[tensor].reach[0] - convs[tensor].stride[0] for tensor in range(1, len(convs))}
    if len(convs) > 1:
        kept[len(convs) - 1] += max(bands.ahead)
    kept = {tensor: rows for tensor, rows in kept.items() if rows > 0}
    ends = [_first_stripe(chain, min(first + plan.h_split * ROW_BLOCK, last)) for first, last in pairwise(bands.output)]
    edges = [edge_rows(chain, *edge) for edge in zip(bands.output[:-1], bands.ahead, strict=True)]
    for tensor in range(1, len(convs)):
        height = chain.shapes[tensor][1]
        for above, below in pairwise(range(bands.bands)):
            handed = min(edges[below][tensor] + kept.get(tensor, 0), height)
            if ends[above][tensor] > edges[below][tensor] or min(ends[below][tensor], height) < handed:
                return {}
    return kept if bands.bands > 1 else {}


def _first_stripe(chain: Chain, end: int) -> list[int]:
    """Per tensor, one past the last row that a band's first stripe reads of it, bottom padding included."""
    ends = [end]
    for index in range(len(chain.conv) - 1, -1, -1):
        conv = chain.conv[index]
        end = max(min(ends[0], chain.shapes[index + 1][1]), 0)
        ends.insert(0, (end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top)
    return ends


def computed_rows(chain: Chain, plan: Plan) -> list[int]:
    """Per tensor, rows of one image that all bands together compute; of the input, that they read."""
    bands, heights = bands_of(chain, plan), [shape[1] for shape in chain.shapes]
    cuts = [heights] * bands.bands
    if seam_rows(chain, plan):
        cuts = [edge_rows(chain, *edge) for edge in zip(bands.output[1:-1], bands.ahead[1:], strict=True)] + [heights]
    rows = [
        _rows_of_band(chain, plan.h_split * ROW_BLOCK, *band, ahead, cut)
        for band, ahead, cut in zip(pairwise(bands.output), bands.ahead, cuts, strict=True)
    ]
    return [sum(tensor) for tensor in zip(*rows, strict=True)]


def _rows_of_band(chain: Chain, stripe_rows: int, first: int, last: int, ahead: int, cut: list[int]) -> list[int]:
    """Per tensor, rows that a band computes, none from row `cut` on of the intermediates."""
    rows, ended = [0] * len(chain.shapes), [0] * len(chain.shapes)
    for start in range(first, last, stripe_rows):
        begin, own_end = start, min(start + stripe_rows, last)
        rows[-1] += own_end - begin
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            below = (own_end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top
            above = begin * conv.stride[0] - conv.padding.top
            above -= ahead if start == first and 0 < tensor == len(chain.conv) - 1 else 0
            begin = max(ended[tensor], above)
            ended[tensor] = max(min(below, chain.shapes[tensor][1]), 0)
            own_end = min(ended[tensor], cut[tensor]) if tensor else ended[tensor]
            rows[tensor] += max(own_end - begin, 0)
    return rows
