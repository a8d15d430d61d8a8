"""The steps of a thread for many heights of stripes, one height after the other in one array.

Heights have different numbers of stripes. So the steps of all heights stand in one axis, those of the first height
before those of the second, and a sum over the steps of each height is one call of numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.analyze.exact import Integers, ceil_divide

Span = tuple[int, int]
"""The first and one past the last of some rows."""


@dataclass(frozen=True)
class Stripes:
    """The stripes of T tensors, for H heights.

    Attributes:
        size: the rows of the output in a stripe, [H].
        apart: the rows of every tensor from the first one of a stripe to the first one of the next, [T, H].
        lead: the first row of every tensor that stripe 0 makes, [T, H].
        height: the rows of every tensor that a stripe makes, [T, H].
        warm_up: the stripes that run in, before the first one that makes any output, [H].
    """

    size: Integers
    apart: Integers
    lead: Integers
    height: Integers
    warm_up: Integers


@dataclass(frozen=True)
class StepsOfHeights:
    """The steps of one thread, those of all heights one after the other.

    Attributes:
        starts: the number of the first step of each height, [H].
        counts: the steps of each height, [H].
        rows: the rows of every tensor that each step makes, [T, steps].
        logical: of these, the rows with elements.
    """

    starts: Integers
    counts: Integers
    rows: Integers
    logical: Integers

    @classmethod
    def of(cls, stripes: Stripes, valid: Sequence[Span], made: Sequence[Span]) -> "StepsOfHeights":
        """Find what each step of a thread makes.

        Args:
            stripes: the stripes.
            valid: of every tensor the rows that have elements.
            made: of every tensor the rows that the thread makes.
        """
        first, end = made[-1]
        counts = ceil_divide(end, stripes.size) - first // stripes.size + stripes.warm_up
        starts = np.cumsum(counts) - counts
        height = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(height)) + (first // stripes.size - stripes.warm_up - starts)[height]
        (first_made, end_made), (first_valid, end_valid) = (np.array(rows).T[:, :, None] for rows in (made, valid))
        start = number * stripes.apart[:, height] + stripes.lead[:, height]
        stop = np.minimum(start + stripes.height[:, height], end_made)
        start = np.maximum(start, first_made)
        logical = np.minimum(stop, end_valid) - np.maximum(start, first_valid)
        return cls(starts, counts, np.maximum(stop - start, 0), np.maximum(logical, 0))

    def sums(self, figures: Integers) -> Integers:
        """Sum a figure of each step, [..., steps], for each height: [..., H]."""
        return np.add.reduceat(figures, self.starts, axis=-1, dtype=np.int64)
