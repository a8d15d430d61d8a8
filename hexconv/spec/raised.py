"""How sums of int16 that int32 can't hold saturate in HVX, which multiplies the high bytes of activations first.

Let T be a sum of a * (w - zw) and the bias, u the unsigned bytes of the filter, z their zero point, W the sum of the
activations in the window. HVX sums high bytes times u, then takes 256 times that, then adds low bytes times u:

    T = 256 * high + low        high = sum(high bytes * u) - z * (W >> 8)
                                low  = sum(low bytes * u) - z * (W & 255) + bias

`high` fits a word whatever T is. It is held within a limit L before it is multiplied, so that 256 * L + low fits too:

    where abs(high) <= L, nothing has changed
    else                  abs(256 * L + low) >= 256 * L - abs(low) >= S, and so is abs(T), with T's sign

So what comes out is T wherever T is within S, and holding it within S saturates as the definition says. A filter that
sums its windows tile by tile has the high bytes and the low bytes of W apart; then `low` has a smaller range.
"""

from dataclasses import dataclass
from math import ceil

BYTE = 255
RAISED = 256
"""A unit of the sums of high bytes."""


@dataclass(frozen=True)
class Raised:
    """What keeps sums of int16 within a word while they grow by a byte.

    Attributes:
        high: the largest absolute value of a sum of high bytes that is kept.
        sum: the absolute value at which the whole sum saturates.
        reach: the largest absolute value of what is added to 256 times the sum of high bytes.
    """

    high: int
    sum: int
    reach: int

    @property
    def most(self) -> int:
        """The largest absolute value that a word holds on the way."""
        return RAISED * self.high + self.reach


def raised(saturates_at: int, products: int, filter_l1: int, zero_point: int, added: int) -> Raised:
    """Return the limits of a conv.

    Args:
        saturates_at: where its sums saturate.
        products: the most elements of the image that one window can have.
        filter_l1: the largest sum of absolute values of the filter of one output channel, its zero point subtracted.
        zero_point: the zero point of the filter as unsigned bytes.
        added: the largest absolute value of the bias and of what narrowing adds to it.

    >>> raised(2**29, 4608, 30_000, 128, 0)
    Raised(high=2714555, sum=536870912, reach=158055120)
    """
    of_bytes = BYTE * min(BYTE * products, filter_l1 + zero_point * products)
    reach = max(of_bytes, BYTE * max(filter_l1, zero_point)) + added
    return Raised(ceil((saturates_at + reach) / RAISED), saturates_at, reach)
