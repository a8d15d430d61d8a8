"""Turn `Requantize` into the constants of a few HVX instruction sequences that narrow int32 sums to bytes or halfwords.

All arithmetic of 8 bits is on uint8: int8 activations and int8 filters are uint8 whose bytes and zero points are 128
larger. (The forms of vrmpy that take signed bytes want them in the scalar, where the activations are, or issue once a
packet.) int16 activations are two bytes.

Half to even. All sequences round up where half is left. Let a multiplier be m * 2**v, m odd, so that a result is
sum * m / 2**(t + 1) with t = 30 - shift - v. Half is left where sum is an odd number of times 2**t, say o, and what is
below it is even where o * m = 1 modulo 4. From such a sum one is taken, which is less than half a result. A result that
isn't cut has |o * m| < 2**(bits + 1): larger odd parts never show.

Half to even of a product of F fraction bits. Sums are lifted so far to the left that the high half of the product has
these bits, rounded. Half is left where its low F bits are 2**(F - 1), and what is below it is even where bit F is 0.
From such a product one is taken.
"""

from dataclasses import dataclass, replace

from hexconv.spec.requantize import FRACTION_BITS, Requantize

MOST_NARROWING_SHIFT = 15  # Narrowing shifts use the low 4 bits of their operand.
MOST_SECOND_SHIFT = 7  # a halfword that saturated, 32767, is still 255 after it
SUM_BITS = 32
BYTE_BITS, HALFWORD_BITS = 8, 16
SATURATING = 3
"""Instructions for a vector of sums that add a bias, saturating, and hold the sum between two limits."""
MADE_UNSIGNED = 128
"""What is added to int8 elements that are multiplied, or narrowed, as uint8."""


@dataclass(frozen=True)
class Halves:
    """The numbers half way above an even result: `number & mask == half`. The kernel subtracts one from each of them.

    Attributes:
        mask: a mask of the low bits, 32 at most.
        half: the value of the masked bits in such a number.
    """

    mask: int
    half: int


@dataclass(frozen=True)
class Shifts:
    """y = saturate_uint8(round((sum >> first) >> second)): for multipliers that are powers of two.

    Attributes:
        first: the shift from words to saturated halfwords.
        rounds: whether the first shift rounds too.
        second: the shift from halfwords to saturated bytes, which always rounds; 0 where the result is halfwords.
        halves: the sums that round to even, offset included; None where ties go up.
    """

    first: int
    rounds: bool
    second: int
    halves: Halves | None = None


@dataclass(frozen=True)
class FixedPoint:
    """y = saturate_uint8(round((((sum << lift) * multiplier + 2**30) >> 31) >> shift) + zero_point).

    Attributes:
        multiplier: Q0.31; None where each channel has its own.
        shift: the shift to the right; None where each channel has its own.
        zero_point: the zero point of the uint8 output.
        ties_away: whether negative ties go down, as in TFLite; this matters only above a zero point.
        rounds_once: whether the high half is not rounded, so that the shift alone rounds.
        halves: the sums that round to even, or None.
        halves_per_channel: whether each channel has halves of its own.
        lift: how far sums are shifted to the left before they are multiplied.
        halves_of_product: the high halves of products that round to even, or None.
        doubles_saturating: with shifts per channel, whether only channels without a shift are doubled, and saturate:
            sums then may have all 32 bits.
        saturates_at: the absolute value at which 8-bit sums saturate: a channel's bias is added to its products last,
            saturating (`bias`), and what that comes to is held within this; None where sums start from biases.
    """

    multiplier: int | None
    shift: int | None
    zero_point: int
    ties_away: bool = False
    rounds_once: bool = False
    halves: Halves | None = None
    halves_per_channel: bool = False
    lift: int = 0
    halves_of_product: Halves | None = None
    doubles_saturating: bool = False
    saturates_at: int | None = None

    @property
    def has_halves(self) -> bool:
        """Whether some sums are halfway between two results, and go to the even one."""
        return self.halves is not None or self.halves_per_channel or self.halves_of_product is not None

    @property
    def vectors(self) -> tuple[str, ...]:
        """The names of the values that each channel has for itself, in the order in which they are stored."""
        known = {"multiplier": self.multiplier is None, "shift": self.shift is None}
        named = [name for name, is_vector in known.items() if is_vector]
        halves = ("mask", "half") if self.halves_per_channel else ()
        return (*named, *halves, *(("bias",) if self.saturates_at is not None else ()))


