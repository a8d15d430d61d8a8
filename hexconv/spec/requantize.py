"""From a 32-bit accumulator back to 8 or 16 bits: the integer step between two convs of a quantised chain."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.spec.fields import STRICT
from hexconv.spec.wrong import in_one_line

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Rounding = Literal["away", "up"]
ZeroPoint = Annotated[int, Field(ge=-128, le=255)]


@in_one_line("chain.conv.requantize")
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Requantize:
    """`output = saturate(zero_point + rounding_shift(high_half(accumulator, multiplier), shift))`.

    The arithmetic is TFLite's reference kernel (`MultiplyByQuantizedMultiplier`): the accumulator is shifted left by
    `shift` where it is positive, then multiplied by the Q0.31 `multiplier` with the high half of twice the product
    kept, rounded (saturating), then divided by 2**-shift where shift is negative, ties away from zero.

    Attributes:
        multiplier: Q0.31 fixed point, 2**30 is one half.
        shift: power of two, positive is left, as TFLite stores it.
        zero_point: of the output, in the range of its dtype.
        rounding: `"away"` is TFLite's (ties away from zero); `"up"` rounds ties up, as HVX's `vasr:rnd`.
    """

    multiplier: Annotated[int, Field(ge=1, le=2**31 - 1)]
    shift: Annotated[int, Field(ge=-31, le=30)] = 0
    zero_point: ZeroPoint = 0
    rounding: Rounding = "away"
