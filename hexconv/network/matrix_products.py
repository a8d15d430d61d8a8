"""Operators that multiply by constant weights: matrix products and transposed convs, in floats and in codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from hexconv.model.contributed import DOMAIN
from hexconv.model.graph import Node
from hexconv.model.integer import dequantised_bias
from hexconv.model.quantised import quantised_filter
from hexconv.model.refused import Refused
from hexconv.model.transposed import transposed_padding
from hexconv.network.elements import Operator, Stored, real_values, steps_of, stored_as
from hexconv.network.integer_form import (
    PRODUCTS,
    VECTOR_BYTES,
    grid,
    header,
    numbers_of,
    spread,
    turned_bit,
    zero_of,
)
from hexconv.network.program import (
    Reading,
    Table,
    scale_names,
    three,
)
from hexconv.network.program_steps import (
    Constants,
    Filters,
    Operand,
    Operation,
    Window,
    is_codes,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, SOFTEST

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


def _of_gemm(reading: Reading, node: Node, source: Operand) -> Filters:
    """Read the weights of a MatMul, or of a Gemm whose `alpha` and `beta` are 1.

    Raises:
        Refused: the second matrix is no constant, or the first is transposed.
    """
    told = node.attributes
    if told.get("transA", 0) or told.get("alpha", 1.0) != 1.0 or told.get("beta", 1.0) != 1.0:
        raise Refused("it sets transA, alpha or beta; export it with transA = 0, alpha = 1 and beta = 1")
    is_turned = bool(told.get("transB", 0))
    stored = _dequantised_weights(reading, node.input(1), 0 if is_turned else 1, source)
    matrix = stored.elements if is_turned else stored.elements.T
    bias = _bias(reading, node.input(2), stored, source)
    return _filters(reading, node, stored, matrix.reshape(matrix.shape[0], 1, 1, -1), bias)


def _of_qgemm(reading: Reading, node: Node) -> Filters:
    """Read the weights of QGemm, ONNX Runtime's own Gemm of codes.

    Raises:
        Refused: as of `_of_gemm`.
    """
    if node.attributes.get("transA", 0) or node.attributes.get("alpha", 1.0) != 1.0:
        raise Refused("it sets transA or alpha; export it with transA = 0 and alpha = 1")
    is_turned = bool(node.attributes.get("transB", 0))
    stored = _codes_of_weights(reading, node.inputs[3:6], 0 if is_turned else 1)
    matrix = stored.elements if is_turned else stored.elements.T
    return _filters(reading, node, stored, matrix.reshape(matrix.shape[0], 1, 1, -1), (node.input(6), ""))


def _of_qlinear_matmul(reading: Reading, node: Node) -> Filters:
    """Read the weights of a QLinearMatMul.

    Raises:
        Refused: the second matrix is no constant.
    """
    stored = _codes_of_weights(reading, node.inputs[3:6], 1)
    return _filters(reading, node, stored, stored.elements.T.reshape(stored.elements.shape[1], 1, 1, -1), NO_BIAS)


def _of_conv_transpose(reading: Reading, node: Node, source: Operand) -> Filters:
    """Read the filter of a transposed conv, which ONNX has as [inputs, outputs of a group, rows, columns].

    Raises:
        Refused: the filter is no constant, or does not have four axes.
    """
    groups = int(node.attributes.get("group", 1))
    stored = _dequantised_weights(reading, node.input(1), 1, source)
    if stored.elements.ndim != 4:
        raise Refused(f"its filter has {stored.elements.ndim} axes; a transposed conv has a filter of 4 here")
    inputs, outputs, rows, columns = stored.elements.shape
    apart = stored.elements.reshape(groups, inputs // groups, outputs, rows, columns)
    elements = apart.transpose(0, 2, 3, 4, 1).reshape(groups * outputs, rows, columns, inputs // groups)
    scales = np.tile(stored.scales, groups) if stored.scales.size > 1 else stored.scales
    stored = _Stored(stored.elements, scales)
    return _filters(reading, node, stored, elements, _bias(reading, node.input(2), stored, source), groups)


def _dequantised_weights(reading: Reading, tensor: str, axis: int, source: Operand) -> _Stored:
    """Read weights of real numbers; of codes for a source of codes, the codes, if each output has one scale."""
    maker = reading.graph.maker(tensor)
    if maker is not None and maker.op == "DequantizeLinear" and not source.is_float:
        try:
            return _codes_of_weights(reading, maker.inputs, axis, maker)
        except Refused:
            pass  # blocks, or scales along another axis: real numbers by the definition
    return _Stored(_weights_of(reading, tensor).astype(np.float32), np.ones(1, np.float32))


def _codes_of_weights(reading: Reading, names: Sequence[str], axis: int, by: Node | None = None) -> _Stored:
    """Read quantised weights and subtract their zero points; the differences may need one bit more.

    Args:
        reading: the reader of the network.
        names: the names of the weights, their scale and their zero point, which may be left out.
        axis: the axis of the outputs.
        by: the DequantizeLinear of the weights, if one makes real numbers of them.
    """
    codes = _weights_of(reading, names[0]).astype(np.int32)
    found = quantised_filter(reading.graph, *(*names, "")[:3], by=by, axis=axis)
    codes = codes - found.zero_points.reshape([-1 if at == axis else 1 for at in range(codes.ndim)])
    ends = np.iinfo(np.int8)
    narrow = codes.min(initial=0) >= ends.min and codes.max(initial=0) <= ends.max
    return _Stored(codes.astype(np.int8 if narrow else np.int16), found.scales)


def _weights_of(reading: Reading, tensor: str) -> Array:
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
    names = [f"{node.outputs[0]}:{what}" for what in ("weights", "scales", "sums", "bias")]
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


def _read_matmul(reading: Reading, node: Node) -> None:
    source = _rows(reading.source(node.inputs[0]))
    reading.add("matmul", node, [source], reading.result(node.outputs[0]), _of_gemm(reading, node, source))


def _read_quantised_matmul(reading: Reading, node: Node) -> None:
    source = _rows(reading.dequantised(*three(node)))
    how = _of_qlinear_matmul(reading, node)
    reading.add("matmul", node, [source], reading.quantised(node.outputs[0], *scale_names(node, 6)), how)


def _read_quantised_gemm(reading: Reading, node: Node) -> None:
    source = _rows(reading.dequantised(*three(node)))
    how, ends = _of_qgemm(reading, node), scale_names(node, 7)
    result = reading.quantised(node.outputs[0], *ends) if ends[0] else reading.result(node.outputs[0])
    reading.add("matmul", node, [source], result, how)


def _rows(source: Operand) -> Operand:
    if prod(source.extents[1:3]) != 1:
        raise Refused(f"its input of NHWC {source.extents} is no matrix")
    return source


def _read_conv_transpose(reading: Reading, node: Node) -> None:
    source = reading.source(node.inputs[0])
    result = reading.result(node.outputs[0])
    how: Filters = _of_conv_transpose(reading, node, source)
    strides, dilations = node.attributes.get("strides", [1, 1]), node.attributes.get("dilations", [1, 1])
    padding = transposed_padding(node.attributes, source.extents[1:3], result.extents[1:3], how.shape[1:3])
    slides = Window(how.shape[1:3], tuple(strides), tuple(dilations), padding)
    reading.add("conv_transpose", node, [source], result, how, slides)


def _multiplied(step: Operation, seen: list[Array], constants: Stored) -> Array:
    filters = step.told(Filters)
    source = step.sources[0]
    return _weighed(
        _sums_of_products(seen[0], source, constants[filters.elements][:, 0, 0]), source, filters, constants
    )


def _sums_of_products(values: Array, source: Operand, matrix: Array) -> Array:
    """Sums over the last axis: exact for integers, else in the order of the elements, in float64."""
    if not source.is_float and matrix.dtype.kind == "i":
        return steps_of(values, source) @ matrix.T.astype(np.int64)
    reals, total = real_values(values, source).astype(np.float64), np.zeros((*values.shape[:-1], len(matrix)))
    for at in range(reals.shape[-1]):
        total = total + reals[..., at : at + 1] * matrix[:, at].astype(np.float64)
    return total


def _weighed(sums: Array, source: Operand, filters: Filters, constants: Stored) -> Array:
    """Add the bias to sums, and return the real numbers that they stand for."""
    real = sums.astype(np.float32)
    if sums.dtype.kind == "i":
        whole = sums + constants[filters.sums_bias] if filters.sums_bias else sums
        real = whole.astype(np.float32) * (np.float32(source.scale) * constants[filters.scales])
    return real + constants[filters.real_bias] if filters.real_bias else real


def _spread_out(step: Operation, seen: list[Array], constants: Stored) -> Array:
    filters, window = step.told(Filters), step.told(Window)
    source, values = step.sources[0], seen[0]
    elements, (batch, rows, columns, channels) = constants[filters.elements], step.result.extents
    is_exact = not source.is_float and elements.dtype.kind == "i"
    total = np.zeros((batch, rows, columns, channels), np.int64 if is_exact else np.float64)
    own = channels // filters.groups
    for row, column in product(*map(range, window.kernel)):
        y, from_y = _origins(rows, row, 0, window, values.shape[1])
        x, from_x = _origins(columns, column, 1, window, values.shape[2])
        for group in range(filters.groups):
            outputs = slice(group * own, (group + 1) * own)
            inputs = slice(group * filters.shape[3], (group + 1) * filters.shape[3])
            taken = values[:, from_y][:, :, from_x][..., inputs]
            total[:, y[:, None], x, outputs] += _sums_of_products(taken, source, elements[outputs, row, column])
    return _weighed(total, source, filters, constants)


def _origins(made: int, tap: int, axis: int, window: Window, size: int) -> tuple[Array, Array]:
    """Along one axis, the places of a result that a tap writes, and the places of the source that it reads."""
    moved = np.arange(made) + window.padding[axis] - tap * window.dilation[axis]
    comes = (moved >= 0) & (moved % window.stride[axis] == 0) & (moved // window.stride[axis] < size)
    return np.flatnonzero(comes), moved[comes] // window.stride[axis]


MOST_INPUTS, MOST_OUTPUTS, OUTPUTS_AT_ONCE, BLOCK, OF_NARROW, WORD_BYTES = 8192, 4096, 128, 32, 8, 4
"""Of products: what HVX keeps of a pixel at most; outputs that are made together, whose
sums fill a vector, and to which those of a last block are rounded up."""

BEYOND, MOST_STEPS = 600, 1700
"""Steps from the zero point that are beyond all codes; and so many that 11 bits hold them besides a zero point."""


def _products_form(step: Operation, constants: Constants) -> bytes | None:
    """Weights of a matrix product, or of a transposed conv whose windows lie side by side, [rows, columns, outputs]."""
    [source], result, filters = step.sources, step.result, step.told(Filters)
    if not is_codes(source) or not is_codes(result) or filters.dtype != "int8" or filters.real_bias:
        return None
    if step.operator == "conv_transpose" and not _is_side_by_side(step):
        return None
    elements = constants[filters.elements].astype(np.int64).transpose(1, 2, 0, 3)
    weights = elements.reshape(-1, elements.shape[-1])
    outputs, inputs = weights.shape
    if inputs > MOST_INPUTS or outputs > MOST_OUTPUTS or filters.groups != 1:
        return None
    times = outputs // filters.shape[0]
    bias = np.tile(constants[filters.sums_bias].astype(np.int64), times) if filters.sums_bias else 0
    bias = bias - zero_of(source) * weights.sum(1)
    largest = np.maximum(np.maximum(weights, 0).sum(1), np.maximum(-weights, 0).sum(1)) * (CODES - 1) + np.abs(bias)
    scales = np.float32(source.scale) * np.broadcast_to(constants[filters.scales], filters.shape[0])  # as C computes it
    steps = np.tile(scales.astype(np.float64), times) / float(np.float32(result.scale))
    if largest.max() >= 2**31 or not steps.min() > 0:
        return None
    is_within = bool(np.ldexp(steps, np.frexp(largest + 1.0)[1]).max() < MOST_STEPS)  # and so multipliers fit a word
    limits = largest + 1 if is_within else np.minimum(np.ceil(BEYOND / steps), largest + 1).astype(np.int64)
    if limits.max() >= 2**31:
        return None
    shifts = 31 - np.frexp(limits.astype(np.float64))[1]
    multipliers = np.round(steps * 2.0 ** (51 - shifts)).astype(np.int64)
    if multipliers.max() >= 2**31:
        return None
    to = grid(result, (1, 1, 1, 2), "ends")
    ends = np.array([-1, 1], np.float32) * np.float32(result.scale) * SOFTEST
    least, most = numbers_of(stored_as(ends, to), result)
    whole, words = -(-outputs // OUTPUTS_AT_ONCE) * OUTPUTS_AT_ONCE, -(-inputs // 4)
    laid, full, narrow = _laid(weights + 128, words)
    numbers = np.zeros((4, whole), np.int32)
    numbers[:, :outputs] = bias, limits, shifts, multipliers
    offset = (zero_of(result) << 20) + (1 << 19)
    told = (
        PRODUCTS,
        whole,
        words,
        turned_bit(source),
        offset,
        turned_bit(result),
        int(least),
        int(most),
        is_within,
        full,
        narrow,
    )
    apart = spread(min(inputs, VECTOR_BYTES), WORD_BYTES)
    return header(*map(int, told)) + apart.tobytes() + numbers.tobytes() + laid


def _laid(weights: Array, words: int) -> tuple[bytes, int, int]:
    """Lay weights from 0 on by blocks of outputs; how many are full, and the bytes of a word in the one behind them."""
    outputs, inputs = weights.shape
    held = -(-outputs // OF_NARROW) * OF_NARROW
    laid = np.full((held, words, WORD_BYTES), 128, np.uint8)
    laid.reshape(held, -1)[:outputs, :inputs] = weights
    full, left = divmod(held, BLOCK)
    blocks = np.split(laid.transpose(1, 0, 2), range(BLOCK, held, BLOCK), axis=1)
    unread = VECTOR_BYTES - left * WORD_BYTES if left else 0
    return b"".join(block.tobytes() for block in blocks) + bytes(unread), full, left * WORD_BYTES


def _is_side_by_side(step: Operation) -> bool:
    """Whether a transposed conv writes each element of its result once, by one element of its source."""
    window, (rows, columns) = step.told(Window), step.sources[0].extents[1:3]
    made = (rows * window.stride[0], columns * window.stride[1])
    return window.kernel == window.stride and not any(window.padding) and made == step.result.extents[1:3]


def _terms_of_products(step: Operation, sizes: Sequence[float], constants: Stored) -> tuple[int, float]:
    filters = step.told(Filters)
    weights = np.abs(constants[filters.elements].astype(np.float64)).reshape(filters.shape[0], -1).sum(1)
    scaled = weights * constants[filters.scales].astype(np.float64)
    bias = np.abs(constants[filters.real_bias]).max(initial=0) if filters.real_bias else 0.0
    return prod(filters.shape[1:]), float(scaled.max(initial=0)) * sizes[0] + float(bias)


OPERATORS = {
    "matmul": Operator(_multiplied, _products_form, _terms_of_products),
    "conv_transpose": Operator(_spread_out, _products_form, _terms_of_products),
}
NODES: Table = {
    "MatMul": _read_matmul,
    "Gemm": _read_matmul,
    "ConvTranspose": _read_conv_transpose,
    f"{DOMAIN}.QGemm": _read_quantised_gemm,
    "QLinearMatMul": _read_quantised_matmul,
}
