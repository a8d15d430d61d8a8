"""How each operator of ONNX becomes a step of the program: rows and columns of Resize, filters of matrix products."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hexconv.model.affine import clamp_of
from hexconv.model.contributed import DOMAIN
from hexconv.model.geometry import sides, window
from hexconv.model.graph import Node
from hexconv.model.integer import dequantised_bias
from hexconv.model.pointwise import ACTIVATIONS, SMOOTH, computed
from hexconv.model.quantised import quantised_filter
from hexconv.model.refused import Refused
from hexconv.network.program import Reading, Table
from hexconv.network.program_steps import (
    NCHW,
    NHWC,
    Along,
    Axis,
    Filters,
    Map,
    Operand,
    Powers,
    Resize,
    View,
    Window,
    extents_of,
    is_codes,
)
from hexconv.network.views import Placed, loops
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
    names = [f"{node.outputs[0]}:{name}:{what}" for what in ("first", "part")]
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
CHANNELS = 3
"""The index of channels in N, H, W, C."""
PLACES = {4: (0, 3, 1, 2), 3: (0, 3, 2), 2: (0, 3)}
"""For a model's tensor of 4, 3 or 2 axes, the place of each axis in N, H, W, C."""


def _quantize(reading: Reading, node: Node) -> None:
    scale, zero_point = reading.scale_of(node.outputs[0], *_ends(node, 1), by=node)
    source = reading.operand(node.inputs[0])
    if (source.dtype, source.scale, source.zero_point) == (
        reading.graph.type_of(node.outputs[0]).dtype,
        scale,
        zero_point,
    ):
        reading.meaning(node.inputs[0], node.outputs[0], 1.0, 0)
        return
    result = reading.quantised(node.outputs[0], *_ends(node, 1), by=node)
    reading.add("convert", node, [reading.held(node.inputs[0])], result)


def _dequantize(reading: Reading, node: Node) -> None:
    """Add no step: the result is the same codes, with the scale and zero point that say what they stand for."""
    reading.meaning(node.inputs[0], node.outputs[0], *reading.scale_of(node.inputs[0], *_ends(node, 1), by=node))


def _clamp(reading: Reading, node: Node) -> None:
    clamp = clamp_of(reading.graph, node)
    if clamp is None:
        raise Refused("its bounds are no constants; export it with constant bounds")
    source = reading.source(node.inputs[0])
    reading.add("convert", node, [source], reading.result(node.outputs[0], clamp))


def _same(reading: Reading, node: Node) -> None:
    source = reading.operand(node.inputs[0])
    reading.meaning(node.inputs[0], node.outputs[0], source.scale, source.zero_point)


def _reshape(reading: Reading, node: Node) -> None:
    """Reuse the same memory in another shape, or copy elements to where the new shape has them."""
    source, shape = reading.placed(node.inputs[0]), reading.shape(node.outputs[0])
    if placed := source.reshaped(shape):
        reading.place(node.outputs[0], placed)
        return
    for layout in (NHWC, NCHW):  # in which the old axes are parts of the new ones; in NCHW they all are
        operand = source.operand
        made = Operand(node.outputs[0], extents_of(shape), operand.dtype, layout)
        if written := Placed.of(made, shape).reshaped(source.places.shape):
            reading.copy(node.name, operand.as_numbers, made, View(loops(source, written), source.first))
            reading.hold(node.outputs[0], made.meaning(operand.scale, operand.zero_point))
            return


def _transpose(reading: Reading, node: Node) -> None:
    source = reading.placed(node.inputs[0])
    axes = node.attributes.get("perm") or range(source.places.ndim)[::-1]
    reading.place(node.outputs[0], source.moved(source.places.transpose(list(axes))))


