"""Counts of parts, by which packets are modelled: how often each part occurs, for a row, a step or a whole run."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from hexconv.kernel.depthwise import WAYS_TOGETHER

UNROLLED = 16
"""How many copies of a loop LLVM unrolls, so that they need no loop."""


class Parts(defaultdict[str, float]):
    """How often each part occurs."""

    def __init__(self, **counts: float) -> None:
        super().__init__(float, counts)

    def add(self, others: Mapping[str, float], times: float = 1) -> None:
        """Add the counts of `others`, each multiplied by `times`."""
        for name, count in others.items():
            self[name] += times * count


@dataclass(frozen=True)
class Spent:
    """The parts that making a tensor takes.

    Attributes:
        row: the parts for a row that has elements, all of its channels.
        blank_row: the parts for a row of fringe, without elements.
        step: the parts for a step that makes some of the tensor's rows, all of its channels.
        once: the parts for a whole run, whatever the plan's stripes are.
        together: the further parts for rows of a depthwise conv that are made in each way (`WAYS_TOGETHER`).
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
