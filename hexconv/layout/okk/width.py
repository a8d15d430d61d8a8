"""Compute how many columns of a matrix a channel should hold, where the document only says "moderately small"."""

from collections.abc import Iterator
from typing import NamedTuple

from hexconv.errors import InputError
from hexconv.layout.okk.chips import Chip
from hexconv.layout.okk.rules import MAX_SIZE, itemsize
from hexconv.layout.okk.strides import channels_per_npu


class Width(NamedTuple):
    """One choice of columns per channel.

    Attributes:
        row_bytes: the bytes that a row of the matrix takes on each NPU.
        channel_rows: how many rows of channels lie on each NPU.
        columns_per_channel: W.
    """

    row_bytes: int
    channel_rows: int
    columns_per_channel: int


def best_width(chip: Chip, columns: int, dtype: str, start_npu: int = 0) -> Width:
    """The width that takes the fewest bytes; among equals the fewest rows of channels, then the most NPUs.

    For every number of rows of channels the smallest width that fits them is the best, so only such widths are
    looked at.

    Raises:
        InputError: the matrix has more columns than the chip's channels hold.

    >>> from dataclasses import replace
    >>> from hexconv.layout.okk.chips import CHIPS
    >>> best_width(replace(CHIPS["bm1684"], npus=4), 40, "float32")
    Width(row_bytes=128, channel_rows=1, columns_per_channel=10)
    """
    widths = list(_widths(chip, columns, itemsize(dtype), start_npu))
    if not widths:
        raise InputError("okk matrix: columns", str(columns), f"1 to {chip.max_channels * MAX_SIZE}")
    return min(widths)


def _widths(chip: Chip, columns: int, width_bytes: int, start_npu: int) -> Iterator[Width]:
    """The smallest width for every number of rows of channels."""
    for rows in range(1, 1 + channels_per_npu(chip, start_npu, min(columns, chip.max_channels))):
        channels = min(rows * chip.npus - start_npu, chip.max_channels)
        width = -(-columns // channels)
        if width <= MAX_SIZE:
            used = channels_per_npu(chip, start_npu, -(-columns // width))
            units = -(-width * width_bytes // chip.eu_bytes)
            yield Width(used * units * chip.eu_bytes, used, width)
