"""How the columns lie that strips keep of an intermediate: all its rows, each as long runs of bytes as in its cache.

    intermediate   NHCW4w32c        kept   NHCW32c      a run of columns for each row and block of channels
                   NHCBW4w32c              NHCBW32c     and for each byte of an element
                   NHCW32w4c               NHCW4c
"""

from hexconv.kernel.forms import Forms, has_bytes_apart
from hexconv.layout import Layout, packed
from hexconv.spec import Extents


def kept_layout(forms: Forms, tensor: int, extents: Extents, columns: int) -> Layout:
    """Return how so many columns of an intermediate lie while they are kept.

    Args:
        forms: the layouts of the nest.
        tensor: the number of the tensor.
        extents: its stored extents.
        columns: the columns that are kept.
    """
    shape, unit = (1, extents.rows, columns, extents.channels), forms.channel_units[tensor]
    if has_bytes_apart(forms.activations[tensor]):
        return packed(f"NHCBW{unit}c", (*shape, 2), logical="NHWCB")
    return packed(f"NHCW{unit}c", shape, logical="NHWC")
