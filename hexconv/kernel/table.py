"""The order of a table of 256 codes in which HVX looks it up: two vectors of 128 entries each.

    entry:  0  64  1  65  2  66 ... 63 127 | 128 192 129 193 ... 191 255

An instruction of `vlutvvb` takes a vector of codes and finds those of one eighth of the table: the codes 32 i to
32 i + 31 in byte i // 2 modulo 2 of the halfwords of vector i // 4 (Qualcomm's HVX programmer's reference, vlut).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