def _slice(reading: Reading, node: Node) -> None:
    source = reading.placed(node.inputs[0])
    starts, ends = (_numbers(reading, node, at, name) for at, name in ((1, "starts"), (2, "ends")))
    axes = _numbers(reading, node, 3, "axes") or list(range(len(starts)))
    cut = [slice(None)] * source.places.ndim
    for start, end, axis, step in zip(
        starts, ends, axes, _numbers(reading, node, 4, "") or [1] * len(starts), strict=True
    ):
        size = source.places.shape[axis]
        first = max(start + size, 0) if start < 0 else start
        last = end + size if end < 0 else end
        cut[axis] = slice(first, None if step < 0 and last < 0 else max(last, 0), step)
    reading.place(node.outputs[0], source.moved(source.places[tuple(cut)]))


def _numbers(reading: Reading, node: Node, at: int, attribute: str) -> list[int]:
    """Read whole numbers: a constant input, or an attribute in old models; empty where there is neither.

    Raises:
        Refused: the input is no constant.
    """
    name = node.input(at)
    if not name:
        return [int(value) for value in node.attributes.get(attribute, ())]
    if not reading.graph.is_constant(name):
        raise Refused(f"its input {name} depends on the model's input")
    return [int(value) for value in reading.graph.value(name).reshape(-1)]


def _split(reading: Reading, node: Node) -> None:
    source, axis = reading.placed(node.inputs[0]), int(node.attributes.get("axis", 0))
    first = 0
    for name in node.outputs:
        if not name:
            raise Refused("one of its outputs has no name")
        size = reading.shape(name)[axis]
        cut = [slice(None)] * source.places.ndim
        cut[axis] = slice(first, first + size)
        reading.place(name, source.moved(source.places[tuple(cut)]))
        first += size


def _gather(reading: Reading, node: Node) -> None:
    """Copy slices along an axis by constant indices; neighbours in even steps are taken together."""
    source, axis = reading.placed(node.inputs[0]), int(node.attributes.get("axis", 0))
    name = node.input(1)
    if not reading.graph.is_constant(name):
        raise Refused(f"its indices {name} depend on the model's input")
    indices = reading.graph.value(name)
    axis = axis % source.places.ndim
    size, stride = source.places.shape[axis], source.places.strides[axis]
    whole = indices.astype(np.int64).reshape(-1)
    if whole.size == 0 or whole.min() < -size or whole.max() >= size:
        raise Refused(f"its indices lie outside of {size} elements")
    whole = np.where(whole < 0, whole + size, whole)
    shape = reading.shape(node.outputs[0])
    operand = source.operand
    made = Operand(node.outputs[0], extents_of(shape), operand.dtype)
    flat = (*source.places.shape[:axis], whole.size, *source.places.shape[axis + 1 :])
    written = Placed.of(made, shape).reshaped(flat)
    if written is None:
        raise Refused(f"its indices have the shape {list(indices.shape)}; it takes one axis of them here")
    along = np.lib.stride_tricks.as_strided(
        source.places, flat, [0 if at == axis else step for at, step in enumerate(source.places.strides)]
    )
    table = {axis: reading.constant(f"{node.outputs[0]}:places", (whole * stride).astype(np.int32))}
    how = View(loops(source.moved(along), written, table), source.first)
    reading.copy(node.name, operand.as_numbers, made, how)
    reading.hold(node.outputs[0], made.meaning(operand.scale, operand.zero_point))


def _pad(reading: Reading, node: Node) -> None:
    if node.attributes.get("mode", b"constant") != b"constant":
        raise Refused(f"its mode is {node.attributes['mode'].decode(errors='replace')}; it pads with a constant here")
    source = reading.placed(node.inputs[0])
    counts, rank = _numbers(reading, node, 1, "pads"), source.places.ndim
    axes = [axis % rank for axis in _numbers(reading, node, 3, "") or range(rank)]
    before = dict(zip(axes, counts, strict=False))
    if min(counts, default=0) < 0:
        raise Refused("it takes elements off; export it with padding of at least 0")
    value = node.input(2)
    if value and not reading.graph.is_constant(value):
        raise Refused(f"its value {value} depends on the model's input")
    fill = float(reading.graph.value(value).reshape(-1)[0]) if value else float(node.attributes.get("value", 0.0))
    result = reading.result(node.outputs[0])
    inside = tuple(slice(before.get(at, 0), before.get(at, 0) + size) for at, size in enumerate(source.places.shape))
    written = Placed.of(result, reading.shape(node.outputs[0]))
    written = written.moved(written.places[inside])
    how = View(loops(source, written), source.first, written.first, fill)
    reading.copy(node.name, source.operand, result, how)


