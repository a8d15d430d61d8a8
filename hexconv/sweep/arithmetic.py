"""What a random chain of given geometry does with its numbers: biases, activations, zero points, requantisations."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2, prod, sqrt

from hexconv.spec import Conv2d, Requantize
from hexconv.spec.chain import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS, Dtype
from hexconv.spec.conv import TABLE
from hexconv.spec.requantize import LARGEST_MULTIPLIER, PER_CHANNEL, Rounding
from hexconv.sweep.draw import Draw
from hexconv.sweep.scope import Kind

LARGEST_L1 = 2**16 - 1
"""Of a filter over int16: 32768 times as much, and a bias, fit an int32."""
LEAST_ODD = 2**9
"""Of multipliers with which no result of 8 bits lies half way between two."""
INT32 = 2**31
MOST_LEFT = 3
"""That sums of a chain are shifted by which hvx doesn't serve whole."""
ROUNDINGS: tuple[Rounding, ...] = ("up", "away", "even")
HVX_ROUNDINGS: tuple[Rounding, ...] = ("up", "up", "up", "away", "even", "even")


def drawn_filter_dtype(draw: Draw, dtype: Dtype) -> Dtype | None:
    """For integers none, which is the chain's, or any that goes with it; for floats none."""
    return draw.one_of(None, *FILTER_DTYPES.get(dtype, ()))


def drawn_zero_point(draw: Draw, dtype: Dtype) -> int:
    """Zero, an end of the dtype's range or a value next to those, or any; floats have none."""
    least, most = ZERO_POINTS.get(dtype, (0, 0))
    return draw.around(least, most) if most else 0


def with_filters(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """What a conv sums: a bias or none, the filter's zero point and its limit; for floats the activation.

    Args:
        draw: where to draw from.
        kind: of the chain.
        conv: geometry and output channels.
    """
    conv = replace(conv, bias=draw.one_of(False, True))
    if kind.dtype not in INTEGER_RANGE:
        return replace(conv, activation=draw.one_of("none", "relu", "relu6"))
    zero_point = drawn_zero_point(draw, kind.filter_dtype or kind.dtype)
    return replace(conv, filter_zero_point=zero_point, filter_l1=_drawn_filter_l1(draw, kind.dtype))


def with_requantisations(
    draw: Draw, kind: Kind, convs: Sequence[Conv2d], channels: Sequence[int], are_long: bool = False
) -> tuple[Conv2d, ...]:
    """The convs of a chain with what follows their sums: nothing for floats, and perhaps for the last one.

    Args:
        draw: where to draw from.
        kind: of the chain.
        convs: as `with_filters` leaves them.
        channels: of the input and of every output.
        are_long: whether sums come near the ends of an int32, so that what comes of these matters.
    """
    if kind.dtype not in INTEGER_RANGE:
        return tuple(convs)
    leaves_sums = draw.is_one_in(4 if are_long else 2)
    fan_ins = [inputs // conv.groups * prod(conv.kernel) for conv, inputs in zip(convs, channels, strict=False)]
    finished = [
        _with_table(draw, kind, replace(conv, requantize=_drawn_requantize(draw, kind, fan_in, are_long)))
        for conv, fan_in in zip(convs, fan_ins, strict=True)
    ]
    return (*finished[:-1], _leaving_sums(finished[-1]) if leaves_sums else finished[-1])


def _with_table(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Of 8 bits one conv in four looks its codes up."""
    if kind.dtype == "int16" or not draw.is_one_in(4):
        return conv
    return replace(conv, activation=TABLE, table_zero_point=drawn_zero_point(draw, kind.dtype))


def _leaving_sums(conv: Conv2d) -> Conv2d:
    """A conv without anything behind its sums."""
    return replace(conv, requantize=None, activation="none", table_zero_point=0)


def _drawn_filter_l1(draw: Draw, dtype: Dtype) -> int | None:
    """Mostly none where all sums fit; for int16 the most that an int32 holds, or less."""
    if dtype != "int16" and not draw.is_one_in(4):
        return None
    return LARGEST_L1 if draw.is_one_in(2) else draw.number(1, LARGEST_L1)


def _drawn_requantize(draw: Draw, kind: Kind, fan_in: int, is_long: bool) -> Requantize:
    """Mostly a scale that spreads the sums over the range of the dtype; sometimes any, the ends among them."""
    if draw.is_one_in(8):
        multiplier, shift = draw.around(1, 2**31 - 1, 2**30), draw.around(-31, kind.highest_shift)
    else:
        multiplier, shift = _spreading(draw, kind, fan_in, is_long)
    if kind.kernel == "hvx" and not kind.is_served and draw.is_one_in(2):
        multiplier, shift = _shifted_left(multiplier, shift, draw.number(1, MOST_LEFT))
    zero_point = drawn_zero_point(draw, kind.dtype)
    clamp = _drawn_clamp(draw, kind.dtype)
    rounding: Rounding = draw.one_of(*(HVX_ROUNDINGS if kind.kernel == "hvx" else ROUNDINGS))
    how = Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding, clamp=clamp)
    if not draw.is_one_in(4):
        return how
    how = replace(how, multiplier=PER_CHANNEL, shift=PER_CHANNEL if draw.is_one_in(2) else min(shift, 0))
    return replace(how, least_odd=draw.around(1, LARGEST_MULTIPLIER, LEAST_ODD)) if draw.is_one_in(2) else how


def _shifted_left(multiplier: int, shift: int, left: int) -> tuple[int, int]:
    """A scale with a shift to the left: about the same, as far as a multiplier can be as small."""
    return max(1, multiplier >> max(left - shift, 0)), left


def _drawn_clamp(draw: Draw, dtype: Dtype) -> tuple[int, int] | None:
    """Mostly none; else any two codes, the ends of the dtype among them."""
    if not draw.is_one_in(4):
        return None
    low, high = INTEGER_RANGE[dtype]
    one, other = draw.around(low, high), draw.around(low, high)
    return (min(one, other), max(one, other)) if one != other else None


def _spreading(draw: Draw, kind: Kind, fan_in: int, is_long: bool) -> tuple[int, int]:
    """Multiplier and shift that bring sums to the range of the dtype, or beyond it; two of three are powers of two.

    Typical sums of random tensors go to a part of the range, the largest sums to all of it.
    """
    is_wide = kind.dtype == "int16"
    if is_long or draw.is_one_in(3):
        largest_sum = INT32 if is_wide else min(2**15 * fan_in, INT32)
        bits, more = log2(largest_sum) - (16 if is_wide else 8), draw.number(0, 4)
    else:
        bits, more = 13 if is_wide else 7 + log2(sqrt(fan_in)), draw.number(0, 2)
    shift = max(-31, min(round(-bits) + more, kind.highest_shift))
    if draw.is_one_in(3):
        return draw.number(2**30, 2**31 - 1), shift
    moved = draw.number(0, min(30, max(-shift, 0)))
    return 2 ** (30 - moved), shift + moved
