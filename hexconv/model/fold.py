"""One node of constants, computed: by ONNX's own reference evaluator, or in numpy where that can't or gets it wrong."""

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
    """All outputs of a node, by name.

    Args:
        node: of ONNX's own domain, without bodies.
        opsets: of its model.
        values: of its inputs, by name.

    Raises:
        Refused: a BatchNormalization in training, of an old opset.
        Exception: whatever numpy and ONNX's evaluator make of values that don't fit.
    """
    opset = next((imported.version for imported in opsets if imported.domain in ("", "ai.onnx")), 1)
    definition, since = OLD.get(node.op_type, (None, 0))
    if definition is None or opset >= since:
        return _evaluated(node, opsets, values)
    if any(node.output[1:]):
        raise Refused(f"{node.op_type} of opset {opset} with {len(node.output)} outputs, as in training")
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {node.output[0]: definition(attributes, *(values[name] for name in node.input if name))}


def _evaluated(node: onnx.NodeProto, opsets: Opsets, values: Values) -> dict[str, Array]:
    """As ONNX's reference evaluator computes it."""
    given, made = [onnx.ValueInfoProto(name=name) for name in values], [name for name in node.output if name]
    outputs = [onnx.ValueInfoProto(name=name) for name in made]
    model = helper.make_model(helper.make_graph([node], "constant", given, outputs), opset_imports=opsets)
    results = ReferenceEvaluator(model).run(None, dict(values))
    return {name: np.asarray(result) for name, result in zip(made, results, strict=True)}


def _dequantized(attributes: Attributes, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """`(x - zero_point) * scale`, both one for all, or one for each slice along `axis`: DequantizeLinear-10 and -13."""
    along = [1] * x.ndim
    if scale.size != 1:
        along[attributes.get("axis", 1)] = scale.size
    moved = x.astype(np.float32) if zero_point is None else x.astype(np.int64) - zero_point.reshape(along)
    return moved.astype(np.float32) * scale.reshape(along)


def _normalized(attributes: Attributes, x: Array, *vectors: Array) -> Array:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias` along axis 1: BatchNormalization-7 and -9 at inference.

    The evaluator takes these for training. Until opset 8, `spatial = 0` has one of each for every pixel.
    """
    along = (-1, *[1] * (x.ndim - 2)) if attributes.get("spatial", 1) else x.shape[1:]
    scale, bias, mean, variance = (vector.reshape(along).astype(np.float64) for vector in vectors)
    return ((x - mean) / np.sqrt(variance + attributes.get("epsilon", 1e-5)) * scale + bias).astype(x.dtype)


OLD: dict[str, tuple[Callable[..., Array], int]] = {
    "DequantizeLinear": (_dequantized, 19),
    "BatchNormalization": (_normalized, 14),
}
"""How to compute a node of an opset before this one."""
