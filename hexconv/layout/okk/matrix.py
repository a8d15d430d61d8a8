"""The matrix layout of OKKernel: rows x columns as a tensor, and how many columns a channel should hold."""

from collections.abc import Iterator
from typing import NamedTuple

from hexconv.errors import InputError, Unsupported
from hexconv.layout.digits import Axis, Digit, Output
from hexconv.layout.mapping import Layout
from hexconv.layout.okk.chips import MAX_SIZE, Chip, check_end, check_shape, check_start, itemsize
from hexconv.layout.okk.local_memory import aligned_strides, channels_per_npu


def matrix(
    chip: Chip,
    rows: int,
    columns: int,
    columns_per_channel: int,
    dtype: str,
    *,
    start_npu: int = 0,
    offset_bytes: int = 0,
) -> Layout:
    """The layout of a matrix in local memory: axes `R` (rows) and `M` (columns), outputs `npu` and `byte`.

    Args:
        chip: the chip whose memory it is.
        rows: the rows of the matrix.
        columns: the columns of the matrix.
        columns_per_channel: W, from 1 to `columns`; the last channel holds the columns that are left.
        dtype: the dtype of the elements.
        start_npu: the NPU of the first columns.
        offset_bytes: the offset of the matrix in each NPU's memory.

    Raises:
        InputError: the chip refuses the size, start, alignment or end.
    """
    if not 1 <= columns_per_channel <= columns:
        raise InputError("okk matrix: columns per channel", str(columns_per_channel), f"1 to {columns}")
    width = columns_per_channel
    channels = -(-columns // width)
    shape = check_shape(chip, (rows, channels, 1, width))
    check_start(chip, start_npu, offset_bytes, chip.eu_bytes)
    n_stride, c_stride, _, _ = aligned_strides(chip, start_npu, shape, itemsize(dtype))
    check_end(chip, offset_bytes, rows * n_stride * itemsize(dtype))
    return Layout(
        name="matrix",
        axes=(Axis("R", rows), Axis("M", columns, shift=start_npu * width)),
        outputs=(Output("npu", chip.npus), Output("byte", rows * n_stride, offset_bytes, itemsize(dtype))),
        digits=(
            Digit("M", "npu", divisor=width, modulus=chip.npus),
            Digit("R", "byte", stride=n_stride),
            Digit("M", "byte", divisor=width * chip.npus, stride=c_stride),
            Digit("M", "byte", modulus=width),
        ),
        itemsize_bytes=itemsize(dtype),
    )


def dma_row_stride(chip: Chip, columns: int, columns_per_channel: int, dtype: str, start_npu: int) -> int:
    """The elements between rows, as the chip's matrix DMA writes them.

    The BM1684's DMA counts channels per NPU as if the matrix started at NPU 0 (its own matrix multiplication
    doesn't).
    """
    counted_from = 0 if chip.name == "bm1684" else start_npu
    shape = (1, -(-columns // columns_per_channel), 1, columns_per_channel)
    return aligned_strides(chip, counted_from, shape, itemsize(dtype))[0]


def check_matrix_dma(chip: Chip, columns: int, columns_per_channel: int, dtype: str, start_npu: int) -> None:
    """Refuse a start at which the DMA and the matrix layout differ.

    Raises:
        Unsupported: on the BM1684, the start NPU pushes the channels over a multiple of the NPUs.
    """
    shape = (1, -(-columns // columns_per_channel), 1, columns_per_channel)
    wanted = aligned_strides(chip, start_npu, shape, itemsize(dtype))[0]
    written = dma_row_stride(chip, columns, columns_per_channel, dtype, start_npu)
    if wanted != written:
        raise Unsupported(
            f"okk matrix: the DMA of {chip.name} writes rows {written} elements apart at start NPU "
            f"{start_npu}, the matrix layout and the matrix multiplication want {wanted}; "
            "start where the channels don't wrap"
        )


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
