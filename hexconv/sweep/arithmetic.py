"""Draw the arithmetic of a random chain of given geometry: biases, activations, zero points, requantisations."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2, prod, sqrt

from hexconv.spec import Conv2d, Requantize
from hexconv.spec.activations import CLAMPS, CURVES, TABLE, Activation
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS, Dtype
from hexconv.spec.requantize import LARGEST_MULTIPLIER, PER_CHANNEL, Rounding
from hexconv.sweep.draw import Draw
from hexconv.sweep.scope import Kind

LARGEST_L1 = 2**16 - 1
"""The largest `filter_l1` over int16 inputs: 32768 times as much, and a bias, fit an int32."""
LEAST_ODD = 2**9
"""The least odd part of multipliers with which no 8-bit result lies half way between two codes."""
SATURATIONS = (2**28, 2**29, 2**30)
"""Where sums of int16 mostly saturate; HVX has room for such limits beside sums of low bytes."""
INT32 = 2**31
LIFTED_BITS = 15
"""By how many bits int32 holds more than a product of two bytes; a sum that is lifted has to leave room for a bias."""
MOST_PLACES = 30
"""The most binary places that a product may be rounded to."""
MOST_EIGHTHS = 12
"""The largest slope and offset of an activation that are drawn, in eighths: some multiply errors."""
MOST_LEFT = 3
"""The largest shift to the left in a chain that hvx doesn't serve whole."""
ROUNDINGS: tuple[Rounding, ...] = ("up", "away", "even")
HVX_ROUNDINGS: tuple[Rounding, ...] = ("up", "up", "up", "away", "even", "even")


def drawn_filter_dtype(draw: Draw, dtype: Dtype) -> Dtype | None:
    """Draw a filter dtype: for integers None (the chain's own) or any that goes with the chain's; for floats None."""
    return draw.one_of(None, *FILTER_DTYPES.get(dtype, ()))


def drawn_zero_point(draw: Draw, dtype: Dtype) -> int:
    """Draw a zero point: zero, an end of the dtype's range, a value next to these, or any value. Floats have none."""
    least, most = ZERO_POINTS.get(dtype, (0, 0))
    return draw.around(least, most) if most else 0


