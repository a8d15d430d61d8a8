"""Models of one operator each between quantised tensors, and one that has all of them behind a conv."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hexconv.model import import_model
from hexconv.network.planned_model import plan, question_of
from hexconv.network.program_steps import Operation
from tests.verify.networks import Network

Codes = tuple[str, np.float32, int]
"""A quantised tensor: its name, scale and zero point."""
SHAPE = (1, 3, 20, 20)
"""Of what `Network` reads."""


class OneOperator(Network):
    """A builder of operators between quantised tensors; with `reals` between floats."""

    def __init__(self, seed: int = 0, reals: bool = False) -> None:
        super().__init__(seed=seed)
        self.reals = reals

    def image(self, zero: int = 128) -> tuple[str, Codes]:
        """The image as the operator reads it, and its codes."""
        scale = np.float32(self.random.uniform(0.01, 0.03))
        codes = self.quantised("image", scale, zero)
        return ("image" if self.reals else self.real(codes, scale, zero)), (codes, scale, zero)

    def ended(self, result: str, clamp: bool = False) -> str:
        """The result behind a Relu, quantised and back; as it is where all is real."""
        result = self.node("Relu", [result]) if clamp else result
        scale, zero = np.float32(self.random.uniform(0.01, 0.05)), int(self.random.integers(0, 256))
        return result if self.reals else self.real(self.quantised(result, scale, zero), scale, zero)


def add(net: OneOperator) -> str:
    one, codes = net.image()
    other = net.real(codes[0], np.float32(codes[1] * 2), 90) if not net.reals else net.node("Relu", [one])
    return net.ended(net.node("Add", [one, other]), clamp=True)


def add_constant(net: OneOperator) -> str:
    return net.ended(net.node("Add", [net.image()[0], net.weights(3, 1, 1)]))


def multiply(net: OneOperator) -> str:
    image, _ = net.image()
    pooled = net.ended(net.node("GlobalAveragePool", [image]))
    return net.ended(net.node("Mul", [image, pooled]))


def halves(net: OneOperator) -> str:
    """To steps twice as large: each odd code lies half way between two."""
    codes = net.quantised("image", np.float32(2**-6), 128)
    again = net.quantised(net.real(codes, np.float32(2**-6), 128), np.float32(2**-5), 100)
    return net.real(again, np.float32(2**-5), 100)


def clip(net: OneOperator) -> str:
    return net.ended(net.relu6(net.image()[0]))


def clip_to_its_maximum(net: OneOperator) -> str:
    """Bounds that don't meet: ONNX gives the upper one."""
    bounds = [net.constant(bound, "float32") for bound in (0.75, 0.5)]
    return net.ended(net.node("Clip", [net.image()[0], *bounds]))


def max_pool(net: OneOperator) -> str:
    return net.ended(net.node("MaxPool", [net.image()[0]], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]))


def max_pool_rounded_up(net: OneOperator) -> str:
    told: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "dilations": [2, 1]}
    return net.ended(net.node("MaxPool", [net.image()[0]], **told))


def average_pool(net: OneOperator) -> str:
    told: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return net.ended(net.node("AveragePool", [net.image()[0]], **told))


def average_pool_of_padding(net: OneOperator) -> str:
    """The last windows reach one row beyond the padding, which is not counted."""
    told: dict[str, Any] = {
        "kernel_shape": [4, 3],
        "strides": [3, 1],
        "pads": [1, 1, 0, 2],
        "count_include_pad": 1,
        "ceil_mode": 1,
    }
    return net.ended(net.node("AveragePool", [net.image()[0]], **told))


CUT: dict[str, Any] = {
    "kernel_shape": [3, 4],
    "strides": [2, 3],
    "pads": [1, 0, 1, 1],
    "ceil_mode": 1,
    "count_include_pad": 1,
}
"""A pool whose last windows end beyond the padding."""


def average_pool_cut(net: OneOperator) -> str:
    """ONNX divides by what lies in the image and the padding."""
    return net.ended(net.node("AveragePool", [net.image()[0]], **CUT))


