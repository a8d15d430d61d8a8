"""Judge a run's output: it must equal the reference over the logical region, and be zero over the fringe."""

from dataclasses import dataclass

import numpy as np

from hexconv.layout import Layout
from hexconv.run.measurement import Array

# |error| <= atol * max(max|reference|, magnitude) + rtol * |reference|. A float16 chain rounds every tensor to 11 bits.
TOLERANCE = {"float32": (1e-4, 2e-5), "float16": (2e-3, 2e-3)}
ROUNDING_OF_A_SUM = 2.0**-24
"""The relative rounding error of a partial sum: floats are summed in float32, whatever the dtype of their tensors."""


@dataclass(frozen=True)
class Check:
    """The verdict on one output.

    Attributes:
        passed: whether every element is within the tolerance (integers: equal), and the fringe is zero.
        max_abs_error: the largest absolute difference.
        max_rel_error: the largest difference, relative to the largest reference value.
        fringe_is_zero: whether all elements outside of the logical region are zero.
    """

    passed: bool
    max_abs_error: float
    max_rel_error: float
    fringe_is_zero: bool


@dataclass(frozen=True)
class Distance:
    """How far codes lie from others.

    Attributes:
        share: the share of the codes that differ.
        most: by how much, at most.
    """

    share: float
    most: int


def distance(codes: Array, others: Array) -> Distance:
    """Compare codes.

    >>> distance(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 6]))
    Distance(share=0.25, most=2)
    """
    apart = np.abs(codes.astype(np.int64) - others)
    return Distance(float(np.count_nonzero(apart) / apart.size), int(apart.max()))


def tolerance_of(dtype: str, longest_sum: int) -> tuple[float, float]:
    """Return the relative and the absolute tolerance of a dtype; (0, 0) for integers.

    A sum of n products is rounded n times, each time in the same direction where all products are equal. From 1678
    products on this rounding may be more than the tolerance that float32 has otherwise.

    >>> tolerance_of("float32", 1152), tolerance_of("int8", 70154)
    ((0.0001, 2e-05), (0.0, 0.0))
    >>> round(tolerance_of("float32", 70154)[0], 5)
    0.00418
    """
    if dtype not in TOLERANCE:
        return 0.0, 0.0
    relative, absolute = TOLERANCE[dtype]
    return max(relative, longest_sum * ROUNDING_OF_A_SUM), absolute


def check(output: Array, layout: Layout, expected: Array, dtype: str, magnitude: float, longest_sum: int) -> Check:
    """Judge an output.

    Args:
        output: the output as the run left it.
        layout: the layout of the output.
        expected: the expected output, logical NHWC.
        dtype: the type of the output's elements.
        magnitude: the magnitude of the values that were summed (`hexconv.compute.reference`). It tells how far rounding
            leads where all outputs are small because what they sum cancels. Integers are exact.
        longest_sum: the most products that a conv of the chain adds up for one output.
    """
    logical = layout.unpack(output)
    # Zeros of either sign are zeros: compare as numbers, where NaN equals nothing.
    fringe_is_zero = bool(np.all((output == 0) | layout.pack(np.ones(expected.shape, bool))))
    error = np.abs(logical.astype(np.float64) - expected.astype(np.float64))
    largest = float(np.max(np.abs(expected.astype(np.float64))))
    rtol, atol = tolerance_of(dtype, longest_sum)
    close = bool(np.all(error <= atol * max(largest, magnitude) + rtol * np.abs(expected.astype(np.float64))))
    max_abs_error = float(np.max(error))
    return Check(
        close and fringe_is_zero, max_abs_error, max_abs_error / largest if largest else max_abs_error, fringe_is_zero
    )
