"""Say how the rows of a chain follow from each other, and which of them each thread makes: no columns, no channels."""

from dataclasses import dataclass
from typing import Any

from hexconv.analyze.rows_stripes import RowStripes
from hexconv.kernel.depthwise import can_go_down, is_depthwise, tile_rows
from hexconv.spec import Chain
from hexconv.spec.extents import reads_input_rows


@dataclass(frozen=True)
class RowsOfConv:
    """How the rows of a conv follow from the rows of what it reads.

    Attributes:
        stride: the rows of the source from one row of the output to the next.
        reach: the rows of the source that a row of the output reads.
        together: the numbers of rows that are made together, the largest first; none unless the conv is depthwise.
        goes_down: whether tiles go down in stripes that are tall enough.
        rows: the logical rows of the output.
    """

    stride: int
    reach: int
    together: tuple[int, ...]
    goes_down: bool
    rows: int

    def rows_read(self, rows: Any) -> Any:
        """Count the rows of the source that neighbouring rows of the output read."""
        return (rows - 1) * self.stride + self.reach


@dataclass(frozen=True)
class RowsOfChain:
    """All that the counts of a chain depend on, but for its stripes.

    Attributes:
        convs: the convs.
        stored: the stored rows of every tensor; of the output those that are written.
        valid: the first and one past the last stored row of every tensor that holds a logical row.
        bands: for each thread, the first and one past the last row of every tensor that it makes.
        threads: the number of threads that the plan asks for.
        reads_input: whether the first conv reads a row of the input.
    """

    convs: tuple[RowsOfConv, ...]
    stored: tuple[int, ...]
    valid: tuple[tuple[int, int], ...]
    bands: tuple[tuple[tuple[int, int], ...], ...]
    threads: int
    reads_input: bool

    @classmethod
    def of(cls, planned: RowStripes) -> "RowsOfChain":
        """Take the rows of a chain from any of its plans, all of which have as many threads."""
        bands, tensors = planned.bands, range(len(planned.extents))
        return cls(
            convs=tuple(_rows_of_conv(planned.chain, index) for index in range(len(planned.chain.conv))),
            stored=tuple(span.rows for span in bands.spans),
            valid=tuple(extents.valid_rows for extents in planned.extents),
            bands=tuple(
                tuple((bands.first(tensor, band), bands.end(tensor, band)) for tensor in tensors)
                for band in range(bands.count)
            ),
            threads=planned.plan.threads,
            reads_input=reads_input_rows(planned.chain),
        )


def _rows_of_conv(chain: Chain, index: int) -> RowsOfConv:
    conv, rows = chain.conv[index], chain.shapes[index + 1][1]
    together = tile_rows(conv) if is_depthwise(chain, index) else ()
    return RowsOfConv(conv.stride[0], conv.reach[0], together, can_go_down(chain, index), rows)
