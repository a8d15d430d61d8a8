"""The rows of a tensor that one step makes, and the share of a tensor that each stripe makes."""

from dataclasses import dataclass


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
