"""Draw multipliers, shifts and slopes per channel, and tables: values as networks have them, and the ends of ranges."""

from math import log2, prod

import numpy as np

from hexconv.run.runner import Array
from hexconv.spec import Chain
from hexconv.spec.activations import SLOPE, TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.requantize import LARGEST_MULTIPLIER, SMALLEST_SHIFT
from hexconv.spec.vectors import Vector, odd_parts, vector_names

MANTISSA_BITS = 24
"""Bits of a float32's significand: a multiplier that holds a float32 ends in zeros."""
LARGEST_ODD = 2**9
"""Odd parts of a multiplier from which on no 8-bit result lies half way between two codes."""
LARGEST_SLOPE = 1.5
"""The largest slope of a prelu that is drawn: some multiply errors."""
SPREAD = 3
"""How far a drawn shift lies from the one that spreads sums over 8 bits, in powers of two."""


def drawn_vectors(chain: Chain, seed: int) -> dict[str, Array]:
    """Draw all vectors of a chain; return them by name.

    A third of the multipliers are floats of 24 bits. A third are small odd numbers times powers of two, which bring
    sums half way between two results. A third are any number, the ends of the range included. Most shifts lie near the
    one that spreads the sums of the conv over 8 bits; one in eight is any shift. Tables map any code to any code.
    Slopes have any sign.
    """
    random = np.random.default_rng([seed, len(chain.conv)])
    return {name: _drawn(random, chain, vector) for name, vector in vector_names(chain).items()}


def _drawn(random: np.random.Generator, chain: Chain, vector: Vector) -> Array:
    if vector.what == TABLE:
        return random.integers(*INTEGER_RANGE[vector.dtype], vector.elements, vector.dtype, endpoint=True)
    if vector.what == SLOPE:
        return random.uniform(-LARGEST_SLOPE, LARGEST_SLOPE, vector.elements).astype(vector.dtype)
    if vector.what == "shift":
        fan_in = prod(chain.filter_shapes[vector.number - 1][1:])
        return _shifts(random, vector.elements, fan_in).astype(vector.dtype)
    how = chain.conv[vector.number - 1].requantize
    return _as_odd(_multipliers(random, vector.elements), (how.least_odd if how else None) or 1).astype(vector.dtype)


def _as_odd(multipliers: Array, least: int) -> Array:
    """Return multipliers whose odd parts are `least` or more: others are made odd, or become the largest multiplier."""
    odd = np.where(odd_parts(multipliers) < least, multipliers | 1, multipliers)
    return np.where(odd_parts(odd) < least, LARGEST_MULTIPLIER, odd)


def _multipliers(random: np.random.Generator, channels: int) -> Array:
    floats = random.integers(2 ** (MANTISSA_BITS - 1), 2**MANTISSA_BITS, channels) << (31 - MANTISSA_BITS)
    odd = random.integers(0, LARGEST_ODD, channels) | 1
    powers = np.floor((30 - np.log2(odd)) * random.uniform(0.8, 1, channels)).astype(np.int64)
    ends = np.array([1, 2, 2**30, LARGEST_MULTIPLIER])
    anything = np.where(
        random.integers(0, 4, channels) == 0,
        ends[random.integers(0, len(ends), channels)],
        random.integers(1, LARGEST_MULTIPLIER, channels, endpoint=True),
    )
    return np.choose(random.integers(0, 3, channels), [floats, odd << powers, anything])


def _shifts(random: np.random.Generator, channels: int, fan_in: int) -> Array:
    typical = -round(7 + log2(fan_in) / 2)
    near = typical + random.integers(-SPREAD, SPREAD, channels, endpoint=True)
    anything = random.integers(SMALLEST_SHIFT, 0, channels, endpoint=True)
    return np.clip(np.where(random.integers(0, 8, channels) == 0, anything, near), SMALLEST_SHIFT, 0)
