"""What a tensor costs: counts of packets' parts, or of bytes in each cache, by the event at which they occur."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TILE_ROWS = (4, 2, 1)
"""Rows of outputs of a depthwise conv that are computed together: the largest of these numbers that is left."""
LEAST_ROWS_DOWN = 12
"""The fewest rows of a stripe for which tiles go down: filling and draining LLVM's pipeline takes some rows."""
WAYS_TOGETHER = (*TILE_ROWS, "row down", "step down")
"""Ways to group rows of a depthwise conv: so many together, or by tiles that go down, which cost once a step, too."""


class Parts(defaultdict[str, Any]):
    """How often each part occurs; for traffic, how many bytes each cache has."""

    def __init__(self, **counts: Any) -> None:
        super().__init__(int, counts)

    def add(self, others: Mapping[str, Any], times: float = 1) -> None:
        """Add the counts of `others`, each multiplied by `times`."""
        for name, count in others.items():
            self[name] = self[name] + times * count  # not in place: plans are several, or one for all


@dataclass(frozen=True)
class Cost:
    """What making a tensor takes, by event.

    Attributes:
        row: for a row that has elements, all of its channels.
        blank_row: for a row of fringe, without elements.
        step: for a step that makes some of the tensor's rows, all of its channels.
        once: for a whole run, whatever the plan's stripes are.
        together: what rows of a depthwise conv take beside, for each way in which they are made (`WAYS_TOGETHER`).
    """

    row: Parts = field(default_factory=Parts)
    blank_row: Parts = field(default_factory=Parts)
    step: Parts = field(default_factory=Parts)
    once: Parts = field(default_factory=Parts)
    together: tuple[Parts, ...] = field(default_factory=lambda: tuple(Parts() for _ in WAYS_TOGETHER))

    @property
    def parts(self) -> tuple[Parts, ...]:
        """All fields, in order."""
        return (self.row, self.blank_row, self.step, self.once, *self.together)
