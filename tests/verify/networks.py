"""Small quantised networks as tools write them: a stem, a residual block, a classifier; and one of two chains alone."""

from typing import Any

import numpy as np

from tests.model.builder import Builder
from tests.verify.saturation import kept_exact

IMAGE = (1, 3, 20, 20)
STEP = np.float32(0.021)
"""Of the image, a normal distribution."""
SPREAD = 31.7
"""Steps that a standard deviation has behind each conv."""


class Network(Builder):
    """A builder that quantises as it goes: activations uint8, filters int8."""

    def __init__(self, form: str = "qdq", per_channel: bool = False, seed: int = 0) -> None:
        super().__init__("network", IMAGE, seed=seed, opset=17)
        self.form, self.per_channel = form, per_channel

    def ends(self, scale: Any, zero: int, dtype: str = "uint8") -> list[str]:
        zeros = np.full(np.shape(scale), zero, dtype)
        return [self.constant(scale, "float32"), self.constant(zeros, dtype)]

    def quantised(self, value: str, scale: float | np.floating, zero: int) -> str:
        return self.node("QuantizeLinear", [value, *self.ends(scale, zero)])

    def real(self, codes: str, scale: float | np.floating, zero: int) -> str:
        return self.node("DequantizeLinear", [codes, *self.ends(scale, zero)])

    def weights8(self, *shape: int, axis: int) -> str:
        """Weights of int8, one scale for each place of an axis."""
        codes = self.constant(self.random.integers(-127, 128, shape), "int8")
        scales = self.random.uniform(0.001, 0.004, shape[axis])
        return self.node("DequantizeLinear", [codes, *self.ends(scales, 0, "int8")], axis=axis)

    def start(self) -> tuple[str, np.float32, int]:
        """The image, quantised: codes, scale, zero point."""
        return self.quantised("image", STEP, 128), STEP, 128

    def conv8(
        self, source: tuple[str, np.float32, int], shape: tuple[int, int, int, int], relu: bool = True, **rest: Any
    ) -> tuple[str, np.float32, int]:
        """A conv whose results spread over 8 bits."""
        codes, scale, zero = source
        filter = kept_exact(self.random.integers(-127, 127, shape, "int8", endpoint=True))
        channels = shape[0] if self.per_channel else ()
        own = np.float32(self.random.uniform(0.001, 0.004, channels))
        units = self.random.integers(-2000, 2000, shape[0])
        fan_in = float(np.prod(shape[1:]))
        made = np.float32(float(np.mean(own)) * float(scale) * 74 * 30 * np.sqrt(fan_in) / SPREAD)
        after = 0 if relu else 128
        rest = {"pads": [shape[2] // 2] * 4, **rest}
        stored, bias = self.constant(filter, "int8"), self.constant(units, "int32")
        if self.form == "qlinear":
            ends = [codes, *self.ends(scale, zero), stored, *self.ends(own, 0, "int8"), *self.ends(made, after), bias]
            return self.node("QLinearConv", ends, **rest), made, after
        axis: dict[str, Any] = {"axis": 0} if self.per_channel else {}
        weights = self.node("DequantizeLinear", [stored, *self.ends(own, 0, "int8")], **axis)
        added = self.node("DequantizeLinear", [bias, *self.ends(scale * own, 0, "int32")], **axis)
        result = self.node("Conv", [self.real(codes, scale, zero), weights, added], **rest)
        result = self.node("Relu", [result]) if relu else result
        return self.quantised(result, made, after), made, after

    def added(
        self, one: tuple[str, np.float32, int], other: tuple[str, np.float32, int]
    ) -> tuple[str, np.float32, int]:
        """Their sum."""
        scale = np.float32(one[1] + other[1])
        total = self.node("Add", [self.real(*one), self.real(*other)])
        return self.quantised(total, scale, 128), scale, 128

    def classified(self, source: tuple[str, np.float32, int], channels: int, classes: int = 12) -> str:
        """Scores, a row an image."""
        pooled = self.node("GlobalAveragePool", [self.real(*source)])
        flat = self.node("Flatten", [pooled])
        weights = self.constant(self.random.standard_normal((channels, classes)), "float32")
        return self.node("MatMul", [flat, weights])


def residual(
    form: str = "qdq", per_channel: bool = False, seed: int = 0, projected: bool = False
) -> tuple[Network, str]:
    """A stem, a block of two convs beside which their input is added, a conv, a classifier; its output.

    Where the input is `projected`, it is added behind a conv of its own, so that the Add stands between chains.
    """
    net = Network(form, per_channel, seed)
    stem = net.conv8(net.start(), (16, 3, 3, 3), strides=[2, 2])
    block = net.conv8(net.conv8(stem, (16, 16, 3, 3)), (16, 16, 3, 3), relu=False)
    beside = net.conv8(stem, (16, 16, 1, 1)) if projected else stem
    last = net.conv8(net.added(beside, block), (32, 16, 1, 1))
    return net, net.classified(last, 32)
