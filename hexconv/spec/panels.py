"""How the rows of a stripe are cut on the host into panels, which all groups of output channels go over one by one.

The sums of a group read all input channels of their pixels, and the filter of their own channels. Either a group goes
over all rows of the stripe, and these are fetched from the second-level cache again for each group:

    for group: for row: tiles                        fetched: rows * groups + filters

or over a panel of as many rows as stay in the first-level cache, and the filters are fetched again for each panel:

    for panel: for group: for row of the panel: tiles      fetched: rows + filters * panels

While nobody else uses a core, fetching is hidden; where another process shares its caches, it is not. Panels are for
convs that lose next to nothing by them in the first case; `python -m hexconv.bench.panels` measures both ways.
"""

from collections.abc import Callable
from dataclasses import dataclass

FIRST_CACHE_BYTES = 48 * 1024
CYCLES_PER_BYTE = 1 / 200  # from the second-level cache: nothing on a core of one's own, 1/20 on a shared one

WORTH = 0.992  # of the cycles of one panel: the cycles of tiles are known no better than that

Cycles = Callable[[int], float]
"""Rows of an output -> cycles to compute them."""


@dataclass(frozen=True)
class Reads:
    """What one conv reads for one stripe of its output.

    Attributes:
        rows: of the output in the stripe.
        stride: rows of the source from one of the output to the next.
        reach: rows of the source that one of the output reads, first to last.
        row_bytes: of the source.
        group_bytes: of the filter, for one group of output channels.
        groups: of output channels.
    """

    rows: int
    stride: int
    reach: int
    row_bytes: int
    group_bytes: int
    groups: int

    def source_bytes(self, rows: int) -> int:
        """That so many rows of the output read."""
        return ((rows - 1) * self.stride + self.reach) * self.row_bytes

    def fetched_bytes(self, rows: int) -> int:
        """From the second-level cache, for a panel of so many rows.

        >>> reads = Reads(rows=8, stride=1, reach=1, row_bytes=32768, group_bytes=8192, groups=8)
        >>> reads.fetched_bytes(8), 8 * reads.fetched_bytes(1)
        (2162688, 786432)
        """
        source = self.source_bytes(rows)
        times = 1 if source + self.group_bytes <= FIRST_CACHE_BYTES else self.groups
        return source * times + self.group_bytes * self.groups

    def panels(self, rows: int) -> tuple[tuple[int, int], ...]:
        """All of the stripe in panels of so many rows: (panels, rows of each); the last one may have fewer."""
        whole, rest = divmod(self.rows, rows)
        return ((whole, rows), (1, rest)) if rest else ((whole, rows),)


def rows_of_panel(reads: Reads, cycles: Cycles) -> int:
    """The rows of a panel for which computing and fetching take the fewest cycles; all, but where fewer are worth it.

    Args:
        reads: what is fetched.
        cycles: what computing takes.

    >>> reads = Reads(rows=8, stride=1, reach=1, row_bytes=32768, group_bytes=8192, groups=8)
    >>> rows_of_panel(reads, lambda rows: 65536.0 * rows)
    1
    """

    def cost(rows: int) -> float:
        return sum(
            count * (cycles(part) + reads.fetched_bytes(part) * CYCLES_PER_BYTE) for count, part in reads.panels(rows)
        )

    best = min(range(reads.rows, 0, -1), key=cost)
    return best if cost(best) <= WORTH * cost(reads.rows) else reads.rows
