"""The rows of a tensor that one step makes, and how many of them are copied at once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RowStep:
    """One step that makes rows of a tensor.

    Attributes:
        start: the first row of the step; it is negative where a stripe runs in before the tensor has rows.
        end: one past the last row of the step.
        band: the rows that the thread makes: the first, and one past the last.
    """

    start: int
    end: int
    band: tuple[int, int]

    @property
    def rows(self) -> range:
        """The rows that the step makes: those of its own that its thread makes."""
        first, last = self.band
        begin = max(self.start, first)
        return range(begin, max(min(self.end, last), begin))


@dataclass(frozen=True)
class Steps:
    """All steps of one thread that make a tensor, as arrays of one element a step: counting is one sum over them.

    Attributes:
        start: the first row of each step (`RowStep.start`).
        end: one past the last row of each step.
        band: the rows that the thread makes: the first, and one past the last.
        times: how often each step is run.
    """

    start: Numbers
    end: Numbers
    band: tuple[int, int]
    times: int

    @property
    def each(self) -> list[RowStep]:
        """The steps one by one, in their order."""
        return [RowStep(int(start), int(end), self.band) for start, end in zip(self.start, self.end, strict=True)]

    @property
    def begin(self) -> Numbers:
        """The first row that each step makes."""
        return np.maximum(self.start, self.band[0])

    @cached_property
    def rows(self) -> Numbers:
        """The number of rows that each step makes."""
        return np.maximum(np.minimum(self.end, self.band[1]) - self.begin, 0)

    def rows_within(self, first: int, end: int) -> Numbers:
        """Return how many of the rows from `first` up to `end` each step makes.

        >>> Steps(np.array([0, 4]), np.array([4, 8]), (0, 8), times=1).rows_within(3, 6).tolist()
        [1, 2]
        """
        stop = np.minimum(self.end, min(end, self.band[1]))
        return np.maximum(stop - np.maximum(self.begin, first), 0)


def most_in_flight(steps: Steps, reads: int, ahead: int) -> int:
    """Count the most rows of a ring that a thread has under way: a step adds its rows to those read ahead of it.

    Args:
        steps: the steps that read the input.
        reads: how many come first that wait for nothing.
        ahead: the rows that are read ahead.
    """
    most = left = 0
    for number, step in enumerate(steps.each, -reads):
        left += len(step.rows)
        most = max(most, left)
        if number >= 0:
            left = min(left, max(min(steps.band[1] - (step.end - ahead), ahead), 0))
    return most
