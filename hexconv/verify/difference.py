"""How far two integer tensors are apart, and how far a conv may be from ONNX Runtime's.

ONNX Runtime rounds a sum and its product with the scale to float32 before it rounds to an integer; a chain rounds the
exact product once. Where the product lies next to a half the two can differ, by one, in a few values of a million; in
more, where ONNX Runtime sums in floats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MILLION = 10**6
LARGEST = 1


@dataclass(frozen=True)
class Most:
    """How many values in a million may differ, where each conv is compared alone.

    Attributes:
        one: of the results of one conv.
        together: of the results of all convs of a network.
    """

    one: int
    together: int


MOST = {"uint8": Most(100, 10), "int8": Most(100, 20), "int16": Most(1000, 1000)}
"""By the dtype of activations. ONNX Runtime sums those of uint8 in integers, int8 on x86 and int16 in floats."""


@dataclass(frozen=True)
class Difference:
    """How far two integer tensors of one shape are apart.

    Attributes:
        values: how many elements each tensor has.
        differing: how many elements are not equal.
        largest: the largest absolute difference.
    """

    values: int
    differing: int
    largest: int

    @classmethod
    def of(cls, one: NDArray[Any], other: NDArray[Any]) -> "Difference":
        """Compare two integer tensors of one shape.

        >>> Difference.of(np.array([1, 2, 3]), np.array([1, 2, 5]))
        Difference(values=3, differing=1, largest=2)
        """
        if one.shape != other.shape:
            raise ValueError(f"tensors of {one.shape} and {other.shape}")
        apart = np.abs(one.astype(np.int64) - other.astype(np.int64))
        return cls(apart.size, int(np.count_nonzero(apart)), int(apart.max(initial=0)))

    @property
    def is_none(self) -> bool:
        """Whether all values are equal."""
        return self.differing == 0

    def exceeds(self, in_a_million: int) -> bool:
        """Whether more values differ than `in_a_million` allows, rounded up, or one differs by more than `LARGEST`.

        >>> Difference(1000, 1, 1).exceeds(10), Difference(1000, 2, 1).exceeds(10), Difference(10**6, 1, 2).exceeds(10)
        (False, True, True)
        """
        allowed = -(-self.values * in_a_million // MILLION)
        return self.differing > allowed or self.largest > LARGEST


def together(differences: Sequence[Difference]) -> Difference:
    """Sum up the differences of several pairs of tensors as if all their values lay in one pair."""
    return Difference(
        sum(one.values for one in differences),
        sum(one.differing for one in differences),
        max((one.largest for one in differences), default=0),
    )
