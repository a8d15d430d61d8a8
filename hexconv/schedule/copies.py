"""The parts of a schedule that copy between memory and caches, by the names that they have in the nest."""

INPUT_READ = "input cache read"
WRITE_BACK = "write back output cache"
FILTER_READ = "filter #"
"""How the names of reads of filters begin."""

BUFFERING = "hexconv.buffering"
"""Attribute of a scheduled function: `double` where its copies are to run while it computes."""


def filter_read(number: int) -> str:
    """The read of the filter of conv `number`, counted from 1."""
    return f"{FILTER_READ}{number} cache read"


def convolution(number: int) -> str:
    """What uses the copies for conv `number`."""
    return f"conv2d #{number}"