def with_filters(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Add what a conv sums: a bias or none, the filter's zero point and its limit; for floats the activation.

    Args:
        draw: the source of the draws.
        kind: the kind of the chain.
        conv: the conv's geometry and output channels.
    """
    conv = replace(conv, bias=draw.one_of(False, True))
    if kind.dtype not in INTEGER_RANGE:
        return _with_activation(draw, conv)
    zero_point = drawn_zero_point(draw, kind.filter_dtype or kind.dtype)
    return replace(conv, filter_zero_point=zero_point, filter_l1=_drawn_filter_l1(draw, kind.dtype))


def _with_activation(draw: Draw, conv: Conv2d) -> Conv2d:
    """Draw the activation of floats: as often a clamp as any other; every second slope and offset is stated."""
    name: Activation = draw.one_of(*(CLAMPS if draw.is_one_in(2) else tuple(CURVES)))
    curve, slope, offset = CURVES[name], None, None
    if curve.slope is not None and draw.is_one_in(2):
        slope = draw.number(1 if curve.is_rising else -MOST_EIGHTHS, MOST_EIGHTHS) / 8
    if curve.offset is not None and draw.is_one_in(2):
        offset = draw.number(-MOST_EIGHTHS, MOST_EIGHTHS) / 8
    return replace(conv, activation=name, activation_slope=slope, activation_offset=offset)


def with_requantisations(
    draw: Draw, kind: Kind, convs: Sequence[Conv2d], channels: Sequence[int], are_long: bool = False
) -> tuple[Conv2d, ...]:
    """Add what follows the sums of each conv: a requantisation for integers, though the last may lack one.

    Args:
        draw: the source of the draws.
        kind: the kind of the chain.
        convs: the convs that `with_filters` returned.
        channels: the channels of the input and of every output.
        are_long: whether sums come near the ends of an int32, so that what is made of such sums is tested.
    """
    if kind.dtype not in INTEGER_RANGE:
        return tuple(convs)
    leaves_sums = draw.is_one_in(4 if are_long else 2)
    fan_ins = [inputs // conv.groups * prod(conv.kernel) for conv, inputs in zip(convs, channels, strict=False)]
    finished = [
        _with_table(draw, kind, replace(conv, requantize=_drawn_requantize(draw, kind, fan_in, are_long)))
        for conv, fan_in in zip(convs, fan_ins, strict=True)
    ]
    if leaves_sums:
        finished[-1] = _leaving_sums(finished[-1])
    return tuple(_with_saturation(draw, kind, conv) for conv in finished)


def _with_saturation(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Let the sums of one conv in two of int16, in six of 8 bits, saturate; half of the former have no limit."""
    if conv.requantize is None or not draw.is_one_in(2 if kind.dtype == "int16" else 6):
        return conv
    if kind.dtype != "int16":
        limit = draw.one_of(LARGEST_MULTIPLIER, draw.number(1, LARGEST_MULTIPLIER), draw.number(1, 1 << 16))
        return replace(conv, requantize=replace(conv.requantize, saturates_at=limit))
    for_hvx = kind.kernel == "hvx" and kind.is_served
    if for_hvx and kind.filter_dtype != "int8":
        return conv
    limit = draw.one_of(*SATURATIONS, draw.number(1, SATURATIONS[0] if for_hvx else LARGEST_MULTIPLIER))
    saturating = replace(conv, requantize=replace(conv.requantize, saturates_at=limit))
    return saturating if draw.is_one_in(2) else replace(saturating, filter_l1=None)


def _with_table(draw: Draw, kind: Kind, conv: Conv2d) -> Conv2d:
    """Give one conv in four of an 8-bit chain a table."""
    if kind.dtype == "int16" or not draw.is_one_in(4):
        return conv
    return replace(conv, activation=TABLE, table_zero_point=drawn_zero_point(draw, kind.dtype))


def _leaving_sums(conv: Conv2d) -> Conv2d:
    """Return a conv with nothing after its sums."""
    return replace(conv, requantize=None, activation="none", table_zero_point=0)


def _drawn_filter_l1(draw: Draw, dtype: Dtype) -> int | None:
    """Draw a `filter_l1`: mostly none where all sums fit; for int16 the most that an int32 holds, or less."""
    if dtype != "int16" and not draw.is_one_in(4):
        return None
    return LARGEST_L1 if draw.is_one_in(2) else draw.number(1, LARGEST_L1)


def _drawn_requantize(draw: Draw, kind: Kind, fan_in: int, is_long: bool) -> Requantize:
    """Draw a requantisation: mostly a scale that spreads sums over the dtype's range, sometimes any scale."""
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
    if rounding == "even" and draw.is_one_in(3):
        room = LIFTED_BITS - fan_in.bit_length() if kind.dtype != "int16" and not is_long else 0
        how = _of_few_places(draw, how, max(0, room))
    if not draw.is_one_in(4):
        return how
    if how.fraction_bits:
        return replace(how, multiplier=PER_CHANNEL)
    how = replace(how, multiplier=PER_CHANNEL, shift=PER_CHANNEL if draw.is_one_in(2) else min(shift, 0))
    return replace(how, least_odd=draw.around(1, LARGEST_MULTIPLIER, LEAST_ODD)) if draw.is_one_in(2) else how


def _of_few_places(draw: Draw, how: Requantize, most_lift: int) -> Requantize:
    """Round products to few binary places first, where sums are lifted by at most some bits."""
    assert isinstance(how.shift, int)
    places = draw.number(0, most_lift) - how.shift
    return replace(how, fraction_bits=places) if 1 <= places <= MOST_PLACES and how.shift <= 0 else how


def _shifted_left(multiplier: int, shift: int, left: int) -> tuple[int, int]:
    """Return about the same scale with a shift to the left, as far as a multiplier can be small enough."""
    return max(1, multiplier >> max(left - shift, 0)), left


def _drawn_clamp(draw: Draw, dtype: Dtype) -> tuple[int, int] | None:
    """Draw a clamp: mostly none, else any two codes, the ends of the dtype included."""
    if not draw.is_one_in(4):
        return None
    low, high = INTEGER_RANGE[dtype]
    one, other = draw.around(low, high), draw.around(low, high)
    return (min(one, other), max(one, other)) if one != other else None


def _spreading(draw: Draw, kind: Kind, fan_in: int, is_long: bool) -> tuple[int, int]:
    """Draw a multiplier and a shift that bring sums to the dtype's range or beyond; two of three are powers of two.

    Typical sums of random tensors reach a part of the range, the largest sums all of it.
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
