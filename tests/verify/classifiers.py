"""Classifiers of 224x224 images at full size, in floats, with random weights and folded batch norms.

ResNet-18 and ResNet-50 (He et al. 2015), MobileNetV2 (Sandler et al. 2018) and V3, large (Howard et al. 2019),
GoogLeNet (Szegedy et al. 2014), SqueezeNet 1.1 (Iandola et al. 2016), EfficientNet-B0 (Tan, Le 2019), DenseNet-121
(Huang et al. 2016), and VGG-16 (Simonyan, Zisserman 2014), whose two wide layers behind the convs are left out: a mean
of each channel stands there. A norm that no conv stands before, as in DenseNet, is a depthwise conv of 1x1.
"""

from typing import Any

import numpy as np

from tests.verify.families import Family

CLASSES = 1000
EXPANSIONS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Of MobileNetV2: how much wider a block is inside, its channels, how many there are, the stride of the first."""

INCEPTIONS = (
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
)
"""Of GoogLeNet: the channels of 1x1; those before and of 3x3; those before and of 5x5; those behind the pool."""
BOTTLENECKS = (
    (3, 16, 16, 0, 0, 1),
    (3, 64, 24, 0, 0, 2),
    (3, 72, 24, 0, 0, 1),
    (5, 72, 40, 1, 0, 2),
    (5, 120, 40, 1, 0, 1),
    (5, 120, 40, 1, 0, 1),
    (3, 240, 80, 0, 1, 2),
    (3, 200, 80, 0, 1, 1),
    (3, 184, 80, 0, 1, 1),
    (3, 184, 80, 0, 1, 1),
    (3, 480, 112, 1, 1, 1),
    (3, 672, 112, 1, 1, 1),
    (5, 672, 160, 1, 1, 2),
    (5, 960, 160, 1, 1, 1),
    (5, 960, 160, 1, 1, 1),
)
"""Of MobileNetV3: kernel, channels inside and behind, whether it has a gate, whether hard swish, stride."""
STAGES = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)
"""Of EfficientNet-B0: how much wider a block is inside, its kernel, its channels, how many there are, the stride."""


class Full(Family):
    """A builder of float networks whose weights are all drawn."""

    def weights(self, *shape: int) -> str:
        """Scaled so that values keep their order behind a Relu."""
        fan_in = np.prod(shape[1:]) if len(shape) > 1 else 100
        return self.constant(self.random.normal(0, np.sqrt(2 / fan_in), shape), "float32")

    def classes(self, source: str, channels: int) -> str:
        flat = self.node("Flatten", [self.node("GlobalAveragePool", [source])])
        return self.node("Gemm", [flat, self.weights(CLASSES, channels), self.weights(CLASSES)], transB=1)

    def gated(self, source: str, channels: int, narrow: int, gate: str) -> str:
        """Squeeze and excite: each channel times a gate that is made of the means of all."""
        mean = self.node("GlobalAveragePool", [source])
        squeezed = self.conv(self.rectified(mean, narrow, channels, 1, 1), (channels, narrow, 1, 1))
        told: dict[str, Any] = {"alpha": 1 / 6, "beta": 0.5} if gate == "HardSigmoid" else {}
        return self.node("Mul", [source, self.node(gate, [squeezed], **told)])


def resnet18() -> tuple[Full, str]:
    net = Full("resnet18", 3, 224)
    stem = net.rectified("image", 64, 3, 7, 7, strides=[2, 2], pads=[3] * 4)
    x = net.node("MaxPool", [stem], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for wide in (64, 64, 128, 128, 256, 256, 512, 512):
        told: dict[str, Any] = {"strides": [wide // channels] * 2, "pads": [1] * 4}
        y = net.conv(net.rectified(x, wide, channels, 3, 3, **told), (wide, wide, 3, 3))
        beside = net.conv(x, (wide, channels, 1, 1), strides=[2, 2], pads=[0] * 4) if wide != channels else x
        x, channels = net.node("Relu", [net.node("Add", [y, beside])]), wide
    return net, net.classes(x, channels)


def mobilenet_v2() -> tuple[Full, str]:
    net = Full("mobilenet_v2", 3, 224)
    x, channels = net.relu6(net.conv("image", (32, 3, 3, 3), strides=[2, 2], pads=[1] * 4)), 32
    for wider, wide, count, first in EXPANSIONS:
        for stride in (first, *[1] * (count - 1)):
            inside = wider * channels
            y = net.relu6(net.conv(x, (inside, channels, 1, 1))) if wider > 1 else x
            told: dict[str, Any] = {"strides": [stride] * 2, "pads": [1] * 4, "group": inside}
            y = net.conv(net.relu6(net.conv(y, (inside, 1, 3, 3), **told)), (wide, inside, 1, 1))
            x = net.node("Add", [x, y]) if stride == 1 and wide == channels else y
            channels = wide
    return net, net.classes(net.relu6(net.conv(x, (1280, channels, 1, 1))), 1280)


def resnet50() -> tuple[Full, str]:
    net = Full("resnet50", 3, 224)
    stem = net.rectified("image", 64, 3, 7, 7, strides=[2, 2], pads=[3] * 4)
    x, channels = net.node("MaxPool", [stem], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for narrow, count, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for stride in (first, *[1] * (count - 1)):
            told: dict[str, Any] = {"strides": [stride] * 2}
            wide = 4 * narrow
            y = net.rectified(net.rectified(x, narrow, channels, 1, 1), narrow, narrow, 3, 3, **told, pads=[1] * 4)
            y = net.conv(y, (wide, narrow, 1, 1))
            beside = net.conv(x, (wide, channels, 1, 1), **told, pads=[0] * 4) if wide != channels else x
            x, channels = net.node("Relu", [net.node("Add", [y, beside])]), wide
    return net, net.classes(x, channels)


def googlenet() -> tuple[Full, str]:
    """Without the two classifiers beside; pools of an even size have their last row and column padded."""
    net = Full("googlenet", 3, 224)
    halved: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]}
    x = net.node("MaxPool", [net.rectified("image", 64, 3, 7, 7, strides=[2, 2], pads=[3] * 4)], **halved)
    x = net.node("MaxPool", [net.rectified(net.rectified(x, 64, 64, 1, 1), 192, 64, 3, 3)], **halved)
    channels = 192
    for number, widths in enumerate(INCEPTIONS):
        alone, to_three, three, to_five, five, pooled = widths
        ways = [
            net.rectified(x, alone, channels, 1, 1),
            net.rectified(net.rectified(x, to_three, channels, 1, 1), three, to_three, 3, 3),
            net.rectified(net.rectified(x, to_five, channels, 1, 1), five, to_five, 5, 5),
            net.rectified(net.node("MaxPool", [x], kernel_shape=[3, 3], pads=[1] * 4), pooled, channels, 1, 1),
        ]
        x, channels = net.node("Concat", ways, axis=1), alone + three + five + pooled
        x = net.node("MaxPool", [x], **halved) if number in (1, 6) else x
    return net, net.classes(x, channels)


def squeezenet() -> tuple[Full, str]:
    net = Full("squeezenet", 3, 224)
    x, channels = net.rectified("image", 64, 3, 3, 3, strides=[2, 2], pads=[0] * 4), 64
    for number, narrow in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if number in (0, 2, 4):
            x = net.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2])
        wide, squeezed = 4 * narrow, net.rectified(x, narrow, channels, 1, 1)
        ways = [net.rectified(squeezed, wide, narrow, size, size) for size in (1, 3)]
        x, channels = net.node("Concat", ways, axis=1), 2 * wide
    x = net.rectified(x, CLASSES, channels, 1, 1)
    return net, net.node("Flatten", [net.node("GlobalAveragePool", [x])])


def mobilenet_v3() -> tuple[Full, str]:
    net = Full("mobilenet_v3", 3, 224)

    def hard_swish(source: str) -> str:
        return net.node("Mul", [source, net.node("HardSigmoid", [source], alpha=1 / 6, beta=0.5)])

    x, channels = hard_swish(net.conv("image", (16, 3, 3, 3), strides=[2, 2], pads=[1] * 4)), 16
    for size, inside, wide, is_gated, is_swish, stride in BOTTLENECKS:
        act = hard_swish if is_swish else lambda source: net.node("Relu", [source])
        y = act(net.conv(x, (inside, channels, 1, 1))) if inside != channels else x
        y = act(net.conv(y, (inside, 1, size, size), strides=[stride] * 2, pads=[size // 2] * 4, group=inside))
        y = net.gated(y, inside, -(-inside // 32) * 8, "HardSigmoid") if is_gated else y
        y = net.conv(y, (wide, inside, 1, 1))
        x = net.node("Add", [x, y]) if stride == 1 and wide == channels else y
        channels = wide
    pooled = net.node("GlobalAveragePool", [hard_swish(net.conv(x, (960, channels, 1, 1)))])
    x = hard_swish(net.conv(pooled, (1280, 960, 1, 1)))
    return net, net.node("Flatten", [net.conv(x, (CLASSES, 1280, 1, 1))])


def efficientnet_b0() -> tuple[Full, str]:
    net = Full("efficientnet_b0", 3, 224)

    def swish(source: str) -> str:
        return net.node("Mul", [source, net.node("Sigmoid", [source])])

    x, channels = swish(net.conv("image", (32, 3, 3, 3), strides=[2, 2], pads=[1] * 4)), 32
    for wider, size, wide, count, first in STAGES:
        for stride in (first, *[1] * (count - 1)):
            inside, pad = wider * channels, size // 2
            y = swish(net.conv(x, (inside, channels, 1, 1))) if wider > 1 else x
            y = swish(net.conv(y, (inside, 1, size, size), strides=[stride] * 2, pads=[pad] * 4, group=inside))
            y = net.conv(net.gated(y, inside, channels // 4, "Sigmoid"), (wide, inside, 1, 1))
            x = net.node("Add", [x, y]) if stride == 1 and wide == channels else y
            channels = wide
    return net, net.classes(swish(net.conv(x, (1280, channels, 1, 1))), 1280)


def densenet121() -> tuple[Full, str]:
    net, growth = Full("densenet121", 3, 224), 32

    def norm(source: str, channels: int) -> str:
        return net.rectified(source, channels, 1, 1, 1, group=channels)

    stem = net.rectified("image", 64, 3, 7, 7, strides=[2, 2], pads=[3] * 4)
    x, channels = net.node("MaxPool", [stem], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for number, count in enumerate((6, 12, 24, 16)):
        if number:
            x, channels = net.conv(norm(x, channels), (channels // 2, channels, 1, 1)), channels // 2
            x = net.node("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2])
        for _ in range(count):
            y = net.rectified(norm(x, channels), 4 * growth, channels, 1, 1)
            x, channels = net.node("Concat", [x, net.conv(y, (growth, 4 * growth, 3, 3))], axis=1), channels + growth
    return net, net.classes(norm(x, channels), channels)


def vgg16() -> tuple[Full, str]:
    net = Full("vgg16", 3, 224)
    x, channels = "image", 3
    for wide, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            x, channels = net.rectified(x, wide, channels, 3, 3, pads=[1] * 4), wide
        x = net.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    return net, net.classes(x, channels)


FURTHER = (resnet50, googlenet, squeezenet, mobilenet_v3, efficientnet_b0, densenet121, vgg16)