def quantised_average_pool_cut(net: OneOperator) -> str:
    """ONNX Runtime's own divides by the whole window."""
    codes, scale, zero = net.image()[1]
    step = np.float32(0.0097)
    ends = [*net.ends(scale, zero), *net.ends(step, 80)]
    return net.real(net.node("QLinearAveragePool", [codes, *ends], domain="com.microsoft", **CUT), step, 80)


def global_average_pool(net: OneOperator) -> str:
    return net.ended(net.node("GlobalAveragePool", [net.image()[0]]))


def average_of_sum(net: OneOperator) -> str:
    one, codes = net.image()
    other = net.real(codes[0], np.float32(codes[1] * 2), 90) if not net.reals else net.node("Relu", [one])
    return net.ended(net.node("GlobalAveragePool", [net.node("Add", [one, other])]))


def concat(net: OneOperator) -> str:
    image, _ = net.image()
    return net.ended(net.node("Concat", [image, net.ended(net.node("Relu", [image]))], axis=1))


def concat_rows(net: OneOperator) -> str:
    image, _ = net.image()
    return net.ended(net.node("Concat", [image, image], axis=-2))


def resize_nearest(net: OneOperator) -> str:
    return net.ended(net.node("Resize", [net.image()[0], "", net.constant([1, 1, 2, 2], "float32")]))


def resize_linear(net: OneOperator) -> str:
    sizes = net.constant([1, 3, 33, 50], "int64")
    return net.ended(net.node("Resize", [net.image()[0], "", "", sizes], mode="linear"))


def resize_to_corners(net: OneOperator) -> str:
    told: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    return net.ended(net.node("Resize", [net.image()[0], "", "", net.constant([1, 3, 11, 39], "int64")], **told))


def depth_to_space(net: OneOperator, mode: str = "DCR") -> str:
    image, _ = net.image()
    deep = net.node("Concat", [image] * 4, axis=1)
    return net.ended(net.node("DepthToSpace", [net.ended(deep)], blocksize=2, mode=mode))


def depth_to_space_by_channels(net: OneOperator) -> str:
    return depth_to_space(net, "CRD")


def flattened(net: OneOperator) -> str:
    """Rows and columns of an image as one row, in the model's order."""
    return net.ended(net.node("Flatten", [net.image()[0]]))


def in_one_dimension(net: OneOperator) -> str:
    """Pools and a Concat along the one axis of an image of three axes."""
    wave = net.ended(net.node("Reshape", [net.image()[0], net.constant([1, 3, 400], "int64")]))
    most, mean = (net.node(op, [wave], kernel_shape=[3], strides=[2], pads=[1, 0]) for op in ("MaxPool", "AveragePool"))
    return net.ended(net.node("Concat", [net.ended(most), net.ended(mean)], axis=2))


def matmul(net: OneOperator) -> str:
    flat = net.node("Flatten", [net.node("MaxPool", [net.image()[0]], kernel_shape=[5, 5], strides=[5, 5])])
    return net.ended(net.node("MatMul", [net.ended(flat), net.weights8(48, 10, axis=1)]))


def gemm(net: OneOperator) -> str:
    flat = net.node("Flatten", [net.node("MaxPool", [net.image()[0]], kernel_shape=[5, 5], strides=[5, 5])])
    told = [net.ended(flat), net.weights8(10, 48, axis=0), net.weights(10)]
    return net.ended(net.node("Gemm", told, transB=1))


def gemm_of_blocks(net: OneOperator, axis: int = 0) -> str:
    """A scale for each eight outputs and each input, or for each output and each six inputs."""
    net.opset = 21  # since which there are blocks
    flat = net.node("Flatten", [net.node("MaxPool", [net.image()[0]], kernel_shape=[5, 5], strides=[5, 5])])
    codes = net.constant(net.random.integers(-127, 127, (8, 48)), "int8")
    scales = net.constant(net.random.uniform(0.01, 0.05, ((1, 48), (8, 8))[axis]), "float32")
    weights = net.node("DequantizeLinear", [codes, scales], axis=axis, block_size=(8, 6)[axis])
    return net.ended(net.node("Gemm", [net.ended(flat), weights], transB=1))


