"""One conv with all that it reads and writes."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Number
from hexconv.schedule.host.filters import Filter
from hexconv.schedule.host.stage import Lines

Address = Callable[[Number, Number, Number], Number]
"""(row, column, vector of channels) -> element of the target."""


@dataclass(frozen=True)
class Conv:
    """A conv with its buffers.

    Attributes:
        name: of the conv, in listings.
        source: activations, flat.
        source_first: element where row `source_base` starts.
        lines: where their pixels lie.
        source_base: the row of the conv's input that row 0 of `source` holds.
        filter: the filter and its cache.
        panel_rows: of a panel; None where all rows of a stripe are one.
        bias: by output channel, whole blocks; None where there is none.
        target: where results go, flat.
        address: element of the target.
        is_output: whether the target leaves the chain: what it has no channel for is zero.
    """

    name: str
    source: tirx.Buffer
    source_first: Number
    lines: Lines
    source_base: Number
    filter: Filter
    panel_rows: int | None
    bias: tirx.Buffer | None
    target: tirx.Buffer
    address: Address
    is_output: bool

    def origin(self, row: Number, column: Number) -> Number:
        """Element of the source where the window of an output pixel starts."""
        stage = self.filter.stage
        top = row * stage.stride[0] - stage.padding[0] - self.source_base
        return self.source_first + top * self.lines.row + column * (stage.stride[1] * self.lines.pixel)
