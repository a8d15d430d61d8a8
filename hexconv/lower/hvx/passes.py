"""The passes over a window that products of int16 take, since the multiply instructions take bytes.

There is a pass for each pair of bytes, the highest first; between passes the sums grow by 8 bits:

    (256 a + b) (256 v + w) = 256 (256 a v + a w + b v) + b w

a and b are the high and low byte of an activation: a is signed, b is not. v and w are those of a weight, if weights are
int16 too. vrmpy doesn't saturate, so it doesn't matter if sums leave 32 bits on the way. The sum of a window has
activations alone: only those passes add to it that multiply the low bytes of the filter, or all of the filter.
"""

from dataclasses import dataclass

from hexconv.lower.hvx.inner import InnerConv


@dataclass(frozen=True)
class Pass:
    """The bytes of elements that a pass over a window multiplies.

    Attributes:
        source_byte: bytes from the first byte of the source to those that this pass multiplies.
        filter_byte: bytes from the first byte of the filter to those that this pass multiplies.
        is_signed: whether the bytes of the source are signed.
        sums_windows: whether the sums of windows are made from this pass.
    """

    source_byte: int
    filter_byte: int
    is_signed: bool
    sums_windows: bool = True


def passes_of(conv: InnerConv) -> tuple[tuple[Pass, ...], ...]:
    """Return the passes of a conv in groups; sums grow by 8 bits between groups, not between the passes of one."""
    low, filter_low = conv.plane.low_bytes, conv.filter_low_bytes
    if not low:
        return ((Pass(0, 0, conv.is_signed),),)
    if not filter_low:
        return (Pass(0, 0, True),), (Pass(low, 0, False),)
    middle = Pass(0, filter_low, True), Pass(low, 0, False, sums_windows=False)
    return (Pass(0, 0, True, sums_windows=False),), middle, (Pass(low, filter_low, False),)
