"""Drawn networks as quantisers write them: what ONNX Runtime rounds, fuses or lays out otherwise than ONNX defines.

Scales that make ties, tables behind sums, squeeze-and-excite, fire modules, tensors quantised twice, NHWC ends.
"""

from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.verify.networks import IMAGE, STEP, Network

Codes = tuple[str, np.float32, int]
CHANNELS = 8
COARSER = 32
CURVES = ("Sigmoid", "HardSwish", "SiLU", "Tanh")


class DrawnNetwork(Network):
    """A network that grows by parts; each reads codes, and gives codes back.

    Args (of the constructor):
        ties: whether scales are round numbers, so that many products lie next to halves.
    """

    def __init__(self, per_channel: bool, seed: int, ties: bool) -> None:
        super().__init__("qdq", per_channel, seed)
        self.ties = ties

    def conv(self, source: Codes, shape: tuple[int, int, int, int], relu: bool = False, **rest: Any) -> Codes:
        first = len(self.initializers)
        codes, scale, zero = self.conv8(source, shape, relu, **rest)
        if not self.ties:
            return codes, scale, zero
        # Small weights, and scales that are round numbers: one sum in some ten lies next to a half.
        new = {stored.name: onnx.numpy_helper.to_array(stored) for stored in self.initializers[first:]}
        [filter] = [name for name, values in new.items() if values.ndim == 4]
        own, of_bias, _, result = [name for name, values in new.items() if values.dtype == np.float32]
        made = round_number(scale / COARSER)
        scales = {own: round_number(new[own]), of_bias: source[1] * round_number(new[own]), result: made}
        for stored in self.initializers[first:]:
            if stored.name in (filter, *scales):
                values = new[filter] // COARSER if stored.name == filter else scales[stored.name]
                stored.CopyFrom(onnx.numpy_helper.from_array(np.asarray(values), stored.name))
        return codes, made, zero

    def curved(self, source: Codes, curve: str) -> Codes:
        real = self.real(*source)
        if curve != "SiLU":
            return self.codes(self.node(curve, [real]), 1 / 255 if curve == "Sigmoid" else float(source[1]))
        inner = self.codes(self.node("Sigmoid", [real]), 1 / 256)
        return self.codes(self.node("Mul", [real, self.real(*inner)]), float(source[1]))

    def squeezed(self, source: Codes) -> Codes:
        """A squeeze-and-excite block: the image times numbers that it makes of its own mean."""
        pooled = self.codes(self.node("GlobalAveragePool", [self.real(*source)]), float(source[1]) / 2)
        inner = self.conv(pooled, (4, CHANNELS, 1, 1), relu=True)
        gate = self.node("HardSigmoid", [self.real(*self.conv(inner, (CHANNELS, 4, 1, 1)))], alpha=1 / 6)
        times = self.node("Mul", [self.real(*source), self.real(*self.codes(gate, 1 / 255))])
        return self.codes(times, float(source[1]))

    def fire(self, source: Codes) -> Codes:
        """A fire module: convs of 1x1 and 3x3 side by side, and a pool that ONNX Runtime lays out anew."""
        inner = self.conv(source, (4, CHANNELS, 1, 1), relu=True)
        sides = [self.conv(inner, (CHANNELS // 2, 4, size, size), relu=True) for size in (1, 3)]
        both = self.node("Concat", [self.real(*side) for side in sides], axis=1)
        joined = self.codes(both, float(max(side[1] for side in sides)), 0)
        pooled = self.node("MaxPool", [self.real(*joined)], kernel_shape=[3, 3], pads=[1] * 4)
        return self.quantised(pooled, *joined[1:]), *joined[1:]

    def twice(self, source: Codes) -> Codes:
        """The same tensor, quantised a second time by another scale."""
        return self.codes(self.real(*source), float(source[1]) * 1.25)

    def codes(self, real: str, scale: float, zero: int = 128) -> Codes:
        step = round_number(np.float32(scale)) if self.ties else np.float32(scale)
        return self.quantised(real, step, zero), step, zero


def round_number(scale: Any) -> Any:
    """The nearest of 1, 2 and 5 times a power of ten, as float32, which holds none of them below 1."""
    steps = np.array([1, 2, 5]) * 10.0 ** np.arange(-8, 3)[:, None]
    nearest = np.abs(np.log(steps.reshape(-1) / np.asarray(scale)[..., None])).argmin(-1)
    return np.asarray(steps.reshape(-1)[nearest], np.float32)[()]


@st.composite
def networks(draw: st.DrawFn) -> onnx.ModelProto:
    """A stem, one to three parts with a conv behind, and an output of numbers."""
    net = DrawnNetwork(draw(st.booleans()), draw(st.integers(0, 99)), draw(st.booleans()))
    step = round_number(STEP) if net.ties else STEP
    image = "image"
    if draw(st.booleans()):
        batch, channels, rows, columns = IMAGE
        net.inputs = [onnx.helper.make_tensor_value_info("image", net.dtype, [batch, rows, columns, channels])]
        image = net.node("Transpose", ["image"], perm=[0, 3, 1, 2])
    at = net.conv((net.quantised(image, step, 128), step, 128), (CHANNELS, 3, 3, 3), strides=[2, 2])
    for part in draw(st.lists(st.sampled_from(["squeezed", "fire", "twice", *CURVES]), min_size=1, max_size=3)):
        at = net.curved(at, part) if part in CURVES else getattr(net, part)(at)
        at = net.conv(at, (CHANNELS, CHANNELS, 1, 1), relu=draw(st.booleans()))
    return net.model(net.real(*at))
