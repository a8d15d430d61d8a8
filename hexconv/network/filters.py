"""Weights of matrix products and of transposed convs: laid out once as [outputs, rows, columns, inputs of a group]."""

from dataclasses import dataclass

import numpy as np

from hexconv.model.graph import Node
from hexconv.model.integer import dequantised_bias
from hexconv.model.refused import Refused
from hexconv.network.operand import Operand
from hexconv.network.program import Reading
from hexconv.network.step import Filters
from hexconv.run.tensors import Array

NO_BIAS = ("", "")


@dataclass(frozen=True)
class _Stored:
    """Constant weights: reals, or codes without their zero points.

    Attributes:
        elements: as the model has them.
        scales: float32, [1] or one along `axis`.
    """

    elements: Array
    scales: Array

    @property
    def is_float(self) -> bool:
        return self.elements.dtype.kind == "f"


def of_gemm(reading: Reading, node: Node, source: Operand) -> Filters:
    """MatMul, or Gemm without a scale of its own.

    Raises:
        Refused: a second matrix that is no constant, or a first that is transposed.
    """
    told = node.attributes
    if told.get("transA", 0) or told.get("alpha", 1.0) != 1.0 or told.get("beta", 1.0) != 1.0:
        raise Refused("transA, alpha or beta; a product of rows is taken")
    is_turned = bool(told.get("transB", 0))
    stored = _dequantised(reading, node.input(1), 0 if is_turned else 1, source)
    matrix = stored.elements if is_turned else stored.elements.T
    bias = _bias(reading, node.input(2), stored, source)
    return _filters(reading, node, stored, matrix.reshape(matrix.shape[0], 1, 1, -1), bias)


def of_qgemm(reading: Reading, node: Node) -> Filters:
    """ONNX Runtime's own Gemm, of codes.

    Raises:
        Refused: as of `of_gemm`.
    """
    if node.attributes.get("transA", 0) or node.attributes.get("alpha", 1.0) != 1.0:
        raise Refused("transA or alpha; a product of rows is taken")
    is_turned = bool(node.attributes.get("transB", 0))
    stored = _codes(reading, node.input(3), node.input(4), node.input(5), 0 if is_turned else 1)
    matrix = stored.elements if is_turned else stored.elements.T
    return _filters(reading, node, stored, matrix.reshape(matrix.shape[0], 1, 1, -1), (node.input(6), ""))


def of_qlinear_matmul(reading: Reading, node: Node) -> Filters:
    """QLinearMatMul.

    Raises:
        Refused: a second matrix that is no constant.
    """
    stored = _codes(reading, node.input(3), node.input(4), node.input(5), 1)
    return _filters(reading, node, stored, stored.elements.T.reshape(stored.elements.shape[1], 1, 1, -1), NO_BIAS)


def of_conv_transpose(reading: Reading, node: Node, source: Operand) -> Filters:
    """A transposed conv, whose filter ONNX has as [inputs, outputs of a group, rows, columns].

    Raises:
        Refused: a filter that is no constant, or not of rows and columns.
    """
    groups = int(node.attributes.get("group", 1))
    stored = _dequantised(reading, node.input(1), 1, source)
    if stored.elements.ndim != 4:
        raise Refused(f"a filter of {stored.elements.ndim} axes; transposed convs of rows and columns are taken")
    inputs, outputs, rows, columns = stored.elements.shape
    apart = stored.elements.reshape(groups, inputs // groups, outputs, rows, columns)
    elements = apart.transpose(0, 2, 3, 4, 1).reshape(groups * outputs, rows, columns, inputs // groups)
    scales = np.tile(stored.scales, groups) if stored.scales.size > 1 else stored.scales
    stored = _Stored(stored.elements, scales)
    return _filters(reading, node, stored, elements, _bias(reading, node.input(2), stored, source), groups)


def _dequantised(reading: Reading, tensor: str, axis: int, source: Operand) -> _Stored:
    """Weights of a model of reals: codes, where they are dequantised ones that meet codes."""
    graph = reading.graph
    if not graph.is_constant(tensor):
        raise Refused(f"{tensor} depends on the model's input; weights are constants here")
    maker = graph.maker(tensor)
    if source.is_float or maker is None or maker.op != "DequantizeLinear":
        return _Stored(graph.value(tensor).astype(np.float32), np.ones(1, np.float32))
    along = int(maker.attributes.get("axis", 1)) % len(graph.value(tensor).shape)
    scales = graph.value(maker.input(1)).reshape(-1)
    if scales.size > 1 and along != axis:
        return _Stored(graph.value(tensor).astype(np.float32), np.ones(1, np.float32))
    return _codes(reading, maker.input(0), maker.input(1), maker.input(2), axis)


def _codes(reading: Reading, tensor: str, scale: str, zero_point: str, axis: int) -> _Stored:
    """Weights without their zero points, which may need one bit more."""
    graph = reading.graph
    if not graph.is_constant(tensor):
        raise Refused(f"{tensor} depends on the model's input; weights are constants here")
    codes = graph.value(tensor).astype(np.int32)
    if zero_point:
        zeros = graph.value(zero_point).astype(np.int32).reshape(-1)
        codes = codes - (
            zeros.reshape([-1 if at == axis else 1 for at in range(codes.ndim)]) if zeros.size > 1 else zeros[0]
        )
    ends = np.iinfo(np.int8)
    narrow = codes.min(initial=0) >= ends.min and codes.max(initial=0) <= ends.max
    return _Stored(codes.astype(np.int8 if narrow else np.int16), graph.value(scale).astype(np.float32).reshape(-1))


def _bias(reading: Reading, name: str, stored: _Stored, source: Operand) -> tuple[str, str]:
    """Names of a bias in units of the sums, or of one in reals."""
    if not name:
        return NO_BIAS
    if source.is_float or stored.is_float:
        return "", name
    units = np.float64(source.scale) * stored.scales.astype(np.float64)
    found, reals = dequantised_bias(reading.graph, name, units)
    return (found, "") if reals is None else ("", name)


def _filters(
    reading: Reading, node: Node, stored: _Stored, elements: Array, bias: tuple[str, str], groups: int = 1
) -> Filters:
    """All constants of one node, kept."""
    outputs = elements.shape[0]
    if stored.scales.size not in (1, outputs):
        raise Refused(f"{stored.scales.size} scales of its weights for {outputs} outputs")
    names = [f"{node.name}:{what}" for what in ("weights", "scales", "sums", "bias")]
    sums, reals = (_vector(reading, name, outputs) if name else None for name in bias)
    return Filters(
        elements=reading.constant(names[0], elements),
        dtype=str(elements.dtype),
        scales=reading.constant(names[1], stored.scales),
        scale_count=stored.scales.size,
        shape=elements.shape,
        groups=groups,
        sums_bias="" if sums is None else reading.constant(names[2], sums.astype(np.int32)),
        real_bias="" if reals is None else reading.constant(names[3], reals.astype(np.float32)),
    )


def _vector(reading: Reading, name: str, outputs: int) -> Array:
    """A bias, one for each output."""
    values = reading.graph.value(name).reshape(-1)
    if values.size not in (1, outputs):
        raise Refused(f"a bias of {values.size} for {outputs} outputs")
    return np.broadcast_to(values, (outputs,))
