"""The parts of a nest: copies between memory and caches, and convs.

A part is a value. TVM keeps nothing but text at a loop, so the loop that a part begins with carries the part's name;
`read_part` is the one place that turns such a name into a part again.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto


class Does(Enum):
    """The ways in which a part of a nest works: it copies in or out, or is a conv."""

    READ_INPUT = auto()
    READ_FILTER = auto()
    CONV = auto()
    WRITE_OUTPUT = auto()
    OTHER = auto()


@dataclass(frozen=True)
class Part:
    """A part of a nest.

    Attributes:
        does: what it does.
        name: the name that it has in the lowered TIR.
        conv: the number of the conv that it is, or whose filter it reads, from 1; 0 for others.
    """

    does: Does
    name: str
    conv: int = 0

    @property
    def copies(self) -> bool:
        """Whether it copies between memory and a cache."""
        return self.does in (Does.READ_INPUT, Does.READ_FILTER, Does.WRITE_OUTPUT)


INPUT_READ = Part(Does.READ_INPUT, "input cache read")
WRITE_BACK = Part(Does.WRITE_OUTPUT, "write back output cache")


def filter_read(number: int) -> Part:
    """Return the part that reads the filter of conv `number`, counted from 1."""
    return Part(Does.READ_FILTER, f"filter #{number} cache read", number)


def convolution(number: int, block: str = "") -> Part:
    """Return the part that is conv `number`, or one of its blocks: `init`, `compute` or `epilogue`."""
    return Part(Does.CONV, f"conv2d #{number} {block}".rstrip(), number)


def read_part(name: str) -> Part:
    """Read the name that the loop of a part carries.

    >>> read_part("filter #2 cache read") == filter_read(2), read_part("conv2d #1 init") == convolution(1, "init")
    (True, True)
    """
    for part in (INPUT_READ, WRITE_BACK):
        if name == part.name:
            return part
    if of_filter := re.fullmatch(r"filter #(\d+) cache read", name):
        return filter_read(int(of_filter[1]))
    if of_conv := re.fullmatch(r"conv2d #(\d+)(?: (\w+))?", name):
        return convolution(int(of_conv[1]), of_conv[2] or "")
    return Part(Does.OTHER, name)
