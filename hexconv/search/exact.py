"""Whole numbers in numpy that never wrap around: 64 bits where they are enough, Python's own where they are not."""

from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[Any]]

LARGEST = 2**62


def integer_type(largest: int) -> type:
    """The element type for arrays whose values, and sums of two of them, reach `largest`.

    >>> integer_type(1000).__name__, integer_type(2**63).__name__
    ('int64', 'object')
    """
    return np.int64 if largest < LARGEST else object


def ceil_divide(dividend: Any, divisor: Any) -> Any:
    """Quotient rounded up, of numbers or arrays."""
    return -(-dividend // divisor)
