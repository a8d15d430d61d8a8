"""Whether a run's output is right: compared with the reference over the logical region, zero over the fringe."""

from dataclasses import dataclass

import numpy as np

from hexconv.kernel.forms import ACTIVATION_TAG
from hexconv.layout import packed
from hexconv.run.runner import Array

# |error| <= atol * max(max|reference|, magnitude) + rtol * |reference|. A float16 chain rounds every tensor to 11 bits.
TOLERANCE = {"float32": (1e-4, 2e-5), "float16": (2e-3, 2e-3)}


@dataclass(frozen=True)
class Check:
    """The verdict on one output.

    Attributes:
        passed: within the tolerance (equal, for integers) everywhere, and zero over the fringe.
        max_abs_error: largest absolute difference.
        max_rel_error: largest difference relative to the largest reference value.
        fringe_is_zero: whether all elements outside of the logical region are zero.
    """

    passed: bool
    max_abs_error: float
    max_rel_error: float
    fringe_is_zero: bool


def check(output: Array, expected: Array, dtype: str, magnitude: float) -> Check:
    """Judge a packed output.

    Args:
        output: NHWC8h8w32c, as the run left it.
        expected: logical NHWC.
        dtype: of the output.
        magnitude: of the values that were summed (`hexconv.compute.magnitude`), which tells how far rounding leads
            where all outputs are small because what they sum cancels. Integers are exact.
    """
    layout = packed(ACTIVATION_TAG, expected.shape)
    logical = layout.unpack(output)
    # Zeros of either sign are zeros: compare as numbers, where NaN equals nothing.
    fringe_is_zero = bool(np.all((output == 0) | layout.pack(np.ones(expected.shape, bool))))
    error = np.abs(logical.astype(np.float64) - expected.astype(np.float64))
    largest = float(np.max(np.abs(expected.astype(np.float64)), initial=0.0))
    rtol, atol = TOLERANCE.get(dtype, (0.0, 0.0))
    close = bool(np.all(error <= atol * max(largest, magnitude) + rtol * np.abs(expected.astype(np.float64))))
    max_abs_error = float(np.max(error, initial=0.0))
    return Check(
        close and fringe_is_zero, max_abs_error, max_abs_error / largest if largest else max_abs_error, fringe_is_zero
    )
