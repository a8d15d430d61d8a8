"""How each operator of ONNX becomes a step of the program: rows and columns of Resize, filters of matrix products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.model.affine import clamp_of
from hexconv.model.contributed import DOMAIN
from hexconv.model.geometry import sides, window
from hexconv.model.graph import Node
from hexconv.model.integer import dequantised_bias
from hexconv.model.quantised import quantised_filter
from hexconv.model.refused import Refused
from hexconv.network.program import Reading, Table
from hexconv.network.program_steps import NCHW, Along, Axis, Blocks, Filters, Operand, Resize, Window, extents_of
from hexconv.run.tensors import Array

SPATIAL = {"rows": 1, "columns": 2}
"""The index of rows and of columns in N, H, W, C."""
EXACT_DIGITS = 9
"""Decimal places of a coordinate: what float64 leaves next to a half or a whole number is one."""
ROUNDED: dict[bytes, Callable[[Array], Array]] = {
    b"round_prefer_floor": lambda at: np.ceil(at - 0.5),
    b"round_prefer_ceil": lambda at: np.floor(at + 0.5),
    b"floor": np.floor,
    b"ceil": np.ceil,
}


def resize_of(reading: Reading, node: Node, source: Operand, result: Operand) -> Resize:
    """Work out both axes of a resize.

    Raises:
        Refused: the interpolation is cubic, or a mode or an axis isn't known here.
    """
    axes = [_axis(reading, node, name, source, result) for name in SPATIAL]
    if source.extents[0] != result.extents[0] or source.extents[3] != result.extents[3]:
        raise Refused("it resizes the batch or the channels; it resizes rows and columns alone here")
    return Resize(*axes)


def _axis(reading: Reading, node: Node, name: str, source: Operand, result: Operand) -> Axis:
    size, made = source.extents[SPATIAL[name]], result.extents[SPATIAL[name]]
    at = np.round(_coordinates(node, size, made, _scale(reading, node, name, size, made)), EXACT_DIGITS)
    mode = node.attributes.get("mode", b"nearest")
    if mode == b"nearest":
        default = b"floor" if node.op == "Upsample" else b"round_prefer_floor"
        first = np.clip(ROUNDED[node.attributes.get("nearest_mode", default)](at), 0, size - 1)
        part = np.zeros(made)
    elif mode == b"linear":
        at = np.clip(at, 0, size - 1)
        first, part = np.floor(at), at - np.floor(at)
    else:
        raise Refused(f"its mode is {mode.decode(errors='replace')}; it takes nearest or linear here")
    names = [f"{node.name}:{name}:{what}" for what in ("first", "part")]
    return Axis(reading.constant(names[0], first.astype(np.int32)), reading.constant(names[1], part.astype(np.float32)))


def _coordinates(node: Node, size: int, made: int, scale: float) -> Array:
    """Return the coordinate in the source of each place of the result, along one axis."""
    places = np.arange(made)
    mode = node.attributes.get("coordinate_transformation_mode", b"half_pixel")
    if node.op == "Upsample":
        mode = b"asymmetric"
    if mode == b"asymmetric":
        return places / scale
    if mode == b"align_corners":
        return places * ((size - 1) / (made - 1) if made > 1 else 0.0)
    if mode == b"half_pixel" or (mode == b"pytorch_half_pixel" and made > 1):
        return (places + 0.5) / scale - 0.5
    if mode == b"pytorch_half_pixel":
        return np.zeros(made)
    raise Refused(f"it computes coordinates by {mode.decode(errors='replace')}, which is not known here")


def _scale(reading: Reading, node: Node, name: str, size: int, made: int) -> float:
    """Return the scale of an axis: the model's if it states one, else the quotient of the sizes."""
    stated = node.input(1 if node.op == "Upsample" or len(node.inputs) == 2 else 2)
    if not stated or not reading.graph.is_constant(stated) or reading.graph.value(stated).size != 4:
        return made / size
    return float(reading.graph.value(stated)[2 if name == "rows" else 3])


Ends = tuple[str, str]
PLACES = {4: (0, 3, 1, 2), 3: (0, 3, 2), 2: (0, 3)}
"""For a model's tensor of 4, 3 or 2 axes, the place of each axis in N, H, W, C."""


def _quantize(reading: Reading, node: Node) -> None:
    result = reading.quantised(node.outputs[0], *_ends(node, 1), by=node)
    reading.add("convert", node, [reading.held(node.inputs[0])], result)


def _dequantize(reading: Reading, node: Node) -> None:
    """Add no step: the result is the same codes, with the scale and zero point that say what they stand for."""
    found = reading.scale_of(node.inputs[0], *_ends(node, 1), by=node)
    reading.hold(node.outputs[0], reading.held(node.inputs[0]).meaning(*found))


