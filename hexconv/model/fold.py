"""Compute a node of constants with ONNX's evaluator, or in numpy where the evaluator fails or is wrong."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from hexconv.model.granularity import along, spread
from hexconv.model.refused import Refused

Array = NDArray[Any]
Attributes = Mapping[str, Any]
Values = Mapping[str, Array]
Opsets = Sequence[onnx.OperatorSetIdProto]


def fold(node: onnx.NodeProto, opsets: Opsets, values: Values) -> dict[str, Array]:
    """Compute all outputs of a node, by name.

    Args:
        node: a node of ONNX's own domain, without bodies.
        opsets: the opsets of its model.
        values: the values of its inputs, by name.

    Raises:
        Refused: the node is a BatchNormalization of an old opset in training mode.
        Exception: whatever numpy or ONNX's evaluator raise for values that don't fit.
    """
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    definition = _definition(node, opsets, attributes, values)
    if definition is None:
        return _evaluated(node, opsets, values)
    return {node.output[0]: definition(attributes, *(values[name] for name in node.input if name))}


def _definition(
    node: onnx.NodeProto, opsets: Opsets, attributes: Attributes, values: Values
) -> Callable[..., Array] | None:
    """The function that computes a node in place of ONNX's evaluator; None where that computes it."""
    if node.op_type in QUANTISERS:
        codes = values[node.input[0]].dtype if node.op_type == "DequantizeLinear" else _coded(node, attributes, values)
        return QUANTISERS[node.op_type] if codes.name.removeprefix("u").startswith("int") else None
    opset = next((imported.version for imported in opsets if imported.domain in ("", "ai.onnx")), 1)
    if node.op_type != "BatchNormalization" or opset >= SINCE_INFERENCE:
        return None
    if any(node.output[1:]):
        raise Refused(f"{node.op_type} of opset {opset} has outputs of training; export it for inference")
    return _normalized


def _coded(node: onnx.NodeProto, attributes: Attributes, values: Values) -> np.dtype[Any]:
    """The dtype of the codes that a QuantizeLinear makes."""
    zero_point = values.get(node.input[2]) if len(node.input) > 2 else None
    return _dtype(attributes, np.dtype(np.uint8)) if zero_point is None else zero_point.dtype


def _evaluated(node: onnx.NodeProto, opsets: Opsets, values: Values) -> dict[str, Array]:
    """Compute a node with ONNX's reference evaluator."""
    given, made = [onnx.ValueInfoProto(name=name) for name in values], [name for name in node.output if name]
    outputs = [onnx.ValueInfoProto(name=name) for name in made]
    model = helper.make_model(helper.make_graph([node], "constant", given, outputs), opset_imports=opsets)
    with np.errstate(all="ignore"):  # results that are not finite are refused where they matter
        results = ReferenceEvaluator(model).run(None, dict(values))
    return {name: np.asarray(result) for name, result in zip(made, results, strict=True)}


def _dequantized(attributes: Attributes, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """DequantizeLinear of integers: `(x - zero_point) * scale`."""
    by, dtype = along(attributes), _dtype(attributes, scale.dtype)
    zero = 0 if zero_point is None else spread(zero_point, x.shape, by, "zero point").astype(np.int64)
    moved = (x.astype(np.int64) - zero).astype(np.float32)
    return (moved * spread(scale, x.shape, by)).astype(dtype)


def _quantized(attributes: Attributes, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """QuantizeLinear to integers: `saturate(rint(x / scale) + zero_point)`, ties to even."""
    by, dtype = along(attributes), _dtype(attributes, np.dtype(np.uint8)) if zero_point is None else zero_point.dtype
    zero = 0 if zero_point is None else spread(zero_point, x.shape, by, "zero point").astype(np.int64)
    ends = ml_dtypes.iinfo(dtype)
    with np.errstate(over="ignore"):  # what is beyond all floats is beyond all codes
        codes = np.rint(x / spread(scale, x.shape, by)) + zero
    return np.clip(codes, int(ends.min), int(ends.max)).astype(np.int32).astype(dtype)


def _dtype(attributes: Attributes, default: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a quantiser's `output_dtype` asks for."""
    asked = attributes.get("output_dtype", 0)
    return helper.tensor_dtype_to_np_dtype(asked) if asked else default


def _normalized(attributes: Attributes, x: Array, *vectors: Array) -> Array:
    """BatchNormalization-7 and -9 at inference: `(x - mean) / sqrt(variance + epsilon) * scale + bias` along axis 1.

    The evaluator takes these versions for training. Until opset 8, `spatial = 0` has one value of each for every pixel.

    >>> scale, bias, mean, variance = np.float32([[1, 2], [0, 1], [1, 0], [1, 1]])
    >>> x = np.ones((1, 2, 2), np.float32)
    >>> _normalized({"epsilon": 0.0}, x, scale, bias, mean, variance).tolist()
    [[[0.0, 0.0], [3.0, 3.0]]]
    >>> _normalized({"epsilon": 0.0, "spatial": 0}, x[:, :1], scale, bias, mean, variance).tolist()
    [[[0.0, 3.0]]]
    """
    along = (-1, *[1] * (x.ndim - 2)) if attributes.get("spatial", 1) else x.shape[1:]
    scale, bias, mean, variance = (vector.reshape(along).astype(np.float64) for vector in vectors)
    return ((x - mean) / np.sqrt(variance + attributes.get("epsilon", 1e-5)) * scale + bias).astype(x.dtype)


QUANTISERS = {"QuantizeLinear": _quantized, "DequantizeLinear": _dequantized}
"""The evaluator has them of all granularities, but not of all opsets, and overflows where codes saturate."""
SINCE_INFERENCE = 14
"""The first opset whose BatchNormalization the evaluator computes for inference."""
