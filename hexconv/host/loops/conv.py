"""One conv with the buffers that it reads and writes."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.host.loops.filters import Filter
from hexconv.host.loops.stage import Lines
from hexconv.schedule.block import Number

Address = Callable[[Number, Number, Number], Number]
"""(row, column, vector of channels) -> element of the target."""


@dataclass(frozen=True)
class Conv:
    """A conv with its buffers.

    Attributes:
        name: the name of the conv in listings.
        source: activations, flat.
        source_first: the element of `source` at which row `source_base` starts.
        lines: where the pixels of the source lie.
        source_base: the row of the conv's input that row 0 of `source` holds.
        filter: the filter and its cache.
        panel_rows: the rows of a panel; None where all rows of a stripe are one panel.
        bias: the bias by output channel, in whole blocks; None where there is none.
        slope: the slopes of a prelu, as the bias.
        target: the buffer of the results, flat.
        address: where a result lies in the target, by row, column and vector of channels.
        is_output: whether the target is the chain's output, whose lanes without a channel must be zero.
    """

    name: str
    source: tirx.Buffer
    source_first: Number
    lines: Lines
    source_base: Number
    filter: Filter
    panel_rows: int | None
    bias: tirx.Buffer | None
    slope: tirx.Buffer | None
    target: tirx.Buffer
    address: Address
    is_output: bool

    def origin(self, row: Number, column: Number) -> Number:
        """Return the element of the source at which the window of an output pixel starts."""
        stage = self.filter.stage
        top = stage.first_read(row) - self.source_base
        return self.source_first + top * self.lines.row + column * (stage.conv.stride[1] * self.lines.pixel)