def _clamp(reading: Reading, node: Node) -> None:
    clamp = clamp_of(reading.graph, node)
    if clamp is None:
        raise Refused("its bounds are no constants; export it with constant bounds")
    source = reading.source(node.inputs[0])
    reading.add("convert", node, [source], reading.result(node.outputs[0], clamp))


def _same(reading: Reading, node: Node) -> None:
    reading.hold(node.outputs[0], reading.held(node.inputs[0]))


def _reshape(reading: Reading, node: Node) -> None:
    """Reuse the same memory in another shape, converted first if its elements are not in the model's order."""
    held, extents = reading.held(node.inputs[0]), extents_of(reading.shape(node.outputs[0]))
    if extents != held.extents:
        held = (held if held.is_flat else reading.convert(held, NCHW)).reshaped(extents)
    reading.hold(node.outputs[0], held)


def _elementwise(operator: str) -> Callable[[Reading, Node], None]:
    """Make the reader of an operator on two tensors, each as large as the result or broadcast."""

    def read(reading: Reading, node: Node) -> None:
        rank = len(reading.shape(node.outputs[0]))
        sources = [reading.source(name, rank) for name in node.inputs]
        _pair(reading, operator, node, sources, reading.result(node.outputs[0]))

    return read


def _quantised_elementwise(operator: str) -> Callable[[Reading, Node], None]:
    def read(reading: Reading, node: Node) -> None:
        sources = [reading.dequantised(*node.inputs[at : at + 3]) for at in (0, 3)]
        _pair(reading, operator, node, sources, reading.quantised(node.outputs[0], *_ends(node, 6)))

    return read


def _pair(reading: Reading, operator: str, node: Node, sources: Sequence[Operand], result: Operand) -> None:
    if len(sources) != 2:
        raise Refused(f"it has {len(sources)} inputs; it takes two here")
    for source in sources:
        if any(size not in (1, whole) for size, whole in zip(source.extents, result.extents, strict=True)):
            raise Refused(f"its input of NHWC {source.extents} does not broadcast to {result.extents}")
    reading.add(operator, node, sources, result)


def _max_pool(reading: Reading, node: Node) -> None:
    if any(node.outputs[1:]):
        raise Refused("it also returns the indices of its maxima; export it without them")
    _pool(reading, "max_pool", node, reading.source(node.inputs[0]), reading.result(node.outputs[0]))


def _average_pool(reading: Reading, node: Node) -> None:
    _pool(reading, "average_pool", node, reading.source(node.inputs[0]), reading.result(node.outputs[0]))


def _quantised_average_pool(reading: Reading, node: Node) -> None:
    _check_channels(node)
    result = reading.quantised(node.outputs[0], *_ends(node, 3))
    _pool(reading, "average_pool", node, reading.dequantised(*_three(node)), result, is_whole=True)


def _pool(
    reading: Reading, operator: str, node: Node, source: Operand, result: Operand, is_whole: bool = False
) -> None:
    """Add a pool; where `is_whole`, what ceil_mode cuts of its last windows counts as padding, as in ONNX Runtime's."""
    stated = window(node.attributes, len(reading.shape(node.inputs[0])) - 2)
    kernel, strides, dilations = stated["kernel_shape"], stated["strides"], stated["dilations"]
    if not len(kernel) == len(strides) == len(dilations) == 2:
        raise Refused(f"its window is {list(kernel)}; a pool has a window of rows and columns here")
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    counts = bool(stated.get("count_include_pad", 0))
    padding = sides(stated, source.extents, reach)
    starts = [(count - 1) * step for count, step in zip(result.extents[1:3], strides, strict=True)]
    if any(start >= size + first for start, size, first in zip(starts, source.extents[1:3], padding, strict=False)):
        raise Refused(
            "its last window starts behind the image: ONNX's shapes have that window, ONNX Runtime's don't; export it "
            "with ceil_mode = 0"
        )
    if is_whole and counts:
        placed = zip(starts, reach, source.extents[1:3], padding, strict=False)
        bottom, right = (start + far - size - first for start, far, size, first in placed)
        padding = (*padding[:2], max(padding[2], bottom), max(padding[3], right))
    how = Window(tuple(kernel), tuple(strides), tuple(dilations), padding, counts)
    reading.add(operator, node, [source], result, how)


def _global_average_pool(reading: Reading, node: Node) -> None:
    reading.add("global_average_pool", node, [reading.source(node.inputs[0])], reading.result(node.outputs[0]))


def _quantised_global_average_pool(reading: Reading, node: Node) -> None:
    _check_channels(node)
    result = reading.quantised(node.outputs[0], *_ends(node, 3))
    reading.add("global_average_pool", node, [reading.dequantised(*_three(node))], result)


