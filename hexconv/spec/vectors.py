"""Vectors of a chain beside filters and biases: multipliers, shifts and slopes per channel, tables of 256 codes.

entry:  0  64  1  65  2  66 ... 63 127 | 128 192 129 193 ... 191 255

An instruction of `vlutvvb` takes a vector of codes and finds those of one eighth of the table: the codes 32 i to
32 i + 31 in byte i // 2 modulo 2 of the halfwords of vector i // 4 (Qualcomm's HVX programmer's reference, vlut).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError
from hexconv.spec.activations import PRELU, SLOPE, TABLE
from hexconv.spec.chain import LARGEST_PARAMETER, Chain
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import bias_name
from hexconv.spec.requantize import LARGEST_MULTIPLIER, SMALLEST_SHIFT

Array = NDArray[Any]
Vectors = Mapping[str, Array]
"""Vectors by name: `multiplier1`, `shift1`, ..., int32, [K]; `table1`, ..., [256], indexed from the least code;
`slope1`, ..., float32, [K]."""
DTYPE, SLOPE_DTYPE = "int32", "float32"
RANGES = {"multiplier": (1, LARGEST_MULTIPLIER), "shift": (SMALLEST_SHIFT, 0)}
NAMES = tuple(RANGES)
OF_CHANNELS = ("bias", *NAMES, SLOPE)
"""How the names of arguments with one value per channel begin."""
OFFSET, SCALES = "offset", "scales"
CONVERTS = "converts"
LAID_OUT = (OFFSET, SCALES, CONVERTS)
"""How the names of arguments begin that HVX kernels have in their place (`hexconv.lower.hvx.parameters`)."""
UNCACHED = (*OF_CHANNELS, *LAID_OUT, TABLE)
"""How the names of arguments that no cache of the chain stages begin."""
CODES = 256
"""The number of codes of 8 bits, and of the entries of a table."""


@dataclass(frozen=True)
class Vector:
    """The kind and size of one vector.

    Attributes:
        what: its name without the conv's number.
        number: the number of its conv, from 1.
        elements: how many elements it has.
        dtype: the dtype of its elements.
    """

    what: str
    number: int
    elements: int
    dtype: str


def vector_names(chain: Chain) -> dict[str, Vector]:
    """Return a chain's vectors by name, in the order of its arguments.

    >>> from hexconv.spec import Conv2d, Requantize
    >>> conv = Conv2d(out_channels=2, activation="table", requantize=Requantize(multiplier="per_channel"))
    >>> chain = Chain(input=(1, 8, 8, 2), dtype="int8", conv=(conv,))
    >>> [(name, each.elements) for name, each in vector_names(chain).items()]
    [('multiplier1', 2), ('table1', 256)]
    """
    return {f"{each.what}{each.number}": each for index in range(len(chain.conv)) for each in _vectors(chain, index)}


def _vectors(chain: Chain, index: int) -> Iterator[Vector]:
    """Return the vectors of conv `index`."""
    conv = chain.conv[index]
    for name in conv.requantize.vectors if conv.requantize else ():
        yield Vector(name, index + 1, conv.out_channels, DTYPE)
    if conv.activation == TABLE:
        yield Vector(TABLE, index + 1, CODES, chain.dtype)
    if conv.activation == PRELU:
        yield Vector(SLOPE, index + 1, conv.out_channels, SLOPE_DTYPE)


def vectors_bytes(chain: Chain) -> dict[str, int]:
    """Return the bytes of each bias and vector of a chain by name: what a call reads beside its input and filters.

    No cache stages them, and no plan reads more or less of them: each counts once a call, as it is given.

    >>> from hexconv.spec import Conv2d, Requantize
    >>> conv = Conv2d(out_channels=2, bias=True, activation="table", requantize=Requantize(multiplier="per_channel"))
    >>> vectors_bytes(Chain(input=(1, 8, 8, 2), dtype="int8", conv=(conv,)))
    {'bias1': 8, 'multiplier1': 8, 'table1': 256}
    """
    size = np.dtype(chain.bias_dtype).itemsize
    biases = {bias_name(i + 1): conv.out_channels * size for i, conv in enumerate(chain.conv) if conv.bias}
    return biases | {name: each.elements * np.dtype(each.dtype).itemsize for name, each in vector_names(chain).items()}


def check_vectors(chain: Chain, vectors: Vectors) -> None:
    """Refuse vectors that are missing, of another shape or dtype, or outside of their range.

    Raises:
        InputError: a vector is not valid; the text has its name and the value that is farthest off.
    """
    for name, vector in vector_names(chain).items():
        if name not in vectors:
            raise InputError.because(f"{name} is missing", f"its conv wants {vector.elements} values of {vector.dtype}")
        if vector.what == TABLE:
            continue
        if vector.what == SLOPE:
            _check_slopes(name, vectors[name])
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


def _check_slopes(name: str, slopes: Array) -> None:
    """Refuse slopes that are no numbers, or far too large."""
    worst = next((value for value in slopes if not abs(value) <= LARGEST_PARAMETER), None)
    if worst is not None:
        raise InputError(name, f"{worst:g}", f"{-LARGEST_PARAMETER} to {LARGEST_PARAMETER} in every channel")


def odd_parts(multipliers: Array) -> Array:
    """Return the odd parts of positive integers: what is left when all factors of 2 are removed.

    >>> odd_parts(np.array([12, 7, 1 << 30]))
    array([3, 7, 1])
    """
    return multipliers // (multipliers & -multipliers)


def looked_up(codes: Array, table: Array) -> Array:
    """Look every 8-bit code up in a table, whose first entry is for the least code.

    >>> looked_up(np.int8([-128, 0, 127]), np.arange(256, dtype="uint8"))
    array([  0, 128, 255], dtype=uint8)
    """
    return table[codes.astype(np.int64) - np.iinfo(codes.dtype).min]


def in_whole_blocks(vector: Array) -> Array:
    """Extend a vector to whole blocks of 32 channels, with ones after its last channel.

    >>> in_whole_blocks(np.array([7, 8])).shape
    (32,)
    """
    return np.pad(vector, (0, -len(vector) % CHANNEL_BLOCK), constant_values=1)


def whole_channels(channels: int) -> int:
    """Return a number of channels, rounded up to whole blocks of 32."""
    return ceil(channels / CHANNEL_BLOCK) * CHANNEL_BLOCK


Index = Any
"""An int, an array of ints, or an expression."""


def lookup_place(code: Index) -> Index:
    """The place of the entry of a code, 0 to 255, in a table in HVX's order.

    >>> [lookup_place(code) for code in (0, 1, 64, 127, 128, 255)]
    [0, 2, 1, 127, 128, 255]
    """
    return (code // 128) * 128 + (code % 64) * 2 + code // 64 % 2


def in_lookup_order(table: NDArray[Any]) -> NDArray[Any]:
    """Put a table of 256 entries, the lowest code's first, into HVX's order."""
    ordered = np.empty_like(table)
    ordered[lookup_place(np.arange(len(table)))] = table
    return ordered
