"""OKKernel: tensors in the local memories of Sophgo's NPUs and in system memory."""

from hexconv.layout.okk.chips import CHIPS, Chip, chip
from hexconv.layout.okk.matrix import check_matrix_dma, dma_row_stride, matrix
from hexconv.layout.okk.modes import MODES, joined
from hexconv.layout.okk.rules import check_dma_strides
from hexconv.layout.okk.strides import channels_per_npu
from hexconv.layout.okk.tensors import NAMED, local, system

__all__ = [
    "local",
    "system",
    "matrix",
    "joined",
    "Chip",
    "CHIPS",
    "chip",
    "channels_per_npu",
    "MODES",
    "NAMED",
    "check_dma_strides",
    "check_matrix_dma",
    "dma_row_stride",
]
