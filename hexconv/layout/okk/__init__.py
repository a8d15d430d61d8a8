"""The layouts of OKKernel: tensors in the local memories of Sophgo's NPUs and in system memory."""

from hexconv.layout.okk.chips import CHIPS, Chip, check_dma_strides, chip
from hexconv.layout.okk.local_memory import (
    NAMED,
    aligned_strides,
    channels_per_npu,
    check_apart,
    compact_strides,
    continuous_strides,
    empty_blocks,
    line_aligned_strides,
    local,
    strides_of,
    system,
)
from hexconv.layout.okk.matrix import Width, best_width, check_matrix_dma, dma_row_stride, matrix
from hexconv.layout.okk.modes import MODES, View, join_units, joined, split_units, unit_view

__all__ = [
    "local",
    "system",
    "matrix",
    "joined",
    "Chip",
    "CHIPS",
    "chip",
    "channels_per_npu",
    "aligned_strides",
    "line_aligned_strides",
    "compact_strides",
    "continuous_strides",
    "strides_of",
    "View",
    "unit_view",
    "join_units",
    "split_units",
    "Width",
    "best_width",
    "empty_blocks",
    "check_apart",
    "MODES",
    "NAMED",
    "check_dma_strides",
    "check_matrix_dma",
    "dma_row_stride",
]
