"""What a chain has beside its filters and biases: multipliers and shifts one a channel, and tables of codes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.spec.chain import Chain
from hexconv.spec.conv import TABLE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.requantize import LARGEST_MULTIPLIER, SMALLEST_SHIFT

Array = NDArray[Any]
Vectors = Mapping[str, Array]
"""By name: `multiplier1`, `shift1`, ..., int32, [K]; `table1`, ..., [256], the code for each code, the least first."""
DTYPE = "int32"
RANGES = {"multiplier": (1, LARGEST_MULTIPLIER), "shift": (SMALLEST_SHIFT, 0)}
NAMES = tuple(RANGES)
OF_CHANNELS = ("bias", *NAMES)
"""How the names begin of arguments that have one value a channel."""
UNCACHED = (*OF_CHANNELS, TABLE)
"""How the names begin of arguments that go through no cache of the chain's own."""
CODES = 256
"""Of 8 bits: so many entries has a table."""


@dataclass(frozen=True)
class Vector:
    """What one of them is.

    Attributes:
        what: its name without the conv's number.
        number: of its conv, from 1.
        elements: how many.
        dtype: of these.
    """

    what: str
    number: int
    elements: int
    dtype: str


def vector_names(chain: Chain) -> dict[str, Vector]:
    """A chain's vectors by name, in the order of its arguments.

    >>> from hexconv.spec import Conv2d, Requantize
    >>> conv = Conv2d(out_channels=2, activation="table", requantize=Requantize(multiplier="per_channel"))
    >>> chain = Chain(input=(1, 8, 8, 2), dtype="int8", conv=(conv,))
    >>> [(name, each.elements) for name, each in vector_names(chain).items()]
    [('multiplier1', 2), ('table1', 256)]
    """
    return {f"{each.what}{each.number}": each for index in range(len(chain.conv)) for each in _vectors(chain, index)}


def _vectors(chain: Chain, index: int) -> Iterator[Vector]:
    """Those of one conv."""
    conv = chain.conv[index]
    for name in conv.requantize.vectors if conv.requantize else ():
        yield Vector(name, index + 1, conv.out_channels, DTYPE)
    if conv.activation == TABLE:
        yield Vector(TABLE, index + 1, CODES, chain.dtype)


def check_vectors(chain: Chain, vectors: Vectors) -> None:
    """Refuse what isn't there, or lies outside of its range.

    Raises:
        InputError: by name, with the value that is farthest off.
    """
    for name, vector in vector_names(chain).items():
        if name not in vectors:
            raise InputError.because(f"{name} is missing", f"its conv wants {vector.elements} values of {vector.dtype}")
        if vector.what == TABLE:
            continue
        values, (least, most) = vectors[name], RANGES[vector.what]
        for value in (int(values.min()), int(values.max())):
            if not least <= value <= most:
                raise InputError(name, str(value), f"{least} to {most} in every channel")
        how = chain.conv[vector.number - 1].requantize
        stated_odd = how.least_odd if how and vector.what == "multiplier" else None
        if stated_odd is not None and (odd := int(odd_parts(values).min())) < stated_odd:
            stated = f"multipliers of an odd part of {stated_odd} or more, the least_odd of its conv"
            raise InputError(name, f"a multiplier with an odd part of {odd}", stated)


def odd_parts(multipliers: Array) -> Array:
    """What is left of positive integers that are divided by 2 as often as they can be.

    >>> odd_parts(np.array([12, 7, 1 << 30]))
    array([3, 7, 1])
    """
    return multipliers // (multipliers & -multipliers)


def looked_up(codes: Array, table: Array) -> Array:
    """For every code of 8 bits that of the table, whose first one is for the least.

    >>> looked_up(np.int8([-128, 0, 127]), np.arange(256, dtype="uint8"))
    array([  0, 128, 255], dtype=uint8)
    """
    return table[codes.astype(np.int64) - np.iinfo(codes.dtype).min]


def in_whole_blocks(vector: Array) -> Array:
    """A vector as kernels that read 32 channels at a time want it: ones behind its last channel.

    >>> in_whole_blocks(np.array([7, 8])).shape
    (32,)
    """
    return np.pad(vector, (0, -len(vector) % CHANNEL_BLOCK), constant_values=1)


def whole_channels(channels: int) -> int:
    """Channels in whole blocks of 32."""
    return ceil(channels / CHANNEL_BLOCK) * CHANNEL_BLOCK
