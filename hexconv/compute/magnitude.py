"""Estimate how large the values of a chain are if none cancel: rounding errors are judged against that."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.chain import Chain

Array = NDArray[Any]
RELU6_MOST = 6.0


def magnitude(chain: Chain, image: Array, filters: Sequence[Array], biases: Sequence[Array | None]) -> float:
    """Estimate the output's values as if all summed terms were independent: the root of the sum of their squares.

    The rounding errors of a sum grow with its terms, not with its result: where signs cancel, or a relu leaves little,
    the outputs are small but their errors aren't. The next filter scales a tensor's errors as it scales its values. A
    relu6 keeps the next conv's values small; it doesn't make the errors of its own conv smaller, so the last conv's
    relu6 is left out here.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 1, 1, 2), conv=(Conv2d(out_channels=1),))
    >>> filter = np.array([[[[3.0]], [[-4.0]]]])
    >>> magnitude(chain, np.array([[[[4.0, 3.0]]]]), [filter], [None])
    20.0
    >>> limited = Chain(input=(1, 1, 1, 2), conv=(Conv2d(out_channels=1, activation="relu6"),))
    >>> magnitude(limited, np.array([[[[4.0, 3.0]]]]), [filter], [None])
    20.0
    """
    size = float(np.max(np.abs(image.astype(np.float64)), initial=0.0))
    is_limited = False
    for conv, filter, bias in zip(chain.conv, filters, biases, strict=True):
        size = min(size, RELU6_MOST) if is_limited else size
        squares = size**2 * np.square(filter.astype(np.float64)).sum(axis=(1, 2, 3))
        squares = squares if bias is None else squares + np.square(bias.astype(np.float64))
        size, is_limited = float(np.sqrt(squares.max())), conv.activation == "relu6"
    return size
