"""Cut the rows of a stripe on the host into panels; within a panel, the groups of output channels run one by one.

The sums of a group read all input channels of their pixels, and the filter of their own channels. Either a group goes
over all rows of the stripe, and these are fetched from the second-level cache again for each group:

    for group: for row: tiles                        fetched: rows * groups + filters

or over a panel of as many rows as stay in the first-level cache, and the filters are fetched again for each panel:

    for panel: for group: for row of the panel: tiles      fetched: rows + filters * panels

While nobody else uses a core, fetching is hidden; where another process shares its caches, fetching costs time. Panels
are used for convs that lose next to nothing by them on a core of their own; `python -m hexconv.bench.panels` times both
ways.
"""

from collections.abc import Callable
from dataclasses import dataclass

FIRST_CACHE_BYTES = 48 * 1024  # of Zen 5 and of Intel's cores since Ice Lake; others have 32 KiB

CYCLES_PER_BYTE = 1 / 200
"""The cycles of fetching a byte from the second-level cache: a tenth of the cost on a shared core.

On a core that is not shared it costs nothing, and panels must be cheap there. On a shared core it costs about 1/20: for
64x64 pixels, 128 to 128 to 128 channels with AVX2, panels save each of two cores 11 MB, and 0.12 of 1.30 ms.
"""

WORTH = 0.992  # the share of one panel's cycles that panels may take at most: cycles are known no better

Cycles = Callable[[int], float]
"""From a number of rows of an output to the cycles that computing them takes."""


@dataclass(frozen=True)
class Reads:
    """What one conv reads for one stripe of its output.

    Attributes:
        rows: rows of the output in the stripe.
        stride: rows of the source from one row of the output to the next.
        taps: rows of the source that one row of the output reads.
        dilation: rows of the source from one row of taps to the next.
        row_bytes: bytes of a row of the source.
        group_bytes: bytes of the filter for the largest group of output channels.
        filter_bytes: bytes of the whole filter.
        groups: groups of output channels.
    """

    rows: int
    stride: int
    taps: int
    dilation: int
    row_bytes: int
    group_bytes: int
    filter_bytes: int
    groups: int

    def source_bytes(self, rows: int) -> int:
        """Bytes of the source that `rows` rows of the output read; a stride or a dilation may step over rows."""
        # rows further apart than the taps reach share none: from there on each adds as many lines as the one before
        alike = min(rows, self.taps * self.dilation)
        each = self._lines(alike + 1) - self._lines(alike)
        return (self._lines(alike) + (rows - alike) * each) * self.row_bytes

    def _lines(self, rows: int) -> int:
        """Rows of the source that `rows` rows of the output read."""
        return len({row * self.stride + tap * self.dilation for row in range(rows) for tap in range(self.taps)})

    def fetched_bytes(self, rows: int) -> int:
        """Bytes fetched from the second-level cache for a panel of `rows` rows.

        Rows stay in the first-level cache if the filters of two groups fit beside them: between two reads of a row come
        the rest of one group's filter and some of the next one's.
        """
        source = self.source_bytes(rows)
        times = 1 if source + 2 * self.group_bytes <= FIRST_CACHE_BYTES else self.groups
        return source * times + self.filter_bytes

    def panels(self, rows: int) -> tuple[tuple[int, int], ...]:
        """Cut the stripe into panels of `rows` rows: (panels, rows of each); the last panel may have fewer."""
        whole, rest = divmod(self.rows, rows)
        return ((whole, rows), (1, rest)) if rest else ((whole, rows),)

    def stripe_bytes(self, rows: int) -> int:
        """Bytes fetched from the second-level cache for the whole stripe in panels of `rows` rows.

        >>> reads = Reads(8, 1, 1, 1, row_bytes=32768, group_bytes=8192, filter_bytes=65536, groups=8)
        >>> reads.stripe_bytes(8), reads.stripe_bytes(1)
        (2162688, 786432)
        """
        return sum(count * self.fetched_bytes(part) for count, part in self.panels(rows))


def rows_of_panel(reads: Reads, cycles: Cycles) -> int:
    """Choose the rows of a panel that take the fewest cycles to compute and fetch; all rows unless panels are worth it.

    Args:
        reads: what the conv reads for a stripe.
        cycles: from a number of rows to the cycles that computing them takes.

    >>> reads = Reads(8, 1, 1, 1, row_bytes=32768, group_bytes=8192, filter_bytes=65536, groups=8)
    >>> rows_of_panel(reads, lambda rows: 65536.0 * rows)
    1
    """

    def cost(rows: int) -> float:
        computing = sum(count * cycles(part) for count, part in reads.panels(rows))
        return computing + reads.stripe_bytes(rows) * CYCLES_PER_BYTE

    best = min(range(reads.rows, 0, -1), key=cost)
    return best if cost(best) <= WORTH * cost(reads.rows) else reads.rows
