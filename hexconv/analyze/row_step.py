"""The rows of a tensor that one step makes, and the share of a tensor that each stripe makes."""

from collections.abc import Mapping
from dataclasses import dataclass

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
class Spans:
    """The rows of many steps, as arrays of one element a step: it takes one sum to count rows over all of them.

    Attributes:
        begin: the first row that each step makes.
        end: one past the last row that each step makes.
        times: how often each step is run.
    """

    begin: Numbers
    end: Numbers
    times: Numbers

    @classmethod
    def of(cls, steps: Mapping[RowStep, int]) -> "Spans":
        """Return the spans of steps, each of which is run so many times."""
        rows = np.array([(step.rows.start, step.rows.stop) for step in steps], np.int64).reshape(-1, 2)
        return cls(rows[:, 0], rows[:, 1], np.array(list(steps.values()), np.int64))

    @property
    def rows(self) -> Numbers:
        """The number of rows that each step makes."""
        return self.end - self.begin

    def rows_within(self, first: int, end: int) -> Numbers:
        """Return how many of the rows from `first` up to `end` each step makes.

        >>> Spans.of({RowStep(0, 4, (0, 8)): 1, RowStep(4, 8, (0, 8)): 3}).rows_within(3, 6).tolist()
        [1, 2]
        """
        return np.maximum(np.minimum(self.end, end) - np.maximum(self.begin, first), 0)


@dataclass(frozen=True)
class Share:
    """The rows of a tensor that each stripe makes, where every row is made once.

    Attributes:
        apart: the rows from the first one of a stripe to the first one of the next.
        under: the rows that a stripe of the output depends on, if the tensor had no end.
        made: how many new rows a stripe makes.
        ring: how many rows the ring holds.
    """

    apart: int
    under: int
    made: int
    ring: int

    @property
    def lead(self) -> int:
        """The first row that stripe 0 makes."""
        return self.under - self.made
