"""Weights whose sums ONNX Runtime has right on any CPU, and tests that need a CPU on which all are right."""

import numpy as np
import pytest

from hexconv.run.machine_parts import saturation

WITNESSED = pytest.mark.skipif(bool(saturation()), reason=f"ONNX Runtime is no witness of convs: {saturation()}")
"""Marks a test that holds QLinearConv against ONNX Runtime, whatever the weights."""


def kept_exact(filter: np.ndarray) -> np.ndarray:
    """Halve int8 weights on a CPU without VNNI.

    There ONNX Runtime's x86 kernels add two products of uint8 and int8 in 16 bits. Two of 255 and -64 fit them, two of
    255 and -128 do not.
    """
    return filter // 2 if saturation() else filter
