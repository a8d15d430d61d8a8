"""A chain of uint8 as a QDQ model: what QNN's planner reads.

The graph reads and writes NHWC. Each conv stands between a `DequantizeLinear` and a `QuantizeLinear`; filters are int8
with one scale, biases int32. Only shapes matter to a planner of bytes, so that all scales are the same, and filters are
drawn so that none compresses well.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from hexconv.spec import Chain, Conv2d

OPSET, IR_VERSION = 17, 9
SCALES = {
    "scale": np.float32(1 / 16),
    "zero_point": np.uint8(128),
    "filter_scale": np.float32(1 / 128),
    "filter_zero_point": np.int8(0),
    "bias_scale": np.float32(1 / 2048),
    "bias_zero_point": np.int32(0),
}
TO_NCHW, TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]


def qdq_model(chain: Chain) -> onnx.ModelProto:
    """Return a chain as a model whose input `x` and output `y` are uint8 in NHWC."""
    inner = [f"map{number}" for number in range(len(chain.conv) + 1)]
    nodes = _transposed("x", inner[0], TO_NCHW)
    for number, (conv, (source, result)) in enumerate(zip(chain.conv, pairwise(inner), strict=True)):
        nodes += _conv(conv, f"conv{number}", source, result)
    nodes += _transposed(inner[-1], "y", TO_NHWC)
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in (*SCALES.items(), *_weights(chain))]
    shapes = chain.shapes[0], chain.shapes[-1]
    ends = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in zip("xy", shapes, strict=True)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _transposed(source: str, result: str, order: Sequence[int]) -> list[NodeProto]:
    """Return the nodes that transpose a quantised tensor."""
    inside = f"{source}_float", f"{source}_transposed"
    return [
        _dequantize(source, inside[0]),
        helper.make_node("Transpose", [inside[0]], [inside[1]], perm=order),
        _quantize(inside[1], result),
    ]


def _conv(conv: Conv2d, name: str, source: str, result: str) -> list[NodeProto]:
    """Return the nodes of one conv, of its operands and of its result."""
    image, filters, bias, made = (f"{name}_{part}" for part in ("image", "float_filter", "float_bias", "made"))
    nodes = [_dequantize(source, image), _dequantize(f"{name}_filter", filters, "filter_")]
    operands = [image, filters]
    if conv.bias:
        nodes.append(_dequantize(f"{name}_bias", bias, "bias_"))
        operands.append(bias)
    pad = conv.padding
    nodes.append(
        helper.make_node(
            "Conv",
            operands,
            [made],
            kernel_shape=conv.kernel,
            strides=conv.stride,
            dilations=conv.dilation,
            pads=[pad.top, pad.left, pad.bottom, pad.right],
            group=conv.groups,
        )
    )
    return [*nodes, _quantize(made, result)]


def _weights(chain: Chain) -> list[tuple[str, np.ndarray]]:
    """Return the filter of each conv, OIHW, and the bias where there is one."""
    drawn = np.random.default_rng(0)
    weights: list[tuple[str, np.ndarray]] = []
    for number, (conv, (*_, channels)) in enumerate(zip(chain.conv, chain.shapes, strict=False)):
        shape = conv.out_channels, channels // conv.groups, *conv.kernel
        weights.append((f"conv{number}_filter", drawn.integers(-127, 128, shape, dtype=np.int8)))
        if conv.bias:
            weights.append((f"conv{number}_bias", drawn.integers(-999, 1000, conv.out_channels, dtype=np.int32)))
    return weights


def _dequantize(source: str, result: str, kind: str = "") -> NodeProto:
    return helper.make_node("DequantizeLinear", [source, f"{kind}scale", f"{kind}zero_point"], [result])


def _quantize(source: str, result: str) -> NodeProto:
    return helper.make_node("QuantizeLinear", [source, "scale", "zero_point"], [result])
