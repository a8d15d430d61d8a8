"""Strides of the named layouts, in elements (of units, in the 4N, 2N and 2IC modes), as (n, c, h, w).

A channel stride leads from channel c to channel c + npus: neighbours lie on neighbouring NPUs.
"""

from hexconv.layout.okk.chips import Chip

Shape = tuple[int, int, int, int]
Strides = tuple[int, int, int, int]


def channels_per_npu(chip: Chip, start_npu: int, channels: int) -> int:
    """How many rows of channels a tensor takes on each NPU (`okk_channle_num_per_npu`).

    >>> from hexconv.layout.okk.chips import CHIPS
    >>> channels_per_npu(CHIPS["bm1684"], 63, 66)
    3
    """
    return -(-(start_npu + channels) // chip.npus)


def aligned_strides(chip: Chip, start_npu: int, shape: Shape, unit_bytes: int) -> Strides:
    """Strides by which each channel starts on a multiple of the execution units' width (`tpu_aligned_stride`)."""
    _, c, h, w = shape
    c_stride = _round_up(h * w, chip.eu_elements(unit_bytes))
    return channels_per_npu(chip, start_npu, c) * c_stride, c_stride, w, 1


def line_aligned_strides(chip: Chip, start_npu: int, shape: Shape, unit_bytes: int) -> Strides:
    """Strides by which each row starts on a multiple of the execution units' width (`tpu_line_aligned_stride`)."""
    _, c, h, w = shape
    h_stride = _round_up(w, chip.eu_elements(unit_bytes))
    return channels_per_npu(chip, start_npu, c) * h * h_stride, h * h_stride, h_stride, 1


def compact_strides(chip: Chip, start_npu: int, shape: Shape) -> Strides:
    """Strides that leave nothing between rows and channels (`okk_compact_stride`)."""
    _, c, h, w = shape
    return channels_per_npu(chip, start_npu, c) * h * w, h * w, w, 1


def continuous_strides(shape: Shape) -> Strides:
    """Dense strides in system memory (`okk_continuous_stride`); there a channel stride leads to the next channel."""
    _, c, h, w = shape
    return c * h * w, h * w, w, 1


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
