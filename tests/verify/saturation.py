"""Weights whose sums ONNX Runtime has right on any CPU."""

import numpy as np

from hexconv.run.machine_parts import saturation


def kept_exact(filter: np.ndarray) -> np.ndarray:
    """Halve int8 weights on a CPU without VNNI.

    There ONNX Runtime's x86 kernels add two products of uint8 and int8 in 16 bits. Two of 255 and -64 fit them, two of
    255 and -128 do not.
    """
    return filter // 2 if saturation() else filter