def narrowing_of(how: Requantize, dtype: str) -> tuple[Shifts | FixedPoint, int]:
    """Return the sequence that narrows sums to results of an integer dtype, and the number to add to every sum.

    >>> narrowing_of(Requantize(multiplier=3 << 28, shift=-9, zero_point=-128), "int8")[0].ties_away
    False
    >>> narrowing_of(Requantize(multiplier=3 << 28, shift=-9, zero_point=0), "int8")[0].ties_away
    True
    """
    if dtype == "int16":
        return narrowing_to_halfwords(how)
    zero_point = how.zero_point + (MADE_UNSIGNED if dtype == "int8" else 0)
    if how.saturates_at is not None:
        return replace(_fixed_point(how, zero_point), saturates_at=how.saturates_at), 0
    return narrowing(how, zero_point)


def narrowing(how: Requantize, zero_point: int) -> tuple[Shifts | FixedPoint, int]:
    """Return the sequence for one requantisation, and the number to add to every sum before it.

    Args:
        how: the requantisation as the user states it; its shift is 0 or less (`hexconv.spec.kernels`).
        zero_point: the zero point of the uint8 output.

    A rounding shift by `first` and another by `second` are floors of floors, so they are one floor:

        (((s + 2**(first-1)) >> first) + 2**(second-1)) >> second = (s + 2**(first-1) + 2**(both-1)) >> both

    >>> narrowing(Requantize(multiplier=1 << 24, shift=-5), 0)
    (Shifts(first=7, rounds=True, second=5, halves=None), 0)
    >>> narrowing(Requantize(multiplier=1 << 30, shift=-11), 0)
    (Shifts(first=5, rounds=False, second=7, halves=None), 1)
    >>> narrowing(Requantize(multiplier=1 << 30, shift=-9, rounding="even"), 3)[0].halves
    Halves(mask=2047, half=1536)
    >>> kept, _offset = narrowing(Requantize(multiplier=3 << 29, shift=-9, rounding="even", fraction_bits=11), 3)
    >>> kept.lift, kept.shift, kept.halves_of_product
    (2, 11, Halves(mask=4095, half=1024))
    """
    if how.fraction_bits is not None or not isinstance(how.multiplier, int) or not isinstance(how.shift, int):
        return _fixed_point(how, zero_point), 0
    first, second = FRACTION_BITS - (how.multiplier.bit_length() - 1), -how.shift
    is_power = how.multiplier & (how.multiplier - 1) == 0
    both = first + second
    if how.rounding == "even":
        if is_power and both <= MOST_NARROWING_SHIFT + MOST_SECOND_SHIFT:
            last = min(both, MOST_SECOND_SHIFT)
            return Shifts(both - last, False, last, _halves(how, BYTE_BITS, zero_point)), zero_point << both
        return _fixed_point(how, zero_point), 0
    if is_power and not _ties_away(how, zero_point):
        if zero_point == 0 and first <= MOST_NARROWING_SHIFT and second <= MOST_SECOND_SHIFT:
            return Shifts(first, rounds=True, second=second), 0
        if both <= MOST_NARROWING_SHIFT + MOST_SECOND_SHIFT:
            last = min(both, MOST_SECOND_SHIFT)
            offset = (1 << (first - 1) if second else 0) + (zero_point << both)
            return Shifts(both - last, rounds=False, second=last), offset
    return _fixed_point(how, zero_point), 0


