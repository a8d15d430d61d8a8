"""The panels of a conv's rows: the values that the rule of `hexconv.host.panels` needs."""

import math
from collections.abc import Callable, Sequence

from hexconv.host.loops.filters import Filter
from hexconv.host.loops.stage import Lines, Stage
from hexconv.host.panels import Cycles, Reads
from hexconv.host.registers import ELEMENT_BYTES
from hexconv.host.tiles import cycles_per_product

Panels = Callable[[Reads, Cycles], int]
"""The rule that gives the rows of a panel, from what a conv reads for a stripe and the cycles of its rows."""


def panel_rows(filter: Filter, lines: Lines, rows: int, panels: Panels) -> int | None:
    """Return the rows of a panel, where a stripe has `rows` rows of the conv; None where they are one panel."""
    products = filter.stage.taps * filter.stage.in_channels

    def cycles(some: int) -> float:
        return products * cycles_per_product(filter.tiling, some, filter.vectors)

    of_panel = panels(_reads(filter, lines, rows), cycles)
    return None if of_panel == rows else of_panel


def rows_of_stripe(stages: Sequence[Stage], number: int, stripe_rows: int) -> int:
    """Return the rows of a conv that are new in a stripe of the chain's output; the first stripe has more."""
    strides = math.prod(stage.conv.stride[0] for stage in stages[number + 1 :])
    return min(stripe_rows * strides, stages[number].out_size[0])


def _reads(filter: Filter, lines: Lines, rows: int) -> Reads:
    """Return what a conv reads for a stripe."""
    stage, groups = filter.stage, filter.groups
    vector_bytes = stage.taps * stage.in_channels * filter.registers.lanes * ELEMENT_BYTES
    return Reads(
        rows=rows,
        stride=stage.conv.stride[0],
        taps=stage.conv.kernel[0],
        dilation=stage.conv.dilation[0],
        row_bytes=lines.row * ELEMENT_BYTES,
        group_bytes=max(group.vectors for group in groups) * vector_bytes,
        filter_bytes=filter.vectors * vector_bytes,
        groups=sum(group.count for group in groups),
    )
