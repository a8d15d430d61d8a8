"""Small networks of five families, quantised by ONNX Runtime's own tool: `python -m tests.verify.families FOLDER`.

Each is what its family is made of, with few channels and small images: FAMILY-tensor.onnx (QDQ, one scale a tensor),
FAMILY-channel.onnx (QDQ, one a channel) and FAMILY-operators.onnx (QLinearConv and its like).
"""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tests.model.builder import Builder

FORMS = {
    "tensor": {"quant_format": QuantFormat.QDQ, "per_channel": False},
    "channel": {"quant_format": QuantFormat.QDQ, "per_channel": True},
    "operators": {"quant_format": QuantFormat.QOperator, "per_channel": False},
}
TYPES: dict[str, Any] = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
CLASSES = 20


class Family(Builder):
    """A builder of float networks."""

    def __init__(self, name: str, channels: int, size: int) -> None:
        super().__init__(name, (1, channels, size, size), opset=17)

    def rectified(self, source: str, *shape: int, **rest: object) -> str:
        return self.node("Relu", [self.conv(source, shape, **rest)])  # pyright: ignore[reportArgumentType]

    def classified(self, source: str, channels: int) -> str:
        pooled = self.node("Flatten", [self.node("GlobalAveragePool", [source])])
        return self.node("Gemm", [pooled, self.weights(channels, CLASSES), self.weights(CLASSES)])


def resnet() -> tuple[Family, str]:
    """A stem, a pool, a block, and one that halves the image beside a 1x1 conv."""
    net = Family("resnet", 3, 64)
    stem = net.rectified("image", 16, 3, 7, 7, strides=[2, 2], pads=[3] * 4)
    x = net.node("MaxPool", [stem], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net.conv(net.rectified(x, 16, 16, 3, 3), (16, 16, 3, 3))
    x = net.node("Relu", [net.node("Add", [x, y])])
    y = net.conv(net.rectified(x, 32, 16, 3, 3, strides=[2, 2]), (32, 32, 3, 3))
    beside = net.conv(x, (32, 16, 1, 1), strides=[2, 2])
    return net, net.classified(net.node("Relu", [net.node("Add", [y, beside])]), 32)


def mobilenet() -> tuple[Family, str]:
    """An inverted residual block: 1x1, depthwise 3x3, 1x1."""
    net = Family("mobilenet", 3, 32)
    x = net.relu6(net.conv("image", (16, 3, 3, 3), strides=[2, 2]))
    y = net.relu6(net.conv(x, (64, 16, 1, 1)))
    y = net.relu6(net.conv(y, (64, 1, 3, 3), group=64))
    x = net.node("Add", [x, net.conv(y, (16, 64, 1, 1))])
    return net, net.classified(net.relu6(net.conv(x, (64, 16, 1, 1))), 64)


def fsrcnn() -> tuple[Family, str]:
    """One chain of convs of 5x5, 1x1 and 3x3, and pixels out of channels."""
    net = Family("fsrcnn", 1, 32)
    x = net.rectified(net.rectified("image", 56, 1, 5, 5), 12, 56, 1, 1)
    for _ in range(2):
        x = net.rectified(x, 12, 12, 3, 3)
    x = net.conv(net.rectified(x, 56, 12, 1, 1), (4, 56, 3, 3))
    return net, net.node("DepthToSpace", [x], blocksize=2, mode="CRD")


def unet() -> tuple[Family, str]:
    """Down, up by a transposed conv, and beside what was there before."""
    net = Family("unet", 3, 32)
    before = net.rectified(net.rectified("image", 16, 3, 3, 3), 16, 16, 3, 3)
    down = net.node("MaxPool", [before], kernel_shape=[2, 2], strides=[2, 2])
    down = net.rectified(net.rectified(down, 32, 16, 3, 3), 32, 32, 3, 3)
    upward = [down, net.weights(32, 16, 2, 2), net.weights(16)]
    up = net.node("ConvTranspose", upward, kernel_shape=[2, 2], strides=[2, 2])
    x = net.rectified(net.node("Concat", [before, up], axis=1), 16, 32, 3, 3)
    return net, net.conv(x, (2, 16, 1, 1))


def edsr() -> tuple[Family, str]:
    """Residual blocks without an end of their own, and pixels out of channels."""
    net = Family("edsr", 3, 24)
    x = head = net.conv("image", (16, 3, 3, 3))
    for _ in range(2):
        x = net.node("Add", [x, net.conv(net.rectified(x, 16, 16, 3, 3), (16, 16, 3, 3))])
    x = net.node("Add", [net.conv(x, (16, 16, 3, 3)), head])
    return net, net.node("DepthToSpace", [net.conv(x, (12, 16, 3, 3))], blocksize=2, mode="CRD")


FAMILIES: tuple[Callable[[], tuple[Family, str]], ...] = (resnet, mobilenet, fsrcnn, unet, edsr)


class Images(CalibrationDataReader):
    """Two, of a normal distribution."""

    def __init__(self, shape: list[int]) -> None:
        random = np.random.default_rng(0)
        self.left = [{"image": random.standard_normal(shape).astype(np.float32)} for _ in range(2)]

    def get_next(self) -> dict[str, np.ndarray] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.left.pop() if self.left else None


def write(folder: Path) -> None:
    """Every family in every form."""
    folder.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        net, output = family()
        model = net.model(output)
        shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
        with TemporaryDirectory() as place:
            onnx.save(model, Path(place) / "float.onnx")
            for form, options in FORMS.items():
                path = folder / f"{net.name}-{form}.onnx"
                quantize_static(Path(place) / "float.onnx", path, Images(shape), **options, **TYPES)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
