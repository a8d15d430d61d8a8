"""Which rows the bands of a host kernel compute, and which they hand up to the band above: the closed form.

`hexconv.host.edges` says where bands begin. A band's own rows of a tensor begin at the row that the first row of
the band's output reads, carried back through the convs by `* stride - padding.top` for each, but at 0 at least. Of the
last intermediate, the rows that the band makes ahead come before that. The band above reads the next `reach - stride`
rows too. A band hands them up if no band's first stripe, except the last band's, reads past the band's own rows, and if
the first stripe of each band, except the first, makes as many rows as the band above reads. Else bands are even, and
both bands compute these rows.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hexconv.host.edges import Band, BandEdges, balanced_edges, edge_rows, even_edges, first_stripe
from hexconv.host.stripes import stripes_of
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import ROW_BLOCK


@dataclass(frozen=True)
class PlannedBands:
    """A chain under a plan of the host kernel; everything else is derived from it.

    Attributes:
        chain: the chain that is computed.
        plan: the plan that it is computed by.
    """

    chain: Chain
    plan: Plan

    @property
    def stripe_rows(self) -> int:
        """The rows of the output in a stripe."""
        return self.plan.h_split * ROW_BLOCK

    @cached_property
    def edges(self) -> BandEdges:
        """Where the bands begin."""
        return self._handing if self.seam_rows else even_edges(self.chain, self._handing.bands)

    @cached_property
    def _handing(self) -> BandEdges:
        """Where the bands begin if they hand rows up."""
        return balanced_edges(self.chain, min(self.plan.threads, self.chain.shapes[-1][1]), self.stripe_rows)

    @cached_property
    def seam_rows(self) -> dict[int, int]:
        """How many rows a band hands up of each intermediate; empty if no row is read twice, or bands are too short."""
        bands = self._handing
        if not bands.are_all_wide:
            return {}
        kept = [self._read_above(band) for band in bands.all]
        first = [first_stripe(self.chain, band, self.stripe_rows) for band in bands.all]
        edges = self._own_edges(bands)
        for tensor in range(1, len(self.chain.conv)):
            height = self.chain.shapes[tensor][1]
            for above, below in pairwise(range(bands.bands)):
                handed = min(edges[below][tensor] + kept[below][tensor], height)
                reads_past = first[above][tensor].below > edges[below][tensor]
                if reads_past or min(first[below][tensor].below, height) < handed:
                    return {}
        most = {tensor: max(rows[tensor] for rows in kept) for tensor in range(1, len(self.chain.conv))}
        return {tensor: rows for tensor, rows in most.items() if rows} if bands.bands > 1 else {}

    def _own_edges(self, bands: BandEdges) -> list[list[int]]:
        """For each band, the first row of every tensor that it computes itself."""
        return [edge_rows(self.chain, band.first, band.ahead) for band in bands.all]

    def _read_above(self, band: Band) -> list[int]:
        """How many of a band's own rows of each tensor the band above reads; none of the input."""
        rows = [0, *(max(conv.reach[0] - conv.stride[0], 0) for conv in self.chain.conv[1:])]
        rows[-1] += band.ahead
        return rows

    @cached_property
    def held_rows(self) -> list[int]:
        """The most rows of each tensor that a stripe of any band reads, the input first."""
        stripes = (stripe for band in self.edges.all for stripe in stripes_of(self.chain, self.stripe_rows, band))
        return [max(rows.held for rows in tensor) for tensor in zip(*stripes, strict=True)]

    @cached_property
    def computed_rows(self) -> list[int]:
        """How many rows of each tensor of one image all bands compute together; for the input, how many they read."""
        heights = [shape[1] for shape in self.chain.shapes]
        limits = [heights] * self.edges.bands
        if self.seam_rows:
            limits[:-1] = [[heights[0], *map(min, e[1:], heights[1:])] for e in self._own_edges(self.edges)[1:]]
        stripes = [
            stripe
            for band, limit in zip(self.edges.all, limits, strict=True)
            for stripe in stripes_of(self.chain, self.stripe_rows, band, limit)
        ]
        return [sum(rows.new for rows in tensor) for tensor in zip(*stripes, strict=True)]