def _fixed_point(how: Requantize, zero_point: int) -> FixedPoint:
    """Return the sequence that multiplies, whatever the multiplier."""
    if how.fraction_bits is not None:
        return _of_fraction(how, how.fraction_bits, zero_point)
    if not isinstance(how.multiplier, int) or not isinstance(how.shift, int):
        return _per_channel(how, zero_point, BYTE_BITS)
    if how.rounding == "even":
        return FixedPoint(how.multiplier, -how.shift, zero_point, rounds_once=True, halves=_halves(how, BYTE_BITS))
    return FixedPoint(how.multiplier, -how.shift, zero_point, _ties_away(how, zero_point))


def _ties_away(how: Requantize, zero_point: int) -> bool:
    """Whether results above a zero point show where negative ties go."""
    return how.rounding == "away" and how.shift != 0 and zero_point > 0


def _per_channel(how: Requantize, zero_point: int, bits: int) -> FixedPoint:
    """Return the sequence for multipliers, and perhaps shifts, per channel, which are read when the kernel runs."""
    shift = -how.shift if isinstance(how.shift, int) else None
    is_even = how.rounding == "even"
    ties_away = how.rounding == "away" and shift != 0 and zero_point > 0
    has_halves = is_even and how.has_halves(bits)
    return FixedPoint(None, shift, zero_point, ties_away, rounds_once=is_even, halves_per_channel=has_halves)


def _of_fraction(how: Requantize, bits: int, zero_point: int) -> FixedPoint:
    """Return the sequence that rounds a product to so many binary places, and then half to even."""
    multiplier = how.multiplier if isinstance(how.multiplier, int) else None
    halves = Halves((2 << bits) - 1, 1 << (bits - 1))
    return FixedPoint(multiplier, bits, zero_point, lift=how.lift, halves_of_product=halves)


def _halves(how: Requantize, bits: int, added: int = 0) -> Halves | None:
    """Return the sums from which half to even subtracts one, if any; `added` results are in the sums already."""
    assert isinstance(how.multiplier, int)
    assert isinstance(how.shift, int)
    powers = (how.multiplier & -how.multiplier).bit_length() - 1
    odd, tie = how.multiplier >> powers, FRACTION_BITS - 1 - how.shift - powers
    if odd >= 2 << bits or tie + 2 > SUM_BITS:
        return None
    times = (odd + 2 * added) % 4  # o * odd = 1 modulo 4 where o = odd modulo 4
    return Halves((1 << (tie + 2)) - 1, times << tie)


def narrowing_to_halfwords(how: Requantize) -> tuple[Shifts | FixedPoint, int]:
    """Return the sequence for int16, whose zero point is 0, and the number to add to every sum before it.

    Negative results are not cut here, so where their ties go always matters.

    >>> narrowing_to_halfwords(Requantize(multiplier=1 << 24, shift=-4, rounding="up"))
    (Shifts(first=11, rounds=True, second=0, halves=None), 64)
    """
    if how.fraction_bits is not None:
        return _of_fraction(how, how.fraction_bits, 0), 0
    if how.vectors or not isinstance(how.multiplier, int) or not isinstance(how.shift, int):
        found = _per_channel(how, 0, HALFWORD_BITS)
        away = how.rounding == "away" and found.shift != 0
        return FixedPoint(None, found.shift, 0, away, found.rounds_once, None, found.halves_per_channel), 0
    first, second = FRACTION_BITS - (how.multiplier.bit_length() - 1), -how.shift
    ties_away = how.rounding == "away" and second > 0
    is_power = how.multiplier & (how.multiplier - 1) == 0
    both = first + second
    if how.rounding == "even":
        if is_power and both <= MOST_NARROWING_SHIFT:
            return Shifts(both, rounds=True, second=0, halves=_halves(how, HALFWORD_BITS)), 0
        return FixedPoint(how.multiplier, second, 0, rounds_once=True, halves=_halves(how, HALFWORD_BITS)), 0
    if is_power and not ties_away and both <= MOST_NARROWING_SHIFT:
        return Shifts(both, rounds=True, second=0), 1 << (first - 1) if second else 0
    return FixedPoint(how.multiplier, second, 0, ties_away), 0
