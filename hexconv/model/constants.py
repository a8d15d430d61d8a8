"""Fold the constants of a model, each when its value is asked for, by ONNX's evaluator or in numpy."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hexconv.model.contributed import as_standard, is_standard
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
    if definition is None and node.op_type in ALONG_AXES and opset_of(opsets) < SINCE_ONE_AXIS:
        return _evaluated_by_rows(node, opsets, int(attributes.get("axis", 1)), values)
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
    opset = opset_of(opsets)
    if node.op_type != "BatchNormalization" or opset >= SINCE_INFERENCE:
        return None
    if any(node.output[1:]):
        raise Refused(f"{node.op_type} of opset {opset} has outputs of training; export it for inference")
    return _normalized


def opset_of(opsets: Opsets) -> int:
    """The opset of ONNX's own operators among those of a model."""
    return next((imported.version for imported in opsets if imported.domain in ("", "ai.onnx")), 1)


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


def _evaluated_by_rows(node: onnx.NodeProto, opsets: Opsets, axis: int, values: Values) -> dict[str, Array]:
    """Compute a Softmax, or its kin, over all axes from one on: over the rows of a matrix, as opsets before 13 have it.

    The evaluator computes it along that axis alone, as of opset 13.

    >>> softmax, zeros = helper.make_node("Softmax", ["x"], ["y"]), np.zeros((1, 2, 2), np.float32)
    >>> fold(softmax, [helper.make_opsetid("", 12)], {"x": zeros})["y"].tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    >>> fold(softmax, [helper.make_opsetid("", 13)], {"x": zeros})["y"].tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    [(name, x)] = values.items()
    first = axis % x.ndim
    matrix = x.reshape(prod(x.shape[:first]), prod(x.shape[first:]))
    by_rows = helper.make_node(node.op_type, node.input, node.output, axis=1)
    return {made: y.reshape(x.shape) for made, y in _evaluated(by_rows, opsets, {name: matrix}).items()}


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
ALONG_AXES = ("Softmax", "LogSoftmax", "Hardmax")
SINCE_ONE_AXIS = 13
"""The first opset in which these are along one axis, the last by default; before, they are over all from an axis on."""


LARGEST_FOLDED = 2**28
"""The most elements of a folded tensor: no filter has more, and a file of a few bytes can ask for any number."""
MOST_FOLDED_BYTES = 2**31
"""The most bytes of all folded tensors of a model."""
LARGEST_ELEMENT_BYTES = 8
"""What an element is counted for before its dtype is known."""
MOST_PRODUCTS = 2**31
"""The most products that a folded node computes."""
PRODUCTS = ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul")
RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
OF_TEXT = ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "ImageDecoder")
OF_NETWORKS = (
    *("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv", "LpPool", "Einsum", "DFT", "STFT", "Det"),
    *("MaxPool", "AveragePool", "LRN", "Resize", "Upsample"),
    *("RNN", "GRU", "LSTM", "Attention", "NonMaxSuppression", "RoiAlign", "MaxRoiPool", "GridSample", "Col2Im"),
)
NEVER_FOLDED = frozenset((*RANDOM, *OF_TEXT, *OF_NETWORKS))
"""Operators whose results differ from run to run, and those that make no shape and no filter, but may take hours."""
SUBGRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)

SHAPES = ("Shape", "Size")
"""Operators whose results are constants wherever sizes are fixed, whatever the values are."""


Shape = tuple[int | str, ...]


class Constants:
    """Which tensors of a graph don't depend on its inputs, and what they hold."""

    def __init__(
        self, model: onnx.ModelProto, folder: Path, shapes: Mapping[str, Shape | None], most: int = LARGEST_FOLDED
    ) -> None:
        """Find the constants; nothing is read or computed yet.

        Args:
            model: the model, with shapes inferred.
            folder: the folder that external data lies in.
            shapes: the shape of each tensor, None where it is not known.
            most: the most elements of a tensor that is computed.
        """
        self._opsets, self._folder, self._shapes, self._most = model.opset_import, folder, shapes, most
        self._stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self._made: dict[str, onnx.NodeProto] = {}
        self._values: dict[str, Array] = {}
        self._held_bytes = 0
        for node in model.graph.node:
            if self._is_shape(node) or (_folds(node) and all(name in self for name in node.input if name)):
                self._made.update(dict.fromkeys(node.output, node))

    @property
    def opset(self) -> int:
        """The opset of ONNX's own operators, which says what a node means."""
        return opset_of(self._opsets)

    def __contains__(self, name: str) -> bool:
        """Whether a tensor is a constant."""
        return name in self._stored or name in self._made

    def value(self, name: str) -> Array:
        """The value of a constant.

        Raises:
            Refused: the constant's data can't be read, or ONNX's evaluator can't compute it.
        """
        # Deepest first, without recursion: a chain of constants may be longer than Python's stack.
        waiting = [name]
        while waiting:
            missing = [source for source in self._inputs(waiting[-1]) if source not in self._values]
            if missing:
                waiting += missing
            else:
                self._evaluate(waiting.pop())
        return self._values[name]

    def computed(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> dict[str, Array]:
        """Compute a node's outputs, by name, with ONNX's evaluator.

        Args:
            node: a node without bodies, of ONNX's own domain, or one of ONNX Runtime's with an ONNX operator inside.
            values: the values of all its inputs, by name.

        Raises:
            Refused: ONNX's evaluator can't compute it.
        """
        known = dict(values)
        try:
            for part in as_standard(node):
                known |= fold(part, self._opsets, {name: known[name] for name in part.input if name})
        except Refused:
            raise
        except Exception as error:  # whatever the evaluator raises, the rest of the model is still read
            raise Refused(f"{node.op_type} {node.name} can't be computed: {_first_words(error)}") from None
        return {name: known[name] for name in node.output if name}

    def _is_shape(self, node: onnx.NodeProto) -> bool:
        """Whether a node makes the sizes of a tensor, and these are fixed."""
        return is_standard(node) and node.op_type in SHAPES and elements(self._shapes.get(node.input[0])) is not None

    def _inputs(self, name: str) -> list[str]:
        if name in self._stored or self._is_shape(self._made[name]):
            return []
        return [source for source in self._made[name].input if source]

    def _evaluate(self, name: str) -> None:
        """Compute one tensor whose inputs are all known."""
        if name in self._values:
            return
        try:
            if name in self._stored:
                self._values[name] = numpy_helper.to_array(self._stored[name], base_dir=str(self._folder))
            else:
                folded = self._folded(self._made[name])
                self._values.update(folded)
                self._held_bytes += sum(value.nbytes for value in folded.values())
        except Refused:
            raise
        except Exception as error:  # whatever is wrong with data or attributes, the rest of the model is still read
            raise Refused(f"the constant {name} can't be computed: {_first_words(error)}") from None

    def _check_work(self, node: onnx.NodeProto, made: int) -> None:
        """Refuse a node that makes so many elements if it takes too many products, or all take too much memory."""
        if self._held_bytes + made * LARGEST_ELEMENT_BYTES > MOST_FOLDED_BYTES:
            raise Refused(f"the constant {node.output[0]} is too large to fold beside others")
        if node.op_type in PRODUCTS and made * max(self._values[node.input[0]].shape, default=1) > MOST_PRODUCTS:
            raise Refused(f"the constant {node.output[0]} takes too many products to fold")

    def _folded(self, node: onnx.NodeProto) -> dict[str, Array]:
        """Compute all outputs of a node whose inputs are constants."""
        sizes = [elements(self._shapes.get(name)) for name in node.output if name]
        if any(size is None or size > self._most for size in sizes):
            raise Refused(f"the constant {node.output[0]} is too large to fold, or of unknown size")
        self._check_work(node, sum(size for size in sizes if size))
        if self._is_shape(node):  # which reads no element
            sizes = [size for size in self._shapes[node.input[0]] or () if isinstance(size, int)]
            return self.computed(node, {node.input[0]: np.broadcast_to(np.int8(0), sizes)})
        return self.computed(node, {name: self._values[name] for name in node.input if name})


def _first_words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def elements(shape: Shape | None) -> int | None:
    """How many elements a shape has; None unless all its sizes are known."""
    if shape is None or any(isinstance(size, str) for size in shape):
        return None
    return prod(size for size in shape if isinstance(size, int))


def _folds(node: onnx.NodeProto) -> bool:
    """Whether a node whose inputs are constants makes a constant that ONNX's evaluator can compute."""
    standard = is_standard(node) and node.op_type not in NEVER_FOLDED
    is_random = node.op_type == "Dropout" and any(node.input[2:])
    return standard and not is_random and not any(attribute.type in SUBGRAPHS for attribute in node.attribute)
