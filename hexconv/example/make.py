"""The example network, written as ONNX: `python -m hexconv.example.make` writes the file that the package ships.

It is a small residual network, quantised as onnxruntime quantises one: uint8 activations, int8 filters, each Conv
between DequantizeLinear and QuantizeLinear. Its filters are drawn, not trained, so that no one else's data is in it.

    image 1x3x128x128 -> 3x3/2 of 32 -> 3x3 of 64 -> (3x3 of 64 -> 3x3 of 64) + shortcut -> 1x1 of 128 -> 1x1 of 32
"""

from dataclasses import dataclass, field
from math import prod, sqrt
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper, save_model

from hexconv.example import NETWORK

IMAGE = (1, 3, 128, 128)
IMAGE_SCALE, FILTER_SCALE = 1 / 255, 1 / 128
OPSET, IR_VERSION = 13, 8
LARGEST_FILTER = 32
"""Filters are drawn from -32 to 32."""


@dataclass(frozen=True)
class Network:
    """Nodes and constants as they are added; every activation is uint8 with zero point 0, which makes it a relu.

    Attributes:
        random: the random generator that filters are drawn from.
        nodes: the nodes so far, in order.
        constants: the filters, biases, scales and zero points so far.
        scales: the scale of each activation, by its name.
    """

    random: np.random.Generator
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    scales: dict[str, float] = field(default_factory=dict)

    def conv(self, name: str, source: str, shape: tuple[int, int, int, int], stride: int = 1) -> str:
        """Add a conv that keeps the image's size if its stride is 1, and else divides it by the stride.

        Args:
            name: the name of the activation that it makes.
            source: the name of the activation that it reads.
            shape: the shape of its filter, OIHW.
            stride: the stride in both directions.
        """
        scale_of_sums = self.scales[source] * FILTER_SCALE
        filter_int8 = self.random.integers(-LARGEST_FILTER, LARGEST_FILTER, shape, np.int8, endpoint=True)
        bias_int32 = self.random.integers(-2000, 2000, shape[0], np.int32, endpoint=True)
        filter_float = self._dequantized(f"{name}.filter", filter_int8, FILTER_SCALE)
        bias_float = self._dequantized(f"{name}.bias", bias_int32, scale_of_sums)
        sums, pad = f"{name}.sums", shape[2] // 2
        places = {"kernel_shape": shape[2:], "strides": [stride, stride], "pads": [pad] * 4}
        inputs = [self.dequantized(source), filter_float, bias_float]
        self.nodes.append(helper.make_node("Conv", inputs, [sums], name, **places))
        return self.quantized(name, sums, scale_of_sums * _range_of_sums(prod(shape[1:])) / 255)

    def add(self, name: str, first: str, second: str) -> str:
        """Add a node that adds two activations."""
        inputs = [self.dequantized(first), self.dequantized(second)]
        self.nodes.append(helper.make_node("Add", inputs, [f"{name}.sums"], name))
        return self.quantized(name, f"{name}.sums", self.scales[first] + self.scales[second])

    def quantized(self, name: str, source: str, scale: float) -> str:
        """Add nodes that quantise a float tensor to uint8."""
        inputs = [source, *self._parameters(name, scale, np.uint8)]
        self.nodes.append(helper.make_node("QuantizeLinear", inputs, [name], f"{name}.quantize"))
        self.scales[name] = scale
        return name

    def dequantized(self, source: str, name: str = "") -> str:
        """Add a node that reads an activation as floats; without a `name`, each reader gets a new one."""
        name = name or f"{source}.float{len(self.nodes)}"
        inputs = [source, f"{source}.scale", f"{source}.zero"]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name], name))
        return name

    def _dequantized(self, name: str, values: np.ndarray, scale: float) -> str:
        """Add a constant, and a node that reads it as floats."""
        inputs = [self._constant(name, values), *self._parameters(name, scale, values.dtype)]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}.float"], name))
        return f"{name}.float"

    def _parameters(self, name: str, scale: float, dtype: np.typing.DTypeLike) -> tuple[str, str]:
        """Add the constants for a scale and for a zero point of 0."""
        return self._constant(f"{name}.scale", np.float32(scale)), self._constant(f"{name}.zero", np.zeros((), dtype))

    def _constant(self, name: str, value: np.ndarray | np.float32) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name


def _range_of_sums(products: int) -> float:
    """Three standard deviations of a sum of products of a uint8 and of a filter element, both uniform."""
    return 3 * sqrt(products) * (255 / sqrt(3)) * (LARGEST_FILTER / sqrt(3))


def example_network() -> ModelProto:
    """Build the network; its bytes are the same every time."""
    net = Network(np.random.default_rng(0))
    net.quantized("pixels", "image", IMAGE_SCALE)
    stem = net.conv("stem2", net.conv("stem1", "pixels", (32, 3, 3, 3), stride=2), (64, 32, 3, 3))
    block = net.conv("block2", net.conv("block1", stem, (64, 64, 3, 3)), (64, 64, 3, 3))
    joined = net.add("joined", block, stem)
    result = net.conv("head2", net.conv("head1", joined, (128, 64, 1, 1)), (32, 128, 1, 1))
    net.dequantized(result, "result")
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, IMAGE)
    output = helper.make_tensor_value_info("result", TensorProto.FLOAT, (1, 32, 64, 64))
    graph = helper.make_graph(net.nodes, "residual", [image], [output], net.constants)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="hexconv")


def write(path: Path) -> None:
    """Write the network to a file, after ONNX has checked it."""
    model = example_network()
    checker.check_model(model, full_check=True)
    save_model(model, path)


if __name__ == "__main__":
    write(NETWORK)
