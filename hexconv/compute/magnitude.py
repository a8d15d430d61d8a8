"""How large the values of a chain are where they don't cancel: what rounding errors are judged by."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.chain import Chain

Array = NDArray[Any]
RELU6_MOST = 6.0


def magnitude(chain: Chain, image: Array, filters: Sequence[Array], biases: Sequence[Array | None]) -> float:
    """The order of the output's values, were all that is summed independent of each other: the root of the squares.

    A sum of products is rounded by parts of what it sums, not of what comes out: where signs cancel, or a relu leaves
    little, the outputs are small and their errors aren't. Errors of a tensor are carried on by the next filter as its
    values are. A relu6 keeps the next conv's values small; it doesn't make the errors of its own smaller, so that the
    last one has no part in this.

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
