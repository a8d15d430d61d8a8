"""Which rows the bands of a host kernel compute, and which they hand up to the band above: the closed form.

A band's own rows of a tensor begin where the first row of the band's output, carried back through the convs, begins:
`* stride - padding.top` per conv, 0 at least. The band above reads on for `reach - stride` rows. Handed up they are
where no first stripe but the last band's reads past its own rows, and each but the first band's makes as many as are
read from above. Else both bands compute them.
"""

from itertools import pairwise

from hexconv.spec import Chain, Plan
from hexconv.spec.extents import ROW_BLOCK


def bands_of(chain: Chain, plan: Plan) -> list[tuple[int, int]]:
    """First row of the output and one past the last, of every band."""
    height = chain.shapes[-1][1]
    count = min(plan.threads, height)
    return list(pairwise([band * height // count for band in range(count + 1)]))


def seam_rows(chain: Chain, plan: Plan) -> dict[int, int]:
    """Per intermediate, rows that a band hands up; nothing where none are read twice, or bands are too short."""
    kept = {tensor: chain.conv[tensor].reach[0] - chain.conv[tensor].stride[0] for tensor in range(1, len(chain.conv))}
    kept = {tensor: rows for tensor, rows in kept.items() if rows > 0}
    bands = bands_of(chain, plan)
    ends = [_first_stripe(chain, min(first + plan.h_split * ROW_BLOCK, last)) for first, last in bands]
    edges = [_own_rows(chain, first) for first, _ in bands]
    for tensor in range(1, len(chain.conv)):
        height = chain.shapes[tensor][1]
        for above, below in pairwise(range(len(bands))):
            handed = min(edges[below][tensor] + kept.get(tensor, 0), height)
            if ends[above][tensor] > edges[below][tensor] or min(ends[below][tensor], height) < handed:
                return {}
    return kept if len(bands) > 1 else {}


def _own_rows(chain: Chain, first: int) -> list[int]:
    """Per tensor, the first row of its own that a band computes."""
    rows = [first]
    for conv in reversed(chain.conv):
        rows.insert(0, max(rows[0] * conv.stride[0] - conv.padding.top, 0))
    return rows


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
    uncut = [heights] * len(bands)
    handed = [_own_rows(chain, first) for first, _ in bands[1:]] + [heights]
    cuts = handed if seam_rows(chain, plan) else uncut
    rows = [_rows_of_band(chain, plan.h_split * ROW_BLOCK, *band, cut) for band, cut in zip(bands, cuts, strict=True)]
    return [sum(tensor) for tensor in zip(*rows, strict=True)]


def _rows_of_band(chain: Chain, stripe_rows: int, first: int, last: int, cut: list[int]) -> list[int]:
    """Per tensor, rows that a band computes, none from row `cut` on of the intermediates."""
    rows, ended = [0] * len(chain.shapes), [0] * len(chain.shapes)
    for begin in range(first, last, stripe_rows):
        own_end = min(begin + stripe_rows, last)
        rows[-1] += own_end - begin
        for tensor in range(len(chain.conv) - 1, -1, -1):
            conv = chain.conv[tensor]
            below = (own_end - 1) * conv.stride[0] + conv.reach[0] - conv.padding.top
            begin = max(ended[tensor], begin * conv.stride[0] - conv.padding.top)
            ended[tensor] = max(min(below, chain.shapes[tensor][1]), 0)
            own_end = min(ended[tensor], cut[tensor]) if tensor else ended[tensor]
            rows[tensor] += max(own_end - begin, 0)
    return rows