def gemm_of_blocks_of_inputs(net: OneOperator) -> str:
    return gemm_of_blocks(net, 1)


def conv_transpose(net: OneOperator) -> str:
    told: dict[str, Any] = {"strides": [2, 3], "pads": [1, 0, 0, 2], "dilations": [1, 2], "output_padding": [1, 0]}
    weights = net.weights8(3, 5, 3, 2, axis=1)
    return net.ended(net.node("ConvTranspose", [net.image()[0], weights, net.weights(5)], **told))


def conv_transpose_of_groups(net: OneOperator) -> str:
    return net.ended(net.node("ConvTranspose", [net.image()[0], net.weights(3, 2, 2, 2)], strides=[2, 2], group=3))


def eights(net: OneOperator, dtype: str) -> str:
    """An image of 24 channels, eight of which a scalar instruction of Hexagon takes at once."""
    image, (_, scale, _) = net.image()
    deep = net.node("Concat", [image] * 8, axis=1)
    if net.reals:
        return deep
    ends = net.ends(scale, 100, dtype)
    return net.node("DequantizeLinear", [net.node("QuantizeLinear", [deep, *ends]), *ends])


def conv_transpose_of_eights(net: OneOperator, dtype: str = "uint8") -> str:
    """Its taps overlap."""
    weights, bias = net.weights8(24, 5, 3, 2, axis=1), net.weights(5)
    return net.ended(net.node("ConvTranspose", [eights(net, dtype), weights, bias], strides=[2, 1], pads=[1, 1, 0, 1]))


def conv_transpose_of_signed_eights(net: OneOperator) -> str:
    return conv_transpose_of_eights(net, "int8")


def max_pool_of_eights(net: OneOperator, dtype: str = "uint8") -> str:
    told: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return net.ended(net.node("MaxPool", [eights(net, dtype)], **told))


def max_pool_of_signed_eights(net: OneOperator) -> str:
    return max_pool_of_eights(net, "int8")


OPERATORS: dict[str, Callable[[OneOperator], str]] = {
    function.__name__: function
    for function in (
        add,
        add_constant,
        multiply,
        halves,
        clip,
        clip_to_its_maximum,
        max_pool,
        max_pool_rounded_up,
        average_pool,
        average_pool_of_padding,
        average_pool_cut,
        quantised_average_pool_cut,
        global_average_pool,
        average_of_sum,
        concat,
        concat_rows,
        resize_nearest,
        resize_linear,
        resize_to_corners,
        depth_to_space,
        depth_to_space_by_channels,
        flattened,
        in_one_dimension,
        matmul,
        gemm,
        gemm_of_blocks,
        gemm_of_blocks_of_inputs,
        conv_transpose,
        conv_transpose_of_groups,
        conv_transpose_of_eights,
        conv_transpose_of_signed_eights,
        max_pool_of_eights,
        max_pool_of_signed_eights,
    )
}
EXACT = (
    "add",
    "add_constant",
    "halves",
    "clip",
    "clip_to_its_maximum",
    "max_pool",
    "max_pool_rounded_up",
    "max_pool_of_eights",
    "max_pool_of_signed_eights",
    "concat",
    "concat_rows",
    "resize_nearest",
)
"""Those that round once, wherever they are computed; sums of the others are float32 in ONNX Runtime."""


def all_operators(reals: bool) -> tuple[OneOperator, list[str]]:
    """One model with a conv, and every operator on its image."""
    net = OneOperator(seed=3, reals=reals)
    codes = net.quantised("image", np.float32(0.02), 128)
    results = [net.real(*net.conv8((codes, np.float32(0.02), 128), (40, 3, 3, 3)))]
    return net, results + [build(net) for build in OPERATORS.values()]


def saved(net: Any, outputs: list[str], path: Any) -> Any:
    """The model in a file."""
    path.write_bytes(net.model(*outputs).SerializeToString())
    return path


def as_read(path: Path) -> list[Operation]:
    """The operators between a model's chains, one or more for each node, as they are read."""
    program = plan(import_model(path), question_of(1 << 20, target="llvm")).as_read
    assert program is not None
    return [step for step in program.steps if isinstance(step, Operation)]
