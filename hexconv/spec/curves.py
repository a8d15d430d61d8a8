"""The activations of float convs in numpy, from their definitions, in float64."""

from collections.abc import Callable, Mapping
from math import erf, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.spec.chain import Conv2d
from hexconv.spec.code_sums import clipped

Array = NDArray[Any]


def activated(x: Array, conv: Conv2d, slopes: Array | None = None) -> Array:
    """Apply the activation of a float conv to its sums, in float64.

    Args:
        x: the sums, bias included, channels last.
        conv: the conv.
        slopes: [K], the slopes of a prelu.
    """
    with np.errstate(over="ignore"):  # exp of a large number is infinity, and one over it zero
        return CURVE_OF[conv.activation](x, conv, slopes)


def _line_below_zero(x: Array, slope: Array | float) -> Array:
    return np.where(x < 0, slope * x, x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _hardsigmoid(x: Array, slope: float, offset: float) -> Array:
    return clipped(slope * x + offset, (0, 1))


def _erf(x: Array) -> Array:
    return np.vectorize(erf, otypes=[np.float64])(x)


CURVE_OF: Mapping[str, Callable[[Array, Conv2d, Array | None], Array]] = {
    "none": lambda x, _conv, _slopes: x,
    "relu": lambda x, _conv, _slopes: np.maximum(x, 0),
    "relu6": lambda x, _conv, _slopes: clipped(x, (0, 6)),
    "leaky_relu": lambda x, conv, _: _line_below_zero(x, conv.slope),
    "prelu": lambda x, _, slopes: _line_below_zero(x, np.asarray(slopes, np.float64)),
    "elu": lambda x, conv, _: np.where(x < 0, conv.slope * np.expm1(np.minimum(x, 0)), x),
    "sigmoid": lambda x, _conv, _slopes: _sigmoid(x),
    "hardsigmoid": lambda x, conv, _: _hardsigmoid(x, conv.slope, conv.offset),
    "tanh": lambda x, _conv, _slopes: np.tanh(x),
    "silu": lambda x, _conv, _slopes: x * _sigmoid(x),
    "hardswish": lambda x, _conv, _slopes: x * _hardsigmoid(x, 1 / 6, 0.5),
    "gelu": lambda x, _conv, _slopes: x * (1 + _erf(x / sqrt(2))) / 2,
    "gelu_tanh": lambda x, _conv, _slopes: x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2,
}
"""By name, the function from a conv's sums to its results, as the fields of a conv define it."""