def _space_to_depth(reading: Reading, node: Node) -> None:
    source, size = _in_nhwc(reading, node), int(node.attributes["blocksize"])
    batch, channels, rows, columns = source.places.shape
    parted = source.reshaped((batch, channels, rows // size, size, columns // size, size))
    if parted is None:
        raise Refused("its input has no axes of rows and columns")
    moved = parted.places.transpose(0, 3, 5, 1, 2, 4)
    _joined(reading, node, parted.moved(moved))


def _in_nhwc(reading: Reading, node: Node) -> Placed:
    """Place an input in NHWC, where blocks of pixels have their channels side by side."""
    held = reading.dense(reading.held(node.inputs[0]))
    return Placed.of(held, reading.shape(node.inputs[0]))


def _depth_to_space(reading: Reading, node: Node) -> None:
    source, size = _in_nhwc(reading, node), int(node.attributes["blocksize"])
    batch, channels, rows, columns = source.places.shape
    by_channels = node.attributes.get("mode", b"DCR") == b"CRD"
    parts = (channels // size**2, size, size) if by_channels else (size, size, channels // size**2)
    parted = source.reshaped((batch, *parts, rows, columns))
    if parted is None:
        raise Refused("its input has no axis of channels")
    order = (0, 1, 4, 2, 5, 3) if by_channels else (0, 3, 4, 1, 5, 2)
    _joined(reading, node, parted.moved(parted.places.transpose(order)))


def _joined(reading: Reading, node: Node, source: Placed) -> None:
    """Copy elements to the result, whose axes are joined of the source's."""
    result = reading.result(node.outputs[0])
    written = Placed.of(result, reading.shape(node.outputs[0])).reshaped(source.places.shape)
    if written is None:
        raise Refused(f"its result of NHWC {list(result.extents)} has no such axes")
    reading.copy(node.name, source.operand, result, View(loops(source, written), source.first))


def _function(reading: Reading, node: Node) -> None:
    """Look up a function of one number, of each code that there is; its other inputs are constants."""
    moving = next((name for name in node.inputs if name and not reading.graph.is_constant(name)), node.inputs[0])
    source = reading.held(moving)
    if not is_codes(source):
        raise Refused(f"it reads {source.dtype}; it takes codes of 8 bits here: put a QuantizeLinear before it")
    source = reading.dense(source)
    codes = np.arange(256, dtype=np.uint8).view(source.dtype).astype(np.float64)
    reals = (codes - source.zero_point) * np.float64(np.float32(source.scale))
    made = computed(reading.graph, node, {moving: reals.astype(np.float32).astype(np.float64)})
    values = made[node.outputs[0]].astype(np.float32)
    if values.size != 256:
        raise Refused("its other inputs are not single numbers; it is a function of one number here")
    name = reading.constant(f"{node.outputs[0]}:function", values.reshape(1, 256))
    reading.add("map", node, [source], reading.result(node.outputs[0]), Map(name, 1))


def _normalised(reading: Reading, node: Node) -> None:
    """Look up a BatchNormalization, for each channel of each code that there is."""
    source = reading.dense(reading.held(node.inputs[0]))
    if not is_codes(source):
        raise Refused(f"it reads {source.dtype}; it takes codes of 8 bits here: put a QuantizeLinear before it")
    if not all(reading.graph.is_constant(name) for name in node.inputs[1:5]):
        raise Refused("its scale, bias, mean or variance depend on the model's input")
    scale, bias, mean, variance = (reading.graph.value(name).astype(np.float64) for name in node.inputs[1:5])
    factor = scale / np.sqrt(variance + float(node.attributes.get("epsilon", 1e-5)))
    codes = np.arange(256, dtype=np.uint8).view(source.dtype).astype(np.float64)
    reals = (codes - source.zero_point) * np.float64(np.float32(source.scale))
    values = ((reals - mean[:, None]) * factor[:, None] + bias[:, None]).astype(np.float32)
    if values.shape != (source.extents[3], 256):
        raise Refused(f"it has {len(mean)} means for {source.extents[3]} channels")
    name = reading.constant(f"{node.outputs[0]}:function", values)
    reading.add("map", node, [source], reading.result(node.outputs[0]), Map(name, len(values)))


def _softmax(reading: Reading, node: Node) -> None:
    rank = len(reading.shape(node.outputs[0]))
    source = reading.dense(reading.held(node.inputs[0]))
    if not is_codes(source):
        raise Refused(f"it reads {source.dtype}; it takes codes of 8 bits here: put a QuantizeLinear before it")
    if rank not in PLACES:
        raise Refused(f"its input has {rank} axes; it takes tensors of 2 to 4 axes here")
    axis = int(node.attributes.get("axis", -1)) % rank
    apart = np.arange(256, dtype=np.float64) * np.float64(np.float32(source.scale))
    how = Powers(reading.constant(f"{node.outputs[0]}:powers", np.exp(-apart).astype(np.float32)), PLACES[rank][axis])
    result = reading.result(node.outputs[0])
    if how.axis == CHANNELS and not source.is_one_order:  # many lines at once: their elements lie side by side
        source, result = reading.convert(source, NCHW), replace(result, layout=NCHW)
        reading.hold(result.buffer, result.as_numbers)
    reading.add("softmax", node, [source], result, how)


def _reduce_mean(reading: Reading, node: Node) -> None:
    shape = reading.shape(node.inputs[0])
    axes = sorted(axis % len(shape) for axis in _numbers(reading, node, 1, "axes") or range(len(shape)))
    if len(shape) != 4 or axes != [2, 3]:
        raise Refused(f"it averages axes {axes} of {len(shape)}; it averages rows and columns of NCHW here")
    reading.add("global_average_pool", node, [reading.source(node.inputs[0])], reading.result(node.outputs[0]))


def _elementwise(operator: str) -> Callable[[Reading, Node], None]:
    """Make the reader of an operator on two tensors, each as large as the result or broadcast."""

    def read(reading: Reading, node: Node) -> None:
        rank = len(reading.shape(node.outputs[0]))
        sources = [reading.source(name, rank) for name in node.inputs]
        _pair(reading, operator, node, sources, reading.result(node.outputs[0]))

    return read


def _quantised_elementwise(operator: str) -> Callable[[Reading, Node], None]:
    def read(reading: Reading, node: Node) -> None:
        rank = len(reading.shape(node.outputs[0]))
        sources = [reading.dequantised(*_three(node, at), rank=rank) for at in (0, 3)]
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
    if how.sees_nothing(source.extents, result.extents):
        raise Refused("one of its windows lies in its padding alone, of which ONNX has no value; export it with less")
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
    sources = [reading.dequantised(*_three(node, at)) for at in range(2, len(node.inputs), 3)]
    result = reading.quantised(node.outputs[0], *_ends(node, 0))
    reading.add("concat", node, sources, result, _along(reading, node))


def _along(reading: Reading, node: Node) -> Along:
    rank, axis = len(reading.shape(node.outputs[0])), int(node.attributes["axis"])
    if rank not in PLACES:
        raise Refused(f"its output has {rank} axes; it takes tensors of 2 to 4 axes here")
    return Along(PLACES[rank][axis % rank])


def _resize(reading: Reading, node: Node) -> None:
    source, result = reading.source(node.inputs[0]), reading.result(node.outputs[0])
    how = resize_of(reading, node, source, result)
    parts = [reading.constants[axis.part] for axis in (how.rows, how.columns)]
    if any(np.any(part) for part in parts) or source.layout != NHWC:
        reading.add("resize", node, [source], result, how)
        return
    firsts = [reading.constants.pop(axis.first) for axis in (how.rows, how.columns)]
    for axis in (how.rows, how.columns):
        del reading.constants[axis.part]
    batch, rows, columns, channels = result.extents
    read, written = (
        Placed.of(source, (batch, channels, *source.extents[1:3])),
        Placed.of(result, (batch, channels, rows, columns)),
    )
    sizes, steps, tables = [batch, channels], [*read.places.strides[:2]], {}
    for axis, first, step in zip((how.rows, how.columns), firsts, read.places.strides[2:], strict=True):
        if (times := _times(first)) is None:  # all places come out of a table
            tables[len(sizes)] = reading.constant(f"{axis.first}:places", (first * step).astype(np.int32))
            sizes, steps = [*sizes, len(first)], [*steps, 0]
        else:
            sizes, steps = [*sizes, len(first) // times, times], [*steps, step, 0]
    read = read.moved(np.lib.stride_tricks.as_strided(read.places, sizes, steps))
    repeated = written.moved(written.places.reshape(sizes, copy=False))
    reading.copy(node.name, source, result, View(loops(read, repeated, tables)))


def _times(first: Array) -> int | None:
    """How many times each element is taken in a row, from the first one on; None where that differs.

    >>> _times(np.array([0, 0, 1, 1])), _times(np.array([0, 1, 1, 2]))
    (2, None)
    """
    times = int(np.count_nonzero(first == first[0]))
    return times if np.array_equal(first, np.arange(len(first)) // times) and len(first) % times == 0 else None


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
    source = reading.source(node.inputs[0])
    result = reading.result(node.outputs[0])
    how: Filters = of_conv_transpose(reading, node, source)
    strides, dilations = node.attributes.get("strides", [1, 1]), node.attributes.get("dilations", [1, 1])
    padding = tuple(node.attributes.get("pads", (0, 0, 0, 0)))
    if "output_shape" in node.attributes or node.attributes.get("auto_pad", b"NOTSET") in (
        b"SAME_UPPER",
        b"SAME_LOWER",
    ):
        more = node.attributes.get("output_padding", [0, 0])
        sides = zip(source.extents[1:3], result.extents[1:3], how.shape[1:3], strides, dilations, more, strict=True)
        over = [
            max(stride * (size - 1) + added + (taps - 1) * apart + 1 - made, 0)
            for size, made, taps, stride, apart, added in sides
        ]
        is_upper = node.attributes.get("auto_pad") == b"SAME_UPPER"
        first = [each // 2 if is_upper else each - each // 2 for each in over]
        padding = (*first, *(each - begin for each, begin in zip(over, first, strict=True)))
    if len(padding) != 4 or min(padding) < 0:
        raise Refused(f"its padding is {list(padding)}; it takes four numbers of at least 0")
    slides = Window(how.shape[1:3], tuple(strides), tuple(dilations), padding)
    reading.add("conv_transpose", node, [source], result, how, slides)


def _ends(node: Node, at: int) -> Ends:
    """Return the names of a scale and a zero point among a node's inputs."""
    return node.input(at), node.input(at + 1)


def _three(node: Node, at: int = 0) -> tuple[str, str, str]:
    """Return the names of a tensor among a node's inputs, its scale and its zero point."""
    return node.input(at), node.input(at + 1), node.input(at + 2)


def _check_channels(node: Node) -> None:
    if node.attributes.get("channels_last", 0):
        raise Refused("it sets channels_last; export it in NCHW")


FUNCTIONS = (*ACTIVATIONS, *SMOOTH, "Abs", "Ceil", "Floor", "Neg", "Reciprocal", "Round", "Pow", "Max", "Min")
"""Operators that are a function of one number where their other inputs are single constants."""
TABLE: Table = {
    **dict.fromkeys(FUNCTIONS, _function),
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
    "Sub": _elementwise("subtract"),
    "Div": _elementwise("divide"),
    "Sum": _elementwise("add"),
    "Transpose": _transpose,
    "Slice": _slice,
    "Split": _split,
    "Gather": _gather,
    "Pad": _pad,
    "SpaceToDepth": _space_to_depth,
    "BatchNormalization": _normalised,
    "Softmax": _softmax,
    "ReduceMean": _reduce_mean,
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
