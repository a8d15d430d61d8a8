"""How the columns lie that strips keep of a tensor: all its rows, each in the same runs as in its cache.

cache      NHCW4w32c     kept   [rows, blocks of channels, columns, 32]
               NHCBW4w32c           [rows, blocks of channels, bytes of an element, columns, 32]
               NHCW32w4c            [rows, blocks of channels, columns, 4], and so on for 8 and 16
               NHWC                 [rows, columns, channels]

A run has some columns of a row, one after the other, with all channels that lie together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from hexconv.kernel.layouts import NestLayouts
from hexconv.layout import Layout
from hexconv.spec import Conv2d, tensor_extents
from hexconv.spec.strips import Strips

WIDTHS_BYTES = (128, 8, 4, 2, 1)
"""The bytes that are copied at a time: a whole vector, or what one scalar register holds."""


@dataclass(frozen=True)
class KeptRuns:
    """The runs of the columns that strips keep of one tensor.

    Attributes:
        tensor: the number of the tensor; 0 is the input.
        made: the columns of a strip that come before those that an earlier strip has left.
        columns: the columns that are kept.
        rows: the rows of the tensor.
        outer: the sizes between rows and columns: blocks of channels, bytes of an element.
        row_elements: the elements of a run of all columns in the cache.
        column_elements: the elements of a column of a run.
    """

    tensor: int
    made: int
    columns: int
    rows: int
    outer: tuple[int, ...]
    row_elements: int
    column_elements: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all that is kept."""
        return (1, self.rows, *self.outer, self.columns, self.column_elements)

    @property
    def count(self) -> int:
        """The runs of a row."""
        return prod(self.outer)

    @property
    def run_elements(self) -> int:
        """The elements of a run that is kept."""
        return self.columns * self.column_elements

    def lanes(self, element_bytes: int) -> int:
        """Return how many elements can be copied at a time, so that every copy is aligned."""
        elements = gcd(self.run_elements, self.made * self.column_elements, self.row_elements)
        aligned = elements * element_bytes
        return next(width for width in WIDTHS_BYTES if aligned % width == 0) // element_bytes


def kept_runs(strips: Strips, layouts: NestLayouts) -> list[KeptRuns]:
    """Return the runs of every tensor of which strips keep columns."""
    return [runs for tensor in range(len(strips.tensors)) if (runs := kept_runs_of(strips, layouts, tensor))]


def kept_runs_of(strips: Strips, layouts: NestLayouts, tensor: int) -> KeptRuns | None:
    """Return the runs of one tensor; None where strips keep none of its columns."""
    columns = strips.tensors[tensor]
    if not columns.kept:
        return None
    rows = tensor_extents(strips.chain)[tensor].rows
    return KeptRuns(tensor, columns.made, columns.kept, rows, *_run(layouts.activations[tensor]))


def rows_left_out(readers: Sequence[Conv2d], stripe_rows: int) -> int:
    """Count the rows of a tensor between two stripes, which neither reads, since a stride steps over them.

    Args:
        readers: the convs that follow the tensor, up to the output.
        stripe_rows: the rows of the output in a stripe.

    >>> one, two = Conv2d(out_channels=8, stride=2), Conv2d(out_channels=8, kernel=(3, 3), stride=2)
    >>> [rows_left_out(readers, 6) for readers in ([two], [one], [two, one])]
    [0, 1, 1]
    """
    apart = under = stripe_rows
    for conv in reversed(readers):
        apart, under = apart * conv.stride[0], conv.rows_read(under)
    return max(apart - under, 0)


def _run(layout: Layout) -> tuple[tuple[int, ...], int, int]:
    """Return the sizes between rows and columns, and the elements of a run of all columns and of one column."""
    shape, names = layout.physical_shape, [output.name for output in layout.outputs]
    first = names.index("W")
    elements = prod(shape[first:])
    return shape[2:first], elements, elements // layout.stored_extent("W")
