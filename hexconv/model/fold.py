"""Compute a node of constants with ONNX's evaluator, or in numpy where the evaluator fails or is wrong."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

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
    opset = next((imported.version for imported in opsets if imported.domain in ("", "ai.onnx")), 1)
    definition, since = OLD.get(node.op_type, (None, 0))
    if definition is None or opset >= since:
        return _evaluated(node, opsets, values)
    if any(node.output[1:]):
        raise Refused(f"{node.op_type} of opset {opset} has outputs of training; export it for inference")
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {node.output[0]: definition(attributes, *(values[name] for name in node.input if name))}


def _evaluated(node: onnx.NodeProto, opsets: Opsets, values: Values) -> dict[str, Array]:
    """Compute a node with ONNX's reference evaluator."""
    given, made = [onnx.ValueInfoProto(name=name) for name in values], [name for name in node.output if name]
    outputs = [onnx.ValueInfoProto(name=name) for name in made]
    model = helper.make_model(helper.make_graph([node], "constant", given, outputs), opset_imports=opsets)
    results = ReferenceEvaluator(model).run(None, dict(values))
    return {name: np.asarray(result) for name, result in zip(made, results, strict=True)}


def _dequantized(attributes: Attributes, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """DequantizeLinear-10 and -13: `(x - zero_point) * scale`, one of both for all, or for each slice along `axis`."""
    along = [1] * x.ndim
    if scale.size != 1:
        along[attributes.get("axis", 1)] = scale.size
    moved = x.astype(np.float32) if zero_point is None else x.astype(np.int64) - zero_point.reshape(along)
    return moved.astype(np.float32) * scale.reshape(along)


def _normalized(attributes: Attributes, x: Array, *vectors: Array) -> Array:
    """BatchNormalization-7 and -9 at inference: `(x - mean) / sqrt(variance + epsilon) * scale + bias` along axis 1.

    The evaluator takes these versions for training. Until opset 8, `spatial = 0` has one value of each for every pixel.
    """
    along = (-1, *[1] * (x.ndim - 2)) if attributes.get("spatial", 1) else x.shape[1:]
    scale, bias, mean, variance = (vector.reshape(along).astype(np.float64) for vector in vectors)
    return ((x - mean) / np.sqrt(variance + attributes.get("epsilon", 1e-5)) * scale + bias).astype(x.dtype)


OLD: dict[str, tuple[Callable[..., Array], int]] = {
    "DequantizeLinear": (_dequantized, 19),
    "BatchNormalization": (_normalized, 14),
}
"""By operator, the function that computes a node, and the first opset that ONNX's evaluator computes itself."""
