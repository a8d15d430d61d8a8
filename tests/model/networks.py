"""Networks with the shapes of their papers, as ONNX models without their classifiers' weights."""

import onnx

from tests.model.builder import Builder

VGG_16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
RESNET_18, RESNET_50 = (2, 2, 2, 2), (3, 4, 6, 3)
RESNET_WIDTHS = (64, 128, 256, 512)
MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, repeats and first stride of each stage: table 2 of arXiv:1801.04381."""


def vgg_16(size: int = 224) -> onnx.ModelProto:
    """Five groups of 3x3 convs with biases and relus, a pool behind each (arXiv:1409.1556, column D)."""
    net = Builder("vgg16", (1, 3, size, size))
    x, channels = "image", 3
    for stage, widths in enumerate(VGG_16, 1):
        for index, width in enumerate(widths, 1):
            x = net.node("Relu", [net.conv(x, (width, channels, 3, 3), f"conv{stage}_{index}")])
            channels = width
        x = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    return net.model(net.node("Flatten", [x]))


def resnet_18(size: int = 224) -> onnx.ModelProto:
    """Blocks of two 3x3 convs (arXiv:1512.03385, table 1)."""
    return _resnet("resnet18", RESNET_18, size, 1)


def resnet_50(size: int = 224) -> onnx.ModelProto:
    """Blocks of 1x1, 3x3, 1x1 with four times the channels out."""
    return _resnet("resnet50", RESNET_50, size, 4)


def _resnet(name: str, repeats: tuple[int, ...], size: int, expansion: int) -> onnx.ModelProto:
    net = Builder(name, (1, 3, size, size))
    stem = net.batch_norm(net.conv("image", (64, 3, 7, 7), "conv1", bias=False, strides=[2, 2]), 64)
    x = net.node("MaxPool", [net.node("Relu", [stem])], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (count, width) in enumerate(zip(repeats, RESNET_WIDTHS, strict=True), 1):
        for index in range(count):
            stride = 2 if stage > 1 and index == 0 else 1
            x = _residual(net, x, channels, width, stride, expansion, f"layer{stage}.{index}")
            channels = width * expansion
    return net.model(net.node("GlobalAveragePool", [x]))


def _residual(net: Builder, x: str, channels: int, width: int, stride: int, expansion: int, name: str) -> str:
    """Convs with batch norms beside a shortcut, added, relu."""
    out = width * expansion
    shapes = [(width, channels, 3), (out, width, 3)] if expansion == 1 else _bottleneck(channels, width, out)
    y = x
    for index, (o, i, kernel) in enumerate(shapes, 1):
        # The stride is the first 3x3's.
        step = [stride, stride] if kernel == 3 and index == (1 if expansion == 1 else 2) else [1, 1]
        y = net.batch_norm(net.conv(y, (o, i, kernel, kernel), f"{name}.conv{index}", bias=False, strides=step), o)
        y = net.node("Relu", [y]) if index < len(shapes) else y
    if channels != out or stride > 1:
        shortcut = net.conv(x, (out, channels, 1, 1), f"{name}.downsample", bias=False, strides=[stride, stride])
        x = net.batch_norm(shortcut, out)
    return net.node("Relu", [net.node("Add", [y, x])])


def _bottleneck(channels: int, width: int, out: int) -> list[tuple[int, int, int]]:
    return [(width, channels, 1), (width, width, 3), (out, width, 1)]


def mobilenet_v2(size: int = 224) -> onnx.ModelProto:
    """Inverted residuals: 1x1 up, 3x3 depthwise, 1x1 down, relu6 behind the first two."""
    net = Builder("mobilenet_v2", (1, 3, size, size))
    x, channels = _norm6(net, net.conv("image", (32, 3, 3, 3), "stem", bias=False, strides=[2, 2]), 32), 32
    for stage, (expansion, out, repeats, first_stride) in enumerate(MOBILENET_V2, 1):
        for index in range(repeats):
            stride = first_stride if index == 0 else 1
            x = _inverted(net, x, channels, out, expansion, stride, f"block{stage}.{index}")
            channels = out
    x = _norm6(net, net.conv(x, (1280, channels, 1, 1), "last", bias=False), 1280)
    return net.model(net.node("GlobalAveragePool", [x]))


def _inverted(net: Builder, x: str, channels: int, out: int, expansion: int, stride: int, name: str) -> str:
    width, y = channels * expansion, x
    if expansion > 1:
        y = _norm6(net, net.conv(y, (width, channels, 1, 1), f"{name}.up", bias=False), width)
    depthwise = net.conv(y, (width, 1, 3, 3), f"{name}.depthwise", bias=False, strides=[stride, stride], group=width)
    y = net.batch_norm(net.conv(_norm6(net, depthwise, width), (out, width, 1, 1), f"{name}.down", bias=False), out)
    return net.node("Add", [x, y]) if stride == 1 and channels == out else y


def _norm6(net: Builder, x: str, channels: int) -> str:
    return net.relu6(net.batch_norm(x, channels))


def espcn(size: int = 64, upscale: int = 3) -> onnx.ModelProto:
    """Sub-pixel super-resolution: 5x5, 3x3, 3x3, then a rearrangement (arXiv:1609.05158)."""
    net = Builder("espcn", (1, 1, size, size))
    x = net.node("Relu", [net.conv("image", (64, 1, 5, 5), "conv1")])
    x = net.node("Relu", [net.conv(x, (32, 64, 3, 3), "conv2")])
    x = net.conv(x, (upscale**2, 32, 3, 3), "conv3")
    return net.model(net.node("DepthToSpace", [x], blocksize=upscale))
