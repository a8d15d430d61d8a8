"""What a quantised model means, in float64: ONNX's reference evaluator on the model with its floats made doubles.

Quantised operators (QLinearConv, those of ONNX Runtime's own domain) are what they are defined as, DequantizeLinear,
the float operator and QuantizeLinear, so that each rounding has a real number before it. QuantizeLinear and
DequantizeLinear are defined here: the evaluator computes them in float32, and not by slices or blocks in all opsets.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tests.quantisers.tensors import RANGES

Array = np.ndarray
Nodes = list[onnx.NodeProto]
REAL = "/real"
"""Behind the name of a quantised operator's result: the real numbers that it rounds."""
BINARY = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
UNARY = {
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearSigmoid": "Sigmoid",
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
}
PRODUCTS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul", "QGemm": "Gemm"}
OWN_ATTRIBUTES = ("channels_last", "opset")


def spread(values: Array, shape: Sequence[int], axis: int, block: int) -> Array:
    """Give every element of a tensor its scale or zero point: one for all, one per slice along an axis, or per block.

    >>> spread(np.array([1, 2]), (2, 3), 0, 0).tolist(), spread(np.array([[1, 2]]), (1, 4), 1, 2).tolist()
    ([[1], [2]], [[1, 1, 2, 2]])
    """
    if block and values.ndim == len(shape):
        return np.repeat(values, block, axis).take(range(shape[axis]), axis)
    if values.size == 1:
        return values.reshape([1] * len(shape))
    along = [1] * len(shape)
    along[axis] = values.size
    return values.reshape(along)


class DequantizeLinear(OpRun):
    """`(x - zero_point) * scale`."""

    def _run(
        self, x: Array, scale: Array, zero: Array | None = None, axis: int = 1, block_size: int = 0, **_: Any
    ) -> tuple[Array]:
        moved = x.astype(np.float64)
        if zero is not None:
            moved = moved - spread(np.asarray(zero).astype(np.float64), x.shape, axis, block_size)
        return (moved * spread(np.asarray(scale).astype(np.float64), x.shape, axis, block_size),)


class QuantizeLinear(OpRun):
    """`saturate(round(x / scale) + zero_point)`, half to even.

    Elements that are floats, as those of constants and inputs are, and what Pads add, are divided as floats: their
    quotient may be a half.
    """

    def _run(
        self, x: Array, scale: Array, zero: Array | None = None, axis: int = 1, block_size: int = 0, **_: Any
    ) -> tuple[Array]:
        dtype = np.dtype("uint8") if zero is None else np.asarray(zero).dtype
        by = spread(np.asarray(scale).astype(np.float64), x.shape, axis, block_size)
        floats = x.astype(np.float32)
        steps = np.where(floats == x, floats / by.astype(np.float32), x / by)
        moved = np.rint(steps)
        if zero is not None:
            moved = moved + spread(np.asarray(zero).astype(np.float64), x.shape, axis, block_size)
        return (np.clip(moved, *RANGES[str(dtype)]).astype(dtype),)


class BatchNormalization(OpRun):
    """At inference; before opset 14 ONNX's evaluator trains."""

    def _run(self, x: Array, *vectors: Array, epsilon: float = 1e-5, **_: Any) -> tuple[Array]:
        scale, bias, mean, variance = (vector.reshape(-1, *[1] * (x.ndim - 2)) for vector in vectors)
        return ((x - mean) / np.sqrt(variance + epsilon) * scale + bias,)


class HardSwish(OpRun):
    """`x * max(0, min(1, x / 6 + 1 / 2))`; ONNX's function has float32 constants inside."""

    def _run(self, x: Array, **_: Any) -> tuple[Array]:
        return (x * np.clip(x / 6 + 0.5, 0, 1),)


OWN: list[type[OpRun]] = [DequantizeLinear, QuantizeLinear, BatchNormalization, HardSwish]


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with doubles for its floats and standard operators for its quantised ones."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    for tensor in graph.initializer:
        _widen(tensor)
    for info in (*graph.input, *graph.output):
        if info.type.tensor_type.elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16):
            info.type.tensor_type.elem_type = TensorProto.DOUBLE
    del graph.value_info[:]
    nodes = [part for node in graph.node for part in standard(node)]
    del graph.node[:]
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i in (TensorProto.FLOAT, TensorProto.FLOAT16):
                attribute.i = TensorProto.DOUBLE
            if attribute.HasField("t"):
                _widen(attribute.t)
    graph.node.extend(nodes)
    return made


def _widen(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def standard(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A quantised operator as what it is defined as; any other node as it is."""
    result, inputs = node.output[0] if node.output else "", list(node.input)
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name not in OWN_ATTRIBUTES}
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        yield helper.make_node(node.op_type, inputs, list(node.output), node.name, **attributes)
        return
    if node.op_type == "QLinearConcat":
        op, tensors, ends = "Concat", range(2, len(inputs), 3), inputs[:2]
    elif node.op_type in BINARY:
        op, tensors, ends = BINARY[node.op_type], (0, 3), inputs[6:8]
    elif node.op_type in UNARY:
        op, tensors, ends = UNARY[node.op_type], (0,), inputs[3:5]
    elif node.op_type in PRODUCTS:
        op, tensors, ends = PRODUCTS[node.op_type], (0, 3), inputs[6:8]
        ends = inputs[7:9] if op == "Gemm" else ends
    else:
        yield node
        return
    reals = []
    for place in tensors:
        reals.append(f"{result}/{place}")
        is_filter = op in PRODUCTS.values() and place == 3
        axis: dict[str, Any] = {"axis": (0 if op == "Conv" or attributes.get("transB") else -1)} if is_filter else {}
        yield helper.make_node("DequantizeLinear", inputs[place : place + 3], [reals[-1]], **axis)
    bias = {"Conv": 8, "Gemm": 6}.get(op)
    if bias is not None and len(inputs) > bias and inputs[bias]:
        yield helper.make_node("Mul", [inputs[1], inputs[4]], [f"{result}/unit"])
        reals.append(f"{result}/bias")
        yield helper.make_node("DequantizeLinear", [inputs[bias], f"{result}/unit"], [reals[-1]], axis=0)
    yield helper.make_node(op, reals, [f"{result}{REAL}"], node.name, **attributes)
    yield helper.make_node("QuantizeLinear", [f"{result}{REAL}", *ends], [result], f"{node.name}{REAL}")


def meaning(model: onnx.ModelProto, feed: Mapping[str, Array], names: Iterable[str]) -> dict[str, Array]:
    """Tensors of `in_double(model)`, by name."""
    real = {name: value.astype(np.float64) if value.dtype.kind == "f" else value for name, value in feed.items()}
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | real
    names = set(names)
    made = sorted(names - given.keys())
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    del asked.graph.output[:]
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    with np.errstate(all="ignore"):
        results: Any = ReferenceEvaluator(asked, new_ops=OWN).run(None, real) if made else []
    return {**{name: given[name] for name in names & given.keys()}, **dict(zip(made, results, strict=True))}
