"""Integers in numpy that never overflow: int64 where it is large enough, Python's integers where it is not."""

from typing import Any

import numpy as np

Integers = np.ndarray[Any, np.dtype[Any]]

LARGEST = 2**62


def integer_type(largest: int) -> type[Any]:
    """Return an element type for arrays whose values, and sums of two values, reach `largest`.

    >>> integer_type(1000).__name__, integer_type(2**63).__name__
    ('int64', 'object')
    """
    return np.int64 if largest < LARGEST else object


def ceil_divide(dividend: Any, divisor: Any) -> Any:
    """Return the quotient of numbers or arrays, rounded up."""
    return -(-dividend // divisor)
