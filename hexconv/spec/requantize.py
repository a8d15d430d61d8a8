"""Requantisation: narrow 32-bit sums to 8 or 16 bits, the integer step between two convs of a quantised chain."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.spec.choices import Engine
from hexconv.spec.fields import STRICT, in_one_line

Rounding = Literal["away", "up", "even"]
PerChannel = Literal["per_channel"]
PER_CHANNEL: PerChannel = "per_channel"
Multiplier = Annotated[int, Field(ge=1, le=2**31 - 1)]
Shift = Annotated[int, Field(ge=-31, le=30)]
FractionBits = Annotated[int, Field(ge=1, le=30)]
ZeroPoint = Annotated[int, Field(ge=-128, le=255)]

LARGEST_MULTIPLIER = 2**31 - 1
SMALLEST_SHIFT = -31
MOST_LIFT = 30
"""With one bit more the high half of a product would have all of its bits, so that nothing is rounded."""
FRACTION_BITS = 31
"""The largest multiplier of a Q0.31 number: 2**31 would be one."""


@in_one_line("chain.conv.requantize")
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Requantize:
    """`output = saturate(zero_point + round(accumulator * multiplier * 2**(shift - 31)))`.

    There are four ways to round that product:

        away   TFLite's reference kernel (`MultiplyByQuantizedMultiplier`), which rounds twice: the accumulator is
               shifted left where `shift` is positive, multiplied with the high half of twice the product kept, rounded
               (saturating), then divided by 2**-shift where shift is negative, ties away from zero
        up     the same, the ties of the division up, as HVX's `vasr:rnd`
        even   the exact product, rounded once, half to even; with a multiplier that holds a float's 24 bits this is
               `rint(accumulator * scale)`, ONNX Runtime's QLinearConv but for its roundings to float32
    even, with fraction_bits
               the exact product, rounded half up to so many binary places, then half to even. Products next to a half
               are taken for a half, as where ONNX Runtime rounds them to float32:
               `q = (accumulator * multiplier * 2**(shift + fraction_bits) + 2**30) >> 31`, and then
               `rint(q / 2**fraction_bits)`, all of it exact

    Attributes:
        multiplier: the factor in Q0.31 fixed point, so that 2**30 is one half; `"per_channel"`: an int32 of 1 to 2**31
            - 1 for each output channel. These are weights of the chain (`multiplier1`, ...).
        shift: a power of two, positive to the left, as TFLite stores it; `"per_channel"`: an int32 of -31 to 0 for each
            output channel (`shift1`, ...), if multipliers are per channel too.
        zero_point: the zero point of the output, in the range of its dtype.
        rounding: how the product is rounded: `"away"` and `"up"` round twice, `"even"` rounds the exact product once.
        fraction_bits: how many binary places of the product are kept before it is rounded half to even; if left out,
            all. It goes with `rounding = "even"` and one shift for all channels; `shift + fraction_bits` is 0 to 30.
        clamp: the least and the most code that the output may have, as a relu, relu6 or clip makes it; if left out, the
            range of its dtype.
        least_odd: for multipliers per channel, the least number that is left of any of them after it is divided by 2 as
            often as that goes; if left out, nothing is known of them. From 512 on (131072 for int16) no product that
            isn't saturated lies half way between two results, and `"even"` takes fewer instructions.
        saturates_at: the absolute value at which sums, bias included, saturate before they are scaled. It is for
            chains whose sums can leave int32: 64 bits hold them until then. It changes no result where the output of
            such a sum is at an end of its range anyway.
        engine: how the matrix engine (`kernel = "hmx"`) requantises: `"exact"`, as stated here, by HVX, or `"fast"`, by
            its own convert. That is then what this conv means on every kernel: the nearest to what is stated here that
            a scale of 12 bits gives (`hexconv.compute.requantised`). For 8 bits.

    Raises:
        InputError: a shift for each channel beside one multiplier for all, a clamp that leaves nothing, `least_odd`
            beside one multiplier for all, or `fraction_bits` with a rounding or a shift that they don't go with.
    """

    multiplier: Multiplier | PerChannel
    shift: Shift | PerChannel = 0
    zero_point: ZeroPoint = 0
    rounding: Rounding = "away"
    fraction_bits: FractionBits | None = None
    clamp: tuple[int, int] | None = None
    least_odd: Multiplier | None = None
    saturates_at: Multiplier | None = None
    engine: Engine = "exact"

    def __post_init__(self) -> None:
        """Refuse fields that are valid alone but do not go together."""
        if self.shift == PER_CHANNEL and self.multiplier != PER_CHANNEL:
            raise ValueError("shift", PER_CHANNEL, 'a number, or multiplier = "per_channel" too')
        if self.clamp and self.clamp[0] >= self.clamp[1]:
            raise ValueError("clamp", str(list(self.clamp)), "[least, most], two codes at least")
        if self.least_odd is not None and self.multiplier != PER_CHANNEL:
            known = f'multiplier = "{PER_CHANNEL}", or no least_odd: that of one multiplier is known'
            raise ValueError("least_odd", f"{self.least_odd} beside one multiplier", known)
        if self.fraction_bits is not None:
            self._check_fraction_bits(self.fraction_bits)

    def _check_fraction_bits(self, bits: int) -> None:
        """Refuse binary places that do not go with the rounding or the shift."""
        where = "fraction_bits"
        if self.rounding != "even":
            raise ValueError(where, f'{bits} with rounding = "{self.rounding}"', 'rounding = "even", or none')
        if not isinstance(self.shift, int):
            why = "one shift for all channels, or none: a channel without a shift would be lifted by all of these bits"
            raise ValueError(where, f'{bits} with shift = "{self.shift}"', why)
        if not 0 <= self.lift <= MOST_LIFT:
            asked = f"{max(1, -self.shift)} to {MOST_LIFT - max(0, self.shift)} with this shift"
            raise ValueError(where, f"{bits} with shift = {self.shift}", asked)

    @property
    def vectors(self) -> tuple[str, ...]:
        """The names of the fields that have one value per channel, of `multiplier` and `shift`.

        >>> Requantize(multiplier="per_channel", shift=-5).vectors
        ('multiplier',)
        """
        return tuple(name for name in ("multiplier", "shift") if getattr(self, name) == PER_CHANNEL)

    def codes(self, low: int, high: int) -> tuple[int, int]:
        """Return the least and the most that the output can be; `low` and `high` are the range of its dtype.

        >>> Requantize(multiplier=1, clamp=(0, 90)).codes(-128, 127)
        (0, 90)
        """
        return (max(low, self.clamp[0]), min(high, self.clamp[1])) if self.clamp else (low, high)

    def has_halves(self, bits: int) -> bool:
        """Return whether multipliers per channel can put an unsaturated result of `bits` bits half way between codes.

        >>> Requantize(multiplier="per_channel", least_odd=512).has_halves(8)
        False
        """
        return (self.least_odd or 1) < 2 << bits

    @property
    def lift(self) -> int:
        """How far sums are shifted to the left so that the high half of their product has `fraction_bits`; else 0.

        >>> Requantize(multiplier=1 << 30, shift=-9, rounding="even", fraction_bits=11).lift
        2
        """
        return self.fraction_bits + self.shift if self.fraction_bits and isinstance(self.shift, int) else 0

    @property
    def shifts_left(self) -> bool:
        """Whether sums are shifted left, by one shift for all channels."""
        return isinstance(self.shift, int) and self.shift > 0

    @property
    def most_multiplier(self) -> int:
        """The largest multiplier that a channel may have."""
        return self.multiplier if isinstance(self.multiplier, int) else LARGEST_MULTIPLIER
