"""The layouts of OKKernel: tensors in the local memories of Sophgo's NPUs and in system memory."""

from hexconv.layout.okk.chips import CHIPS, Chip, chip
from hexconv.layout.okk.matrix import check_matrix_dma, dma_row_stride, matrix
from hexconv.layout.okk.modes import MODES, joined
from hexconv.layout.okk.rooms import check_apart, empty_blocks
from hexconv.layout.okk.rules import check_dma_strides
from hexconv.layout.okk.strides import (
    aligned_strides,
    channels_per_npu,
    compact_strides,
    continuous_strides,
    line_aligned_strides,
)
from hexconv.layout.okk.tensors import NAMED, local, strides_of, system
from hexconv.layout.okk.units import View, join_units, split_units, unit_view
from hexconv.layout.okk.width import Width, best_width

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
