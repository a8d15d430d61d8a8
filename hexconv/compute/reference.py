"""The answer from the definition of a convolution, in numpy: logical tensors, no packing, no TVM.

Floats are summed in float64 and rounded to the chain's dtype wherever a tensor is stored; integers in int64, exactly.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.chain import INTEGER_RANGE, Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.requantize import Requantize

Array = NDArray[Any]


def reference(chain: Chain, image: Array, filters: Sequence[Array], biases: Sequence[Array | None]) -> Array:
    """The chain's output, logical NHWC.

    Args:
        chain: what to compute.
        image: logical NHWC.
        filters: one OIHW array per conv.
        biases: one [K] array, or None, per conv.

    Returns:
        NHWC; integers in their output dtype, floats in float64 (the last tensor is not rounded).
    """
    tensor = image
    for index, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True)):
        sums = convolution(conv, tensor, filter, chain.output_zero_point(index))
        sums = sums + bias if bias is not None else sums
        is_last = index == len(chain.conv) - 1
        tensor = _stored(conv, sums, chain.output_dtype(index), is_last)
    return tensor


def convolution(conv: Conv2d, image: Array, filter: Array, zero_point: int) -> Array:
    """`out[n, y, x, k] = sum of in[n, y*sh + rh*dh - top, x*sw + rw*dw - left, c] * filter[k, c, rh, rw]`.

    Zero points are subtracted first; what lies outside of the image is zero. With groups, k and c count within one.
    """
    exact = np.int64 if np.issubdtype(image.dtype, np.integer) else np.float64
    pad = conv.padding
    padded = np.pad(image.astype(exact) - zero_point, ((0, 0), (pad.top, pad.bottom), (pad.left, pad.right), (0, 0)))
    taps = filter.astype(exact) - conv.filter_zero_point
    rows, columns = (
        (size - reach) // stride + 1
        for size, reach, stride in zip(padded.shape[1:3], conv.reach, conv.stride, strict=True)
    )
    total = np.zeros((image.shape[0], rows, columns, conv.out_channels), exact)
    for group in range(conv.groups):
        outputs = _part(conv.out_channels, conv.groups, group)
        seen = padded[..., _part(image.shape[3], conv.groups, group)]
        for rh, rw in np.ndindex(conv.kernel):
            total[..., outputs] += _seen_by_tap(conv, seen, rh, rw, rows, columns) @ taps[outputs, :, rh, rw].T
    return total


def _part(channels: int, groups: int, group: int) -> slice:
    """The channels of one group."""
    size = channels // groups
    return slice(group * size, (group + 1) * size)


def requantized(sums: Array, by: Requantize, dtype: str) -> Array:
    """TFLite's `MultiplyByQuantizedMultiplier` on int64 arrays, then the zero point and saturation (`Requantize`)."""
    wide = np.clip(sums * (1 << max(by.shift, 0)), -(2**31), 2**31 - 1)
    high = (wide * by.multiplier + (1 << 30)) >> 31
    bits = max(-by.shift, 0)
    half = (1 << bits) >> 1
    nudge = half - (high < 0) if by.rounding == "away" and bits else half
    return np.clip(((high + nudge) >> bits) + by.zero_point, *INTEGER_RANGE[dtype]).astype(dtype)


def activated(sums: Array, activation: str) -> Array:
    """Sums behind their activation."""
    return sums if activation == "none" else np.clip(sums, 0, 6 if activation == "relu6" else None)


def _seen_by_tap(conv: Conv2d, padded: Array, rh: int, rw: int, rows: int, columns: int) -> Array:
    """The inputs that one tap of the filter meets, one per output."""
    (sh, sw), (dh, dw) = conv.stride, conv.dilation
    top, left = rh * dh, rw * dw
    return padded[:, top : top + (rows - 1) * sh + 1 : sh, left : left + (columns - 1) * sw + 1 : sw, :]


def _stored(conv: Conv2d, sums: Array, dtype: str, is_last: bool) -> Array:
    """The sums as the next conv finds them."""
    if conv.requantize:
        return requantized(sums, conv.requantize, dtype)
    result = activated(sums, conv.activation)
    return result if is_last and dtype.startswith("float") else result.astype(dtype)
