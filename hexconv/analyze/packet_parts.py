"""What packets are counted by: parts, and what is spent of them on a tensor."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hexconv.kernel.depthwise import TILE_ROWS


class Parts(defaultdict[str, float]):
    """How often each part occurs."""

    def __init__(self, **counts: float) -> None:
        super().__init__(float, counts)

    def add(self, others: Mapping[str, float], times: float = 1) -> None:
        """Add others, each so many times."""
        for name, count in others.items():
            self[name] += times * count


@dataclass(frozen=True)
class Spent:
    """What is spent on a tensor.

    Attributes:
        row: on a row with elements, all of its channels.
        blank_row: on a row without.
        step: on a step that makes some of its rows, all of its channels.
        once: whatever the plan's stripes are.
        together: on four, two or one rows that are made together (`TILE_ROWS`), beside what each row takes.
    """

    row: Parts = field(default_factory=Parts)
    blank_row: Parts = field(default_factory=Parts)
    step: Parts = field(default_factory=Parts)
    once: Parts = field(default_factory=Parts)
    together: tuple[Parts, ...] = field(default_factory=lambda: tuple(Parts() for _ in TILE_ROWS))

    @property
    def parts(self) -> tuple[Parts, ...]:
        """All of them, in order."""
        return (self.row, self.blank_row, self.step, self.once, *self.together)
