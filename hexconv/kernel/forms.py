"""How every tensor of a chain lies in a nest: the layouts that its caches and filters have.

Each nest says its own: the document's `hexconv.kernel.documented`, that of rows `hexconv.kernel.hvx.rows`.
"""

from dataclasses import dataclass

from hexconv.layout import Layout, packed
from hexconv.spec import Chain, Extents

ACTIVATION_TAG = "NHWC8h8w32c"
BYTES_AXIS = "B"
"""The digit of layouts that counts the bytes of an element."""


@dataclass(frozen=True)
class Forms:
    """The layouts of one nest.

    Attributes:
        activations: of the input cache, every intermediate and the output cache.
        output: of the output; that of its cache, or another one.
        filters: one per conv; both the argument and its cache.
        row_units: per activation, the rows that one step along its axis H counts: 8 or 1.
        channel_units: per activation, the blocks of 32 channels that one step along its axis C counts.
        filter_dtype: of the elements of filters.
        filter_shift: what laying a filter out adds to its elements.
    """

    activations: tuple[Layout, ...]
    output: Layout
    filters: tuple[Layout, ...]
    row_units: tuple[int, ...]
    channel_units: tuple[int, ...]
    filter_dtype: str
    filter_shift: int = 0

    @property
    def has_rows(self) -> bool:
        """Whether intermediates are counted in rows, not in slabs of 8."""
        return self.row_units[0] == 1

    @property
    def has_output_rows(self) -> bool:
        """Whether the output cache is, too."""
        return self.row_units[-1] == 1

    @property
    def lays_output_out(self) -> bool:
        """Whether writing the output cache back changes its layout."""
        return self.output != self.activations[-1]


def has_bytes_apart(layout: Layout) -> bool:
    """Whether the bytes of an element have a digit of their own."""
    return any(axis.name == BYTES_AXIS for axis in layout.axes)


def output_layout(chain: Chain) -> Layout:
    """How the output of a chain lies.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 8, 9, 8), output_layout="NHCW32c", conv=(Conv2d(out_channels=33),))
    >>> output_layout(chain).physical_shape
    (1, 8, 2, 9, 32)
    """
    return packed(chain.output_layout, chain.shapes[-1], logical="NHWC")


def logical(extents: Extents) -> tuple[int, int, int, int]:
    """The stored part of a tensor, NHWC."""
    return (extents.batch, extents.rows, extents.columns, extents.channels)
