"""Random arithmetic for a chain of given geometry: biases, activations, zero points and requantisations."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2, prod, sqrt

import numpy as np

from hexconv.spec import Conv2d, Requantize
from hexconv.spec.chain import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS, Dtype
from hexconv.spec.conv import Activation

Random = np.random.Generator
LARGEST_L1 = 2**16 - 1
"""Of a filter over int16: 32768 times as much, and a bias, fit an int32."""
ACTIVATIONS: tuple[Activation, ...] = ("none", "relu", "relu6")


def random_zero_point(random: Random, dtype: Dtype) -> int:
    """Zero, or any value of an integer dtype; floats have none."""
    low, high = ZERO_POINTS.get(dtype, (0, 0))
    return int(random.integers(low, high + 1)) if random.integers(4) else 0


def random_filter_dtype(random: Random, dtype: Dtype) -> Dtype | None:
    """For integers none, which is the chain's, or any that goes with it; for floats none."""
    known = (None, *FILTER_DTYPES.get(dtype, ()))
    return known[random.integers(len(known))]


def with_arithmetic(
    random: Random, dtype: Dtype, filter_dtype: Dtype, convs: Sequence[Conv2d], channels: Sequence[int]
) -> tuple[Conv2d, ...]:
    """The convs with what follows their sums.

    Args:
        random: where to draw from.
        dtype: of the chain.
        filter_dtype: of its filters.
        convs: geometry and output channels.
        channels: of the input and of every output.
    """
    biased = [replace(conv, bias=bool(random.integers(2))) for conv in convs]
    if dtype not in INTEGER_RANGE:
        return tuple(replace(conv, activation=ACTIVATIONS[random.integers(len(ACTIVATIONS))]) for conv in biased)
    quantised = [
        replace(
            conv,
            filter_zero_point=random_zero_point(random, filter_dtype),
            filter_l1=_filter_l1(random, dtype),
            requantize=_requantize(random, dtype, conv, in_channels),
        )
        for conv, in_channels in zip(biased, channels, strict=False)
    ]
    last = replace(quantised[-1], requantize=None) if random.integers(2) else quantised[-1]
    return (*quantised[:-1], last)


def _filter_l1(random: Random, dtype: Dtype) -> int | None:
    """Mostly none where all sums fit; for int16 the most that an int32 holds, or less."""
    if dtype != "int16" and random.integers(4):
        return None
    return LARGEST_L1 if random.integers(2) else int(random.integers(1, LARGEST_L1 + 1))


def _requantize(random: Random, dtype: Dtype, conv: Conv2d, in_channels: int) -> Requantize:
    """Mostly a scale that spreads the sums over the range of the dtype; sometimes any multiplier and shift."""
    rounding = "up" if random.integers(2) else "away"
    zero_point = random_zero_point(random, dtype)
    if random.integers(8) == 0:
        multiplier, shift = int(random.integers(1, 2**31)), int(random.integers(-31, 31))
        return Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point, rounding=rounding)
    typical_sum = 2**13 * sqrt(in_channels // conv.groups * prod(conv.kernel))
    typical_sum, typical_output = (2**26, 2**13) if dtype == "int16" else (typical_sum, 2**6)
    shift = round(log2(typical_output / typical_sum)) + int(random.integers(0, 3))
    return Requantize(
        multiplier=int(random.integers(2**30, 2**31)), shift=shift, zero_point=zero_point, rounding=rounding
    )
