"""The panels of a conv's rows: what the rule of `hexconv.spec.panels` asks for."""

from collections.abc import Callable

from hexconv.schedule.host.filters import Filter
from hexconv.schedule.host.stage import Lines
from hexconv.spec.panels import Cycles, Reads
from hexconv.spec.registers import ELEMENT_BYTES
from hexconv.spec.tiles import MOST_ROWS, cycles_per_product

Panels = Callable[[Reads, Cycles], int]
"""What a conv reads for a stripe, the cycles of its rows -> rows of a panel."""


def panel_rows(filter: Filter, lines: Lines, panels: Panels) -> int | None:
    """Rows of a panel; None where all rows are one, however many a stripe has."""
    reads = _reads(filter, lines)
    products = filter.stage.taps * filter.stage.in_channels
    rows = panels(reads, lambda rows: products * cycles_per_product(filter.tiling, rows, filter.vectors))
    return None if rows == reads.rows else rows


def _reads(filter: Filter, lines: Lines) -> Reads:
    """What a conv reads for a stripe."""
    stage = filter.stage
    return Reads(
        rows=min(stage.out_size[0], MOST_ROWS),
        stride=stage.stride[0],
        reach=(stage.kernel[0] - 1) * stage.dilation[0] + 1,
        row_bytes=lines.row * ELEMENT_BYTES,
        group_bytes=stage.taps * stage.in_channels * filter.tiling.vectors * filter.registers.lanes * ELEMENT_BYTES,
        groups=sum(group.count for group in filter.groups),
    )
