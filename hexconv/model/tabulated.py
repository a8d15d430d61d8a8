"""Turn a function of real numbers into a table of 256 codes, and say how far the table is off at most."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import ceil

import numpy as np

from hexconv.model.constants import Array

HAS_TABLE = ("uint8", "int8")
"""The dtypes whose convs can look their results up in a table."""
FAR = np.geomspace(1e-6, 1e12, 2000)
PLACES = np.concatenate([-FAR[::-1], [0.0], FAR])
"""Numbers of all sizes; what a function does beyond them no sum of a conv meets."""
WITHIN = 33
"""Places in each code's interval, both ends included, at which the function is computed."""
SLACK = 1e-3
"""Of a code's interval: more than the rounding of multipliers can move a sum."""
SHARES = (1.0, 0.85, 0.7, 0.55, 0.4)
"""Parts of a range that codes are tried on, where the whole range needs coarser ones."""

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Tabulated:
    """A table of 256 codes in place of a function.

    Attributes:
        scale: the scale of the codes that are looked up.
        zero_point: their zero point.
        codes: the table, int64, [256], from the least code on.
        off_steps: by how much more than half a step a result of the table is away from the exact one at most.
        zero_point_of_result: the zero point of the codes in the table.
        what: the function in words.
    """

    scale: float
    zero_point: int
    codes: Array
    off_steps: float
    zero_point_of_result: int = 0
    what: str = ""


def tabulated(function: Function, ends: tuple[int, int], error: float = 0.0) -> Tabulated:
    """Find codes for a function's argument, and the table from them to codes of its result.

    The codes cover what leads to different results: numbers beyond have the result of the last code. Where that range
    makes codes so coarse that they cost more than a step, a part of it may do better, and is tried.

    Args:
        function: gives the exact result for each number of a vector, in steps of the result, zero point added.
        ends: the least and the most code, of argument and result alike.
        error: by how much arguments may be off.

    >>> found = tabulated(lambda x: np.maximum(x, 0) * 10, (0, 255))
    >>> found.zero_point, float(np.round(found.scale, 3)), found.off_steps <= 0.5
    (0, 0.1, True)
    """

    def limited(places: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num(function(places), nan=ends[0]), *ends)

    low, high = _range(limited, PLACES)
    low, high = _range(limited, np.linspace(low, high, 1 << 14))
    found = _covered(limited, ends, low, high, error)
    if found.off_steps <= 0.5:
        return found
    places = np.union1d(PLACES, np.linspace(low, high, 1 << 15))
    values = limited(places)
    near = [
        (_covered(lambda at: np.interp(at, places, values), ends, low * one, high * two, error).off_steps, one, two)
        for one, two in product(SHARES, SHARES)
    ]
    _, one, two = min(near)
    return min(found, _covered(limited, ends, low * one, high * two, error), key=lambda each: each.off_steps)


def _range(function: Function, places: Array) -> tuple[float, float]:
    """The range, 0 included, outside of which all results round to the same code on each side."""
    codes = np.rint(function(places))
    first, last = np.flatnonzero(codes != codes[0]), np.flatnonzero(codes != codes[-1])
    if not first.size or not last.size:
        return -1.0, 1.0
    return min(float(places[first[0] - 1]), 0.0), max(float(places[last[-1] + 1]), 0.0)


def _covered(function: Function, ends: tuple[int, int], low: float, high: float, error: float) -> Tabulated:
    """Make the table whose codes cover a range: each entry lies in the middle of all results of its code's interval."""
    scale = float(np.float32((high - low) / (ends[1] - ends[0])))
    zero_point = int(np.clip(ceil(ends[0] - low / scale - 0.5), *ends))
    half = 0.5 + SLACK + error / scale
    centres = np.arange(ends[0], ends[1] + 1) - zero_point
    places = (centres[:, None] + np.linspace(-half, half, WITHIN)) * scale
    values = function(places.reshape(-1)).reshape(places.shape)
    least, most = values.min(axis=1), values.max(axis=1)
    for index, beyond in ((0, PLACES[places[0, 0] > PLACES]), (-1, PLACES[places[-1, -1] < PLACES])):
        outside = function(beyond) if beyond.size else values[index]
        least[index], most[index] = min(least[index], outside.min()), max(most[index], outside.max())
    codes = np.rint((least + most) / 2)
    off = float(np.max(np.maximum(codes - least, most - codes))) - 0.5
    return Tabulated(scale, zero_point, codes.astype(np.int64), max(off, 0.0))
