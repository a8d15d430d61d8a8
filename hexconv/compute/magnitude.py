"""Estimate how large the values of a chain are if none cancel: rounding errors are judged against that."""

from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.activations import PRELU, SLOPE
from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.names import numbered

Array = NDArray[Any]
NO_VECTORS: Mapping[str, Array] = MappingProxyType({})


def magnitude(
    chain: Chain,
    image: Array,
    filters: Sequence[Array],
    biases: Sequence[Array | None],
    vectors: Mapping[str, Array] = NO_VECTORS,
) -> float:
    """Estimate the output's values as if all summed terms were independent: the root of the sum of their squares.

    The rounding errors of a sum grow with its terms, not with its result: where signs cancel, or a relu leaves little,
    the outputs are small but their errors aren't. The next filter scales a tensor's errors as it scales its values.

    An activation multiplies an error by its steepest slope s at most, so values of a size v are taken for s * v + f(0)
    behind it, which no result exceeds. A bound b keeps the next conv's values small: sums beyond it make results, and
    errors, of s * b or less. It doesn't make the errors of its own conv smaller, so it is left out for the last conv.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 1, 1, 2), conv=(Conv2d(out_channels=1),))
    >>> filter = np.array([[[[3.0]], [[-4.0]]]])
    >>> magnitude(chain, np.array([[[[4.0, 3.0]]]]), [filter], [None])
    20.0
    >>> limited = Chain(input=(1, 1, 1, 2), conv=(Conv2d(out_channels=1, activation="relu6"),))
    >>> magnitude(limited, np.array([[[[4.0, 3.0]]]]), [filter], [None])
    20.0
    >>> steep = Conv2d(out_channels=1, activation="leaky_relu", activation_slope=-3.0)
    >>> magnitude(Chain(input=(1, 1, 1, 2), conv=(steep,)), np.array([[[[4.0, 3.0]]]]), [filter], [None])
    60.0
    """
    size, most = float(np.max(np.abs(image.astype(np.float64)), initial=0.0)), inf
    for number, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True), 1):
        size = min(size, most)
        squares = size**2 * np.square(filter.astype(np.float64)).sum(axis=(1, 2, 3))
        squares = squares if bias is None else squares + np.square(bias.astype(np.float64))
        steepest = conv.curve.steepest(_slope(conv, number, vectors))
        size, most = float(np.sqrt(squares.max())) * steepest + conv.curve.at_zero, max(steepest, 1) * conv.curve.bound
    return size


def _slope(conv: Conv2d, number: int, vectors: Mapping[str, Array]) -> float:
    """The slope of a conv's activation; of a prelu the largest of all channels."""
    return float(np.abs(vectors[numbered(SLOPE, number)]).max()) if conv.activation == PRELU else conv.slope
