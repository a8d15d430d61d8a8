"""Lay out the weights of matrix products and transposed convs as [outputs, rows, columns, inputs of a group]."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.model.graph import Node
from hexconv.model.integer import dequantised_bias
from hexconv.model.quantised import quantised_filter
from hexconv.model.refused import Refused
from hexconv.network.program import Reading
from hexconv.network.program_steps import Filters, Operand
from hexconv.run.tensors import Array

NO_BIAS = ("", "")


@dataclass(frozen=True)
class _Stored:
    """Constant weights: real numbers, or codes from which the zero points are subtracted.

    Attributes:
        elements: the weights in the model's shape.
        scales: float32, [1] or one along `axis`.
    """

    elements: Array
    scales: Array

    @property
    def is_float(self) -> bool:
        return self.elements.dtype.kind == "f"


def of_gemm(reading: Reading, node: Node, source: Operand) -> Filters:
    """Read the weights of a MatMul, or of a Gemm whose `alpha` and `beta` are 1.

    Raises:
        Refused: the second matrix is no constant, or the first is transposed.
    """
    told = node.attributes
    if told.get("transA", 0) or told.get("alpha", 1.0) != 1.0 or told.get("beta", 1.0) != 1.0:
        raise Refused("it sets transA, alpha or beta; export it with transA = 0, alpha = 1 and beta = 1")
    is_turned = bool(told.get("transB", 0))
    stored = _dequantised(reading, node.input(1), 0 if is_turned else 1, source)
    matrix = stored.elements if is_turned else stored.elements.T
    bias = _bias(reading, node.input(2), stored, source)
    return _filters(reading, node, stored, matrix.reshape(matrix.shape[0], 1, 1, -1), bias)


def of_qgemm(reading: Reading, node: Node) -> Filters:
    """Read the weights of QGemm, ONNX Runtime's own Gemm of codes.

    Raises:
        Refused: as of `of_gemm`.
    """
    if node.attributes.get("transA", 0) or node.attributes.get("alpha", 1.0) != 1.0:
        raise Refused("it sets transA or alpha; export it with transA = 0 and alpha = 1")
    is_turned = bool(node.attributes.get("transB", 0))
    stored = _codes(reading, node.inputs[3:6], 0 if is_turned else 1)
    matrix = stored.elements if is_turned else stored.elements.T
    return _filters(reading, node, stored, matrix.reshape(matrix.shape[0], 1, 1, -1), (node.input(6), ""))


def of_qlinear_matmul(reading: Reading, node: Node) -> Filters:
    """Read the weights of a QLinearMatMul.

    Raises:
        Refused: the second matrix is no constant.
    """
    stored = _codes(reading, node.inputs[3:6], 1)
    return _filters(reading, node, stored, stored.elements.T.reshape(stored.elements.shape[1], 1, 1, -1), NO_BIAS)


def of_conv_transpose(reading: Reading, node: Node, source: Operand) -> Filters:
    """Read the filter of a transposed conv, which ONNX has as [inputs, outputs of a group, rows, columns].

    Raises:
        Refused: the filter is no constant, or does not have four axes.
    """
    groups = int(node.attributes.get("group", 1))
    stored = _dequantised(reading, node.input(1), 1, source)
    if stored.elements.ndim != 4:
        raise Refused(f"its filter has {stored.elements.ndim} axes; a transposed conv has a filter of 4 here")
    inputs, outputs, rows, columns = stored.elements.shape
    apart = stored.elements.reshape(groups, inputs // groups, outputs, rows, columns)
    elements = apart.transpose(0, 2, 3, 4, 1).reshape(groups * outputs, rows, columns, inputs // groups)
    scales = np.tile(stored.scales, groups) if stored.scales.size > 1 else stored.scales
    stored = _Stored(stored.elements, scales)
    return _filters(reading, node, stored, elements, _bias(reading, node.input(2), stored, source), groups)


def _dequantised(reading: Reading, tensor: str, axis: int, source: Operand) -> _Stored:
    """Read weights of real numbers; of codes for a source of codes, the codes, if each output has one scale."""
    maker = reading.graph.maker(tensor)
    if maker is not None and maker.op == "DequantizeLinear" and not source.is_float:
        try:
            return _codes(reading, maker.inputs, axis, maker)
        except Refused:
            pass  # blocks, or scales along another axis: real numbers by the definition
    return _Stored(_constant(reading, tensor).astype(np.float32), np.ones(1, np.float32))


def _codes(reading: Reading, names: Sequence[str], axis: int, by: Node | None = None) -> _Stored:
    """Read quantised weights and subtract their zero points; the differences may need one bit more.

    Args:
        reading: the reader of the network.
        names: the names of the weights, their scale and their zero point, which may be left out.
        axis: the axis of the outputs.
        by: the DequantizeLinear of the weights, if one makes real numbers of them.
    """
    codes = _constant(reading, names[0]).astype(np.int32)
    found = quantised_filter(reading.graph, *(*names, "")[:3], by=by, axis=axis)
    codes = codes - found.zero_points.reshape([-1 if at == axis else 1 for at in range(codes.ndim)])
    ends = np.iinfo(np.int8)
    narrow = codes.min(initial=0) >= ends.min and codes.max(initial=0) <= ends.max
    return _Stored(codes.astype(np.int8 if narrow else np.int16), found.scales)


def _constant(reading: Reading, tensor: str) -> Array:
    if not reading.graph.is_constant(tensor):
        raise Refused(f"{tensor} depends on the model's input; weights are constants here")
    return reading.graph.value(tensor)


def _bias(reading: Reading, name: str, stored: _Stored, source: Operand) -> tuple[str, str]:
    """Name a bias, first of the pair if it is in units of the sums, second if in real numbers; the other is empty."""
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
    """Keep all constants of one node."""
    outputs = elements.shape[0]
    if stored.scales.size not in (1, outputs):
        raise Refused(
            f"its weights have {stored.scales.size} scales for {outputs} outputs; they need one, or one for each"
        )
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
    """Read a bias as one value for each output."""
    values = reading.graph.value(name).reshape(-1)
    if values.size not in (1, outputs):
        raise Refused(f"its bias has {values.size} values for {outputs} outputs; it needs one, or one for each")
    return np.broadcast_to(values, (outputs,))