def _concat(reading: Reading, node: Node) -> None:
    sources = [reading.source(name) for name in node.inputs]
    reading.add("concat", node, sources, reading.result(node.outputs[0]), _along(reading, node))


def _quantised_concat(reading: Reading, node: Node) -> None:
    sources = [reading.dequantised(*node.inputs[at : at + 3]) for at in range(2, len(node.inputs), 3)]
    result = reading.quantised(node.outputs[0], *_ends(node, 0))
    reading.add("concat", node, sources, result, _along(reading, node))


def _along(reading: Reading, node: Node) -> Along:
    rank, axis = len(reading.shape(node.outputs[0])), int(node.attributes["axis"])
    if rank not in PLACES:
        raise Refused(f"its output has {rank} axes; it takes tensors of 2 to 4 axes here")
    return Along(PLACES[rank][axis % rank])


def _depth_to_space(reading: Reading, node: Node) -> None:
    blocks = Blocks(int(node.attributes["blocksize"]), node.attributes.get("mode", b"DCR") == b"CRD")
    source = reading.source(node.inputs[0])
    reading.add("depth_to_space", node, [source], reading.result(node.outputs[0]), blocks)


def _resize(reading: Reading, node: Node) -> None:
    source, result = reading.source(node.inputs[0]), reading.result(node.outputs[0])
    reading.add("resize", node, [source], result, resize_of(reading, node, source, result))


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


def _matmul(reading: Reading, node: Node) -> None:
    source = _rows(reading.source(node.inputs[0]))
    reading.add("matmul", node, [source], reading.result(node.outputs[0]), of_gemm(reading, node, source))


def _quantised_matmul(reading: Reading, node: Node) -> None:
    source = _rows(reading.dequantised(*_three(node)))
    how = of_qlinear_matmul(reading, node)
    reading.add("matmul", node, [source], reading.quantised(node.outputs[0], *_ends(node, 6)), how)


def _quantised_gemm(reading: Reading, node: Node) -> None:
    source = _rows(reading.dequantised(*_three(node)))
    how, ends = of_qgemm(reading, node), _ends(node, 7)
    result = reading.quantised(node.outputs[0], *ends) if ends[0] else reading.result(node.outputs[0])
    reading.add("matmul", node, [source], result, how)


def _rows(source: Operand) -> Operand:
    if prod(source.extents[1:3]) != 1:
        raise Refused(f"its input of NHWC {source.extents} is no matrix")
    return source


def _conv_transpose(reading: Reading, node: Node) -> None:
    if any(name in node.attributes for name in ("output_shape", "auto_pad")):
        raise Refused("it sets output_shape or auto_pad; export it with pads")
    source = reading.source(node.inputs[0])
    how: Filters = of_conv_transpose(reading, node, source)
    strides, dilations = node.attributes.get("strides", [1, 1]), node.attributes.get("dilations", [1, 1])
    padding = tuple(node.attributes.get("pads", (0, 0, 0, 0)))
    if len(padding) != 4 or min(padding) < 0:
        raise Refused(f"its padding is {list(padding)}; it takes four numbers of at least 0")
    slides = Window(how.shape[1:3], tuple(strides), tuple(dilations), padding)
    reading.add("conv_transpose", node, [source], reading.result(node.outputs[0]), how, slides)


def _ends(node: Node, at: int) -> Ends:
    """Return the names of a scale and a zero point among a node's inputs."""
    return node.input(at), node.input(at + 1)


def _three(node: Node) -> tuple[str, str, str]:
    """Return the names of a node's first tensor, its scale and its zero point."""
    return node.input(0), node.input(1), node.input(2)


def _check_channels(node: Node) -> None:
    if node.attributes.get("channels_last", 0):
        raise Refused("it sets channels_last; export it in NCHW")


TABLE: Table = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "Relu": _clamp,
    "Clip": _clamp,
    "Identity": _same,
    "Dropout": _same,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Add": _elementwise("add"),
    "Mul": _elementwise("multiply"),
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Resize": _resize,
    "Upsample": _resize,
    "MatMul": _matmul,
    "Gemm": _matmul,
    "ConvTranspose": _conv_transpose,
    f"{DOMAIN}.QLinearAdd": _quantised_elementwise("add"),
    f"{DOMAIN}.QLinearMul": _quantised_elementwise("multiply"),
    f"{DOMAIN}.QLinearAveragePool": _quantised_average_pool,
    f"{DOMAIN}.QLinearGlobalAveragePool": _quantised_global_average_pool,
    f"{DOMAIN}.QLinearConcat": _quantised_concat,
    f"{DOMAIN}.QGemm": _quantised_gemm,
    "QLinearMatMul": _quantised_matmul,
}
"""All operators that a network may have between its chains, each with the function that makes it a step."""
