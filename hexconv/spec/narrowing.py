"""How int32 sums become bytes with HVX's instructions: `Requantize`, as constants of a few instruction sequences.

All arithmetic of 8 bits is on uint8: int8 activations and int8 filters are uint8 whose bytes and zero points are 128
larger. (The forms of vrmpy that take signed bytes want them in the scalar, where the activations are, or issue once a
packet.) int16 activations are two bytes.
"""

from dataclasses import dataclass

from hexconv.spec.requantize import Requantize

MOST_NARROWING_SHIFT = 15  # narrowing shifts take 4 bits of their operand
MOST_SECOND_SHIFT = 7  # a halfword that saturated, 32767, is still 255 after it


@dataclass(frozen=True)
class Shifts:
    """y = saturate_uint8(round((sum >> first) >> second)): for multipliers that are powers of two.

    Attributes:
        first: from words to saturated halfwords.
        rounds: whether the first shift rounds too.
        second: from halfwords to saturated bytes, always rounded; 0 where halfwords stay what they are.
    """

    first: int
    rounds: bool
    second: int


@dataclass(frozen=True)
class FixedPoint:
    """y = saturate_uint8(round(((sum * multiplier + 2**30) >> 31) >> shift) + zero_point).

    Attributes:
        multiplier: Q0.31.
        shift: to the right.
        zero_point: of the uint8 output.
        ties_away: whether negative ties go down, as TFLite has it; matters only above a zero point.
    """

    multiplier: int
    shift: int
    zero_point: int
    ties_away: bool


def narrowing(how: Requantize, zero_point: int) -> tuple[Shifts | FixedPoint, int]:
    """The sequence for one requantisation, and what has to be added to every sum before it.

    Args:
        how: as the user states it; its shift is 0 or less (`hexconv.spec.refusal`).
        zero_point: of the uint8 output.

    A rounding shift by `first` and another by `second` are floors of floors, so they are one floor:

        (((s + 2**(first-1)) >> first) + 2**(second-1)) >> second = (s + 2**(first-1) + 2**(both-1)) >> both

    >>> narrowing(Requantize(multiplier=1 << 24, shift=-5), 0)
    (Shifts(first=7, rounds=True, second=5), 0)
    >>> narrowing(Requantize(multiplier=1 << 30, shift=-11), 0)
    (Shifts(first=5, rounds=False, second=7), 1)
    """
    first, second = 31 - (how.multiplier.bit_length() - 1), -how.shift
    is_power = how.multiplier & (how.multiplier - 1) == 0
    ties_matter = how.rounding == "away" and second > 0 and zero_point > 0
    if is_power and not ties_matter:
        if zero_point == 0 and first <= MOST_NARROWING_SHIFT and second <= MOST_SECOND_SHIFT:
            return Shifts(first, rounds=True, second=second), 0
        if (both := first + second) <= MOST_NARROWING_SHIFT + MOST_SECOND_SHIFT:
            last = min(both, MOST_SECOND_SHIFT)
            offset = (1 << (first - 1) if second else 0) + (zero_point << both)
            return Shifts(both - last, rounds=False, second=last), offset
    return FixedPoint(how.multiplier, second, zero_point, ties_matter), 0


def narrowing_to_halfwords(how: Requantize) -> tuple[Shifts | FixedPoint, int]:
    """The same for int16, whose zero point is 0: one narrowing shift, or a multiplier before it.

    Negative results are not cut here, so where their ties go always matters.

    >>> narrowing_to_halfwords(Requantize(multiplier=1 << 24, shift=-4, rounding="up"))
    (Shifts(first=11, rounds=True, second=0), 64)
    """
    first, second = 31 - (how.multiplier.bit_length() - 1), -how.shift
    ties_away = how.rounding == "away" and second > 0
    is_power = how.multiplier & (how.multiplier - 1) == 0
    if is_power and not ties_away and (both := first + second) <= MOST_NARROWING_SHIFT:
        return Shifts(both, rounds=True, second=0), 1 << (first - 1) if second else 0
    return FixedPoint(how.multiplier, second, 0, ties_away), 0
