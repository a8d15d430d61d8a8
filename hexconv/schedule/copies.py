"""The parts of a schedule that copy between memory and caches, by the names that they have in the nest."""

INPUT_READ = "input cache read"
WRITE_BACK = "write back output cache"
FILTER_READ = "filter #"
"""The prefix of the names of filter reads."""

BUFFERING = "hexconv.buffering"
"""Attribute of a scheduled function: `double` where its copies overlap with compute."""


def filter_read(number: int) -> str:
    """Return the name of the filter read of conv `number`, counted from 1."""
    return f"{FILTER_READ}{number} cache read"


def convolution(number: int) -> str:
    """Return the name of the part that uses the copies for conv `number`."""
    return f"conv2d #{number}"
