"""The bytes that the kernel of a conv reads and writes in its caches, by how often it does so."""

from collections import Counter
from dataclasses import dataclass, field

from hexconv.kernel.depthwise import WAYS_TOGETHER

Bytes = Counter[str]
"""Bytes by the name of a cache."""


@dataclass(frozen=True)
class Touched:
    """The bytes that a conv's kernel reads and writes in each cache.

    Attributes:
        row: the bytes for a row that has elements, all of its channels.
        blank_row: the bytes for a row of fringe, without elements.
        step: the further bytes for a step that makes some row with elements.
        once: the bytes for a run in every thread, whatever the stripes; none for a conv that makes no element.
        together: the further bytes for rows of a depthwise conv that are made in each way (`WAYS_TOGETHER`).
    """

    row: Bytes = field(default_factory=Bytes)
    blank_row: Bytes = field(default_factory=Bytes)
    step: Bytes = field(default_factory=Bytes)
    once: Bytes = field(default_factory=Bytes)
    together: tuple[Bytes, ...] = field(default_factory=lambda: tuple(Bytes() for _ in WAYS_TOGETHER))

    @property
    def parts(self) -> tuple[Bytes, ...]:
        """All fields, in order."""
        return (self.row, self.blank_row, self.step, self.once, *self.together)
