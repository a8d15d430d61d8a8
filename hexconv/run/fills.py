"""Fills of a run's tensors: random, or extremes at the ends of their ranges; multipliers, shifts, tables.

Every tensor has a fill of its own. Fills are listed in the order of the kernel's arguments: `input`, `filter1`, ...,
then the biases that there are, as in `most,least,random`. A single word, as in `most`, stands for all tensors.
"""

from math import log2, prod
from typing import Literal, get_args
from zlib import crc32

import numpy as np

from hexconv.errors import InputError
from hexconv.run.measurement import Array
from hexconv.spec import Chain
from hexconv.spec.activations import SLOPE, TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.names import bias_name, filter_name
from hexconv.spec.requantize import LARGEST_MULTIPLIER, SMALLEST_SHIFT
from hexconv.spec.vectors import Vector, odd_parts, vector_names

Fill = Literal["random", "least", "most", "alternating", "one_hot"]
FILLS: tuple[Fill, ...] = get_args(Fill)
Fills = tuple[Fill, ...]
"""The fills of a run, one for each tensor."""
AT_RANDOM: Fill = "random"

CORNERS: tuple[tuple[Fill, Fill], ...] = (("most", "most"), ("least", "least"), ("most", "least"), ("least", "most"))
"""Fills of the input and the filters that make products largest and smallest, whatever the zero points are."""


def tensor_names(chain: Chain) -> tuple[str, ...]:
    """Return the names of the tensors that a run fills, in the order of the kernel's arguments.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=2)
    >>> tensor_names(Chain(input=(1, 8, 8, 2), conv=(conv, Conv2d(out_channels=2, bias=True))))
    ('input', 'filter1', 'filter2', 'bias2')
    """
    numbers = range(1, len(chain.conv) + 1)
    biases = (bias_name(number) for number, conv in zip(numbers, chain.conv, strict=True) if conv.bias)
    return ("input", *map(filter_name, chain.filters), *biases)


def fills_of(chain: Chain, text: str) -> Fills:
    """Read fills as a user writes them, such as `most` or `most,least,random`.

    Raises:
        InputError: a word is unknown, or the number of words is neither one nor that of the tensors.
    """
    names, words = tensor_names(chain), text.split(",")
    if len(words) not in (1, len(names)):
        raise InputError("--fill", f"{len(words)} words", f"one for all, or {len(names)}, for {','.join(names)}")
    known: dict[str, Fill] = {fill: fill for fill in FILLS}
    for word in words:
        if word not in known:
            raise InputError("--fill", word, f"{', '.join(FILLS)}, or one of these for each of {','.join(names)}")
    each = words * len(names) if len(words) == 1 else words
    return tuple(known[word] for word in each)


def fills_text(fills: Fills) -> str:
    """Write fills in the form that `fills_of` reads.

    >>> fills_text(("most", "most")), fills_text(("most", "least"))
    ('most', 'most,least')
    """
    return fills[0] if len(set(fills)) == 1 else ",".join(fills)


def fills_of_run(chain: Chain, number: int, seed: int) -> Fills:
    """Return the fills of run `number` of a case.

    Run 0 is all random. Runs 1 to 4 are the four combinations of extremes. Fills of later runs are drawn from `seed`,
    for each chain anew: over many chains every tensor gets every fill.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2, bias=True),))
    >>> [fills_text(fills_of_run(chain, number, 0)) for number in range(5)]
    ['random', 'most', 'least,least,most', 'most,least,least', 'least,most,least']
    """
    names = tensor_names(chain)
    if number == 0:
        return tuple(AT_RANDOM for _ in names)
    if number <= len(CORNERS):
        return _corner(chain, *CORNERS[number - 1])
    random = np.random.default_rng([seed, number, crc32(chain.slug.encode())])
    return tuple(FILLS[random.integers(len(FILLS))] for _ in names)


def _corner(chain: Chain, source: Fill, filters: Fill) -> Fills:
    """Fill the input and the filters with one extreme each, and every bias with the extreme of its sums' own sign."""
    biases: list[Fill] = []
    values: Fill = source
    for conv in (chain.conv[number - 1] for number in chain.filters):
        values = "most" if values == filters else "least"  # products of like signs are large, and sums saturate
        if conv.bias:
            biases.append(values)
    return (source, *(filters for _ in chain.filters), *biases)


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
