"""The transform of 3x3 filters that MACE stores in Winograd images: U = G g G^T per pair of channels."""

import numpy as np
from numpy.typing import NDArray

from hexconv.errors import InputError

_G = {
    2: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
    6: [
        [1, 0, 0],
        [-2 / 9, -2 / 9, -2 / 9],
        [-2 / 9, 2 / 9, -2 / 9],
        [1 / 90, 1 / 45, 2 / 45],
        [1 / 90, -1 / 45, 2 / 45],
        [1 / 45, 1 / 90, 1 / 180],
        [1 / 45, -1 / 90, 1 / 180],
        [0, 0, 1],
    ],
}
"""The matrix G for each block size, from mace/ops/opencl/cl/buffer_to_image.cl."""


def winograd_filter(weights: NDArray[np.floating], block: int) -> NDArray[np.floating]:
    """Transform 3x3 filters for output tiles of `block` x `block`.

    Args:
        weights: (O, I, 3, 3).
        block: 2, 4 or 6.

    Returns:
        (O, I, block + 2, block + 2), rows along h; the dtype of the weights.

    Raises:
        InputError: the block size is another, or the filters aren't 3x3.
    """
    if block not in _G:
        raise InputError("mace winograd: block", str(block), "2, 4 or 6")
    if weights.ndim != 4 or weights.shape[2:] != (3, 3):
        raise InputError("mace winograd: filter shape", str(list(weights.shape)), "O,I,3,3")
    g = np.array(_G[block])
    return np.einsum("ah,oihw,bw->oiab", g, weights, g).astype(weights.dtype)
