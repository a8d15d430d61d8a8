"""What a random chain of given geometry does with its numbers: biases, activations, zero points, requantisations."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2, prod, sqrt

from hexconv.spec import Conv2d, Requantize
from hexconv.spec.chain import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS, Dtype
from hexconv.sweep.draw import Draw

LARGEST_L1 = 2**16 - 1
"""Of a filter over int16: 32768 times as much, and a bias, fit an int32."""


def drawn_filter_dtype(draw: Draw, dtype: Dtype) -> Dtype | None:
    """For integers none, which is the chain's, or any that goes with it; for floats none."""
    return draw.one_of(None, *FILTER_DTYPES.get(dtype, ()))


def drawn_zero_point(draw: Draw, dtype: Dtype) -> int:
    """Zero, an end of the dtype's range or a value next to those, or any; floats have none."""
    least, most = ZERO_POINTS.get(dtype, (0, 0))
    return draw.around(least, most) if most else 0


def with_filters(draw: Draw, dtype: Dtype, filter_dtype: Dtype, conv: Conv2d) -> Conv2d:
    """What a conv sums: a bias or none, the filter's zero point and its limit; for floats the activation.

    Args:
        draw: where to draw from.
        dtype: of the chain.
        filter_dtype: of its filters.
        conv: geometry and output channels.
    """
    conv = replace(conv, bias=draw.one_of(False, True))
    if dtype not in INTEGER_RANGE:
        return replace(conv, activation=draw.one_of("none", "relu", "relu6"))
    return replace(
        conv, filter_zero_point=drawn_zero_point(draw, filter_dtype), filter_l1=_drawn_filter_l1(draw, dtype)
    )


def with_requantisations(
    draw: Draw, dtype: Dtype, convs: Sequence[Conv2d], channels: Sequence[int], highest_shift: int
) -> tuple[Conv2d, ...]:
    """The convs of a chain with what follows their sums: nothing for floats, and perhaps for the last one.

    Args:
        draw: where to draw from.
        dtype: of the chain.
        convs: as `with_filters` leaves them.
        channels: of the input and of every output.
        highest_shift: of all requantisations.
    """
    if dtype not in INTEGER_RANGE:
        return tuple(convs)
    kept = len(convs) - draw.one_of(0, 1)
    fan_ins = [inputs // conv.groups * prod(conv.kernel) for conv, inputs in zip(convs, channels, strict=False)]
    return tuple(
        replace(conv, requantize=_drawn_requantize(draw, dtype, fan_in, highest_shift)) if index < kept else conv
        for index, (conv, fan_in) in enumerate(zip(convs, fan_ins, strict=True))
    )


def _drawn_filter_l1(draw: Draw, dtype: Dtype) -> int | None:
    """Mostly none where all sums fit; for int16 the most that an int32 holds, or less."""
    if dtype != "int16" and not draw.is_one_in(4):
        return None
    return LARGEST_L1 if draw.is_one_in(2) else draw.number(1, LARGEST_L1)


def _drawn_requantize(draw: Draw, dtype: Dtype, fan_in: int, highest_shift: int) -> Requantize:
    """Mostly a scale that spreads the sums over the range of the dtype; sometimes any, the ends among them."""
    multiplier, shift = draw.around(1, 2**31 - 1, 2**30), draw.around(-31, highest_shift)
    if not draw.is_one_in(8):
        multiplier, shift = _spreading(draw, dtype, fan_in, highest_shift)
    zero_point, rounding = drawn_zero_point(draw, dtype), draw.one_of("up", "away")
    return Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding)


def _spreading(draw: Draw, dtype: Dtype, fan_in: int, highest_shift: int) -> tuple[int, int]:
    """Multiplier and shift that leave something of typical sums, or of the largest; powers of two in one of two."""
    typical_sum, largest_sum, output = 2**13 * sqrt(fan_in), 2**15 * fan_in, 2**6
    if dtype == "int16":
        typical_sum, largest_sum, output = 2**26, 2**31, 2**13
    total = draw.one_of(typical_sum, largest_sum)
    shift = max(-31, min(round(log2(output / total)) + draw.number(0, 5), highest_shift))
    if draw.is_one_in(2):
        return draw.number(2**30, 2**31 - 1), shift
    moved = draw.number(0, max(-shift, 0))
    return 2 ** max(30 - moved, 0), shift + moved
