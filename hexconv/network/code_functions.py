"""Operators on one number: quantisers, clamps, tables of functions, normalisation, softmax."""

from collections.abc import Sequence
from dataclasses import replace
from math import frexp, prod

import numpy as np

from hexconv.model.affine import clamp_of, is_per_channel
from hexconv.model.constants import SINCE_ONE_AXIS
from hexconv.model.contributed import DOMAIN, STANDARD
from hexconv.model.graph import Node
from hexconv.model.pointwise import ACTIVATIONS, SMOOTH, computed
from hexconv.model.refused import Refused
from hexconv.network.elements import Operator, Stored, real_values, stored_as
from hexconv.network.integer_form import (
    CHANNELS,
    MOVED,
    QUANTISED,
    SOFTMAX,
    VECTOR_BYTES,
    every_byte,
    gathered,
    grid,
    header,
    laid_table,
    numbers_of,
    reals_form,
    scaled_form,
    spread,
    table_form,
    turned_bit,
    zero_of,
)
from hexconv.network.program import (
    CHANNEL_AXIS,
    PLACES,
    Reading,
    Table,
    scale_names,
    three,
)
from hexconv.network.program_steps import (
    NCHW,
    Constants,
    Map,
    Operand,
    Operation,
    Powers,
    extents_of,
    is_codes,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, SOFTEST


def _read_quantize(reading: Reading, node: Node) -> None:
    scale, zero_point = reading.scale_of(node.outputs[0], *scale_names(node, 1), by=node)
    source = reading.operand(node.inputs[0])
    if (source.dtype, source.scale, source.zero_point) == (
        reading.graph.type_of(node.outputs[0]).dtype,
        scale,
        zero_point,
    ):
        reading.meaning(node.inputs[0], node.outputs[0], 1.0, 0)
        return
    result = reading.quantised(node.outputs[0], *scale_names(node, 1), by=node)
    reading.add("convert", node, [reading.held(node.inputs[0])], result)


def _read_dequantize(reading: Reading, node: Node) -> None:
    """Add no step: the result is the same codes, with the scale and zero point that say what they stand for."""
    reading.meaning(node.inputs[0], node.outputs[0], *reading.scale_of(node.inputs[0], *scale_names(node, 1), by=node))


def _read_clamp(reading: Reading, node: Node) -> None:
    clamp = clamp_of(reading.graph, node)
    if clamp is None:
        raise Refused("its bounds are no constants; export it with constant bounds")
    source = reading.source(node.inputs[0])
    reading.add("convert", node, [source], reading.result(node.outputs[0], clamp))


def _read_same(reading: Reading, node: Node) -> None:
    source = reading.operand(node.inputs[0])
    reading.meaning(node.inputs[0], node.outputs[0], source.scale, source.zero_point)


def _read_dropout(reading: Reading, node: Node) -> None:
    training = node.input(2)
    if training and not (reading.graph.is_constant(training) and not reading.graph.value(training).any()):
        raise Refused("it is in training mode; export it for inference")
    _read_same(reading, node)


def _read_function(reading: Reading, node: Node) -> None:
    """Look up a function of one number, of each code that there is, of each channel; other inputs are constants."""
    graph = reading.graph
    moving = list(dict.fromkeys(name for name in node.inputs if name and not graph.is_constant(name)))
    if len(moving) > 1:
        raise Refused(f"it reads {' and '.join(moving)}; it takes one tensor here, and constants beside it")
    tensor = moving[0] if moving else node.inputs[0]
    _add_function(reading, node, tensor, reading.held(tensor), reading.result(node.outputs[0]))


def _read_quantised_function(reading: Reading, node: Node) -> None:
    """Look up the function of ONNX's own that one of ONNX Runtime's has inside."""
    inside = replace(node, op=STANDARD[node.op.removeprefix(f"{DOMAIN}.")][0], inputs=node.inputs[:1])
    result = reading.quantised(node.outputs[0], *scale_names(node, 3), by=node)
    _add_function(reading, inside, node.inputs[0], reading.dequantised(*three(node)), result)


def _add_function(reading: Reading, node: Node, tensor: str, source: Operand, result: Operand) -> None:
    """Add a function of one number.

    Args:
        reading: the reader.
        node: a node of ONNX's own.
        tensor: its input that is no constant.
        source: the codes of this input.
        result: its output.

    Raises:
        Refused: it reads no codes, or constants that differ within a channel.
    """
    source, apart = _codes_of(reading, source), _channels_apart(reading, node, tensor)
    reals = _reals_of(source).astype(np.float32).astype(np.float64)
    of_channels = np.multiply.outer(reals, np.ones(apart))
    made = computed(reading.graph, node, {tensor: of_channels})[node.outputs[0]]
    values = made.astype(np.float32).reshape(CODES, -1).T
    name = reading.constant(f"{node.outputs[0]}:function", values)
    reading.add("map", node, [source], result, Map(name, len(values)))


def _channels_apart(reading: Reading, node: Node, tensor: str) -> tuple[int, ...]:
    """Sizes of all axes but the first for which a function differs: of the channels alone, or none.

    Raises:
        Refused: its constants differ within a channel.
    """
    graph, shape = reading.graph, reading.shape(tensor)
    constants = [name for name in node.inputs if name and name != tensor]
    if all(graph.value(name).size == 1 for name in constants):
        return ()
    if len(shape) in PLACES and all(is_per_channel(graph, name, tensor, shape[1]) for name in constants):
        return (shape[1], *[1] * (len(shape) - 2))
    told = " and ".join(f"{name} {list(graph.value(name).shape)}" for name in constants)
    raise Refused(f"it reads {told} beside a tensor of {list(shape)}; it takes one number, or one a channel, here")


def _codes_of(reading: Reading, source: Operand) -> Operand:
    """Return codes that an operator reads, one by one.

    Raises:
        Refused: it reads no codes.
    """
    if not is_codes(source):
        raise Refused(f"it reads {source.dtype}; it takes codes of 8 bits here: put a QuantizeLinear before it")
    return reading.dense(source)


def _reals_of(source: Operand) -> Array:
    """Return the numbers that all codes stand for, from code 0 of uint8 on."""
    codes = np.arange(CODES, dtype=np.uint8).view(source.dtype).astype(np.float64)
    return (codes - source.zero_point) * np.float64(np.float32(source.scale))


def _read_normalised(reading: Reading, node: Node) -> None:
    """Look up a BatchNormalization, for each channel of each code that there is."""
    source = _codes_of(reading, reading.held(node.inputs[0]))
    if any(node.outputs[1:]) or node.attributes.get("training_mode", 0):
        raise Refused("it is in training mode; export it for inference")
    if not node.attributes.get("spatial", 1):
        raise Refused("it sets spatial = 0; it has one mean a channel here")
    if not all(reading.graph.is_constant(name) for name in node.inputs[1:5]):
        raise Refused("its scale, bias, mean or variance depend on the model's input")
    scale, bias, mean, variance = (reading.graph.value(name).astype(np.float64) for name in node.inputs[1:5])
    factor = scale / np.sqrt(variance + float(node.attributes.get("epsilon", 1e-5)))
    values = ((_reals_of(source) - mean[:, None]) * factor[:, None] + bias[:, None]).astype(np.float32)
    if values.shape != (source.extents[3], 256):
        raise Refused(f"it has {len(mean)} means for {source.extents[3]} channels")
    name = reading.constant(f"{node.outputs[0]}:function", values)
    reading.add("map", node, [source], reading.result(node.outputs[0]), Map(name, len(values)))


def _read_softmax(reading: Reading, node: Node) -> None:
    source, opset = reading.held(node.inputs[0]), reading.graph.constants.opset
    axis = int(node.attributes.get("axis", -1 if opset >= SINCE_ONE_AXIS else 1))
    axes = _axes_of_softmax(reading.shape(node.inputs[0]), axis, opset)
    _add_softmax(reading, node, source, reading.result(node.outputs[0]), axes)


def _read_quantised_softmax(reading: Reading, node: Node) -> None:
    """Add ONNX Runtime's own, which says by which opset's Softmax it goes, from the last axis on by default.

    ONNX Runtime multiplies shares by the reciprocal of its scale without what that has behind the point.
    """
    opset = int(node.attributes.get("opset", reading.graph.constants.opset))
    axes = _axes_of_softmax(reading.shape(node.inputs[0]), int(node.attributes.get("axis", -1)), opset)
    result = reading.quantised(node.outputs[0], *scale_names(node, 3), by=node)
    steps = np.floor(np.float32(1) / np.float32(result.scale))
    if steps < 1:
        raise Refused(f"the scale of its result is {result.scale:g}; it takes at most 1, as no share is more")
    _add_softmax(reading, node, reading.dequantised(*three(node)), replace(result, scale=float(1 / steps)), axes)


def _axes_of_softmax(shape: tuple[int, ...], axis: int, opset: int) -> tuple[int, ...]:
    """The axes over which a Softmax of some opset is: the one that it names, or all from it on.

    Raises:
        Refused: its input has another number of axes than operators take.
    """
    rank = len(shape)
    if rank not in PLACES:
        raise Refused(f"its input has {rank} axes; it takes tensors of 2 to 4 axes here")
    first = axis % rank
    if opset >= SINCE_ONE_AXIS:
        return (first,)
    return tuple(at for at in range(first, rank) if shape[at] > 1) or (first,)


def _add_softmax(reading: Reading, node: Node, source: Operand, result: Operand, axes: tuple[int, ...]) -> None:
    """Add a softmax over some of the last axes; one over several is over the columns of a matrix.

    Raises:
        Refused: it reads no codes.
    """
    if not is_codes(source):
        raise Refused(f"it reads {source.dtype}; it takes codes of 8 bits here: put a QuantizeLinear before it")
    shape = reading.shape(node.inputs[0])
    place = PLACES[len(shape)][axes[0]] if len(axes) == 1 else CHANNEL_AXIS
    apart = np.arange(256, dtype=np.float64) * np.float64(np.float32(source.scale))
    how = Powers(reading.constant(f"{node.outputs[0]}:powers", np.exp(-apart).astype(np.float32)), place)
    source = source if len(axes) > 1 else reading.dense(source)
    # In NCHW the elements of a matrix's row, and those of many lines of channels at once, lie side by side.
    if len(axes) > 1 or (place == CHANNEL_AXIS and not source.is_one_order):
        source, result = reading.convert(source, NCHW), replace(result, layout=NCHW)
        reading.hold(result.buffer, result.as_numbers)
    if len(axes) > 1:
        matrix = extents_of((prod(shape[: axes[0]]), prod(shape[axes[0] :])))
        source, result = source.reshaped(matrix), result.reshaped(matrix)
    reading.add("softmax", node, [source], result, how)


FUNCTIONS = (*ACTIVATIONS, *SMOOTH, "Abs", "Ceil", "Floor", "Neg", "Reciprocal", "Round", "Pow", "Max", "Min")
"""Operators that are a function of one number where their other inputs are single constants."""


def _converted(step: Operation, seen: list[Array], _: Stored) -> Array:
    return real_values(seen[0], step.sources[0])


def _mapped(step: Operation, seen: list[Array], constants: Stored) -> Array:
    how = step.told(Map)
    reals, codes = constants[how.reals].reshape(how.count, -1), seen[0].view(np.uint8)
    return reals[np.arange(codes.shape[-1]) if how.count > 1 else 0, codes]


def _shares(step: Operation, seen: list[Array], constants: Stored) -> Array:
    how, codes = step.told(Powers), seen[0].astype(np.int64)
    powers = constants[how.powers][codes.max(how.axis, keepdims=True) - codes].astype(np.float64)
    return (powers / np.add.accumulate(powers, how.axis).take([-1], how.axis)).astype(np.float32)


def convert_form(step: Operation, _: Constants) -> bytes | None:
    """The table, the move, or the quantiser that a conversion is."""
    [source], result = step.sources, step.result
    lies_alike = source.layout == result.layout or source.is_one_order
    if is_codes(source) and not lies_alike:
        return _moved(source, result)
    if not lies_alike:
        return None
    if is_codes(source) and result.dtype != "int32":
        at, to = (grid(operand, (1, 1, 1, CODES), name) for operand, name in ((source, "source"), (result, "result")))
        made = _code_of(at, to, every_byte(source)).reshape(-1)
        if is_codes(result):
            return table_form(made, result)
        return reals_form(made)
    return _quantised(step) if source.is_float and is_codes(result) else None


def _quantised(step: Operation) -> bytes:
    """The form of codes of floats: a reciprocal of 31 bits, and the exponent from which on codes are the last ones."""
    [source], result = step.sources, step.result
    at, to = (grid(operand, (1, 1, 1, 2), name) for operand, name in ((source, "source"), (result, "result")))
    ends = np.array([-1, 1], np.float32).reshape(at.extents) * np.float32(result.scale) * SOFTEST
    least, most = numbers_of(_code_of(at, to, ends).reshape(-1), result)
    scale = float(np.float32(result.scale))
    part, exponent = frexp(1 / scale)  # 1 / scale is part * 2**exponent, part from 1/2 to 1
    bits = 31 - exponent
    reciprocal = min(round(part * 2**31), 2**31 - 1)
    steps, most_exponent = (
        part * 2.0**9,
        127 + 9 - exponent,
    )  # a number of this exponent is so many steps, or up to twice
    if steps < 257:
        most_exponent += 1
    offset = ((zero_of(result)) << 20) + (1 << 19)
    numbers = (QUANTISED, reciprocal, 106 + bits, most_exponent, offset, turned_bit(result), least, most)
    return header(*map(int, numbers))


def _moved(source: Operand, result: Operand) -> bytes | None:
    same = (source.dtype, source.scale, source.zero_point) == (result.dtype, result.scale, result.zero_point)
    if not same or result.low > -np.inf or result.high < np.inf:
        return None
    pixels, channels = source.extents[1] * source.extents[2], source.extents[3]
    rows, columns = (pixels, channels) if result.layout == "NCHW" else (channels, pixels)
    is_parted = columns < VECTOR_BYTES <= rows
    count = columns if is_parted else min(rows, VECTOR_BYTES)
    power = 1 << (count - 1).bit_length()
    return header(MOVED, power << 8 * is_parted) + spread(count).tobytes() + gathered(count).tobytes()


def codes_by_byte(source: Operand, result: Operand) -> Array:
    """The code of a result for each code of a source, as bytes in their order."""
    at, to = (grid(operand, (1, 1, 1, CODES), name) for operand, name in ((source, "source"), (result, "result")))
    return _code_of(at, to, every_byte(source)).reshape(-1).view(np.uint8)


def _map_form(step: Operation, constants: Constants) -> bytes | None:
    """The table of a function of one number, or multipliers of channels for one that is straight."""
    [source], result, how = step.sources, step.result, step.told(Map)
    if not is_codes(source) or not is_codes(result):
        return None
    reals = constants[how.reals].reshape(how.count, CODES)
    codes = stored_as(reals, replace(result, extents=(1, 1, 1, CODES)))
    if how.count == 1:
        return table_form(codes[0], result)
    ordered = np.arange(CODES) ^ turned_bit(source)
    slopes = (reals[:, ordered[-1]].astype(np.float64) - reals[:, ordered[0]]) / (CODES - 1)
    numbers = numbers_of(np.ascontiguousarray(codes[:, ordered]), result)
    return scaled_form(CHANNELS, numbers, slopes / float(np.float32(result.scale)), source, result)


MOST_OF_A_LINE, LEAST_BESIDE, MOST_CLOSE = 255, 3, 1 << 17
"""Of a softmax: powers with a sum below 2^31; lines side by side; steps, 2^20 from code to code, that it errs by."""
LEAST_ALONE, MOST_ALONE = 32, 8064
"""Of a line that lies alone: powers that pay for a table of 256; with sums of lower parts below 2^32 in each lane."""


def _softmax_form(step: Operation, constants: Constants) -> bytes | None:
    """Powers as integers. What a share of them errs by: each power by 1/2, their sum by 1/2 for each of them.

    The sum of a line that lies alone is of powers with 24 bits more.
    """
    [source], result, how = step.sources, step.result, step.told(Powers)
    count, step_size = source.extents[how.axis], float(np.float32(result.scale))
    beside = _beside(source, how.axis)
    is_alone = beside == 1
    least, most = (LEAST_ALONE, MOST_ALONE) if is_alone else (1, MOST_OF_A_LINE)
    if not is_codes(source) or not is_codes(result) or not least <= count <= most or step_size < 2.0**-9:
        return None
    if source.layout != result.layout or 1 < beside < LEAST_BESIDE:
        return None
    summed = 0 if is_alone else count
    own = int(np.ceil((1 / 16 + 1 / 4) / step_size)) + 8  # 1/4: of float32 and of the reciprocal
    close = int(np.ceil(summed / 16 / step_size)) + own
    if close > MOST_CLOSE:
        return None
    fine = np.rint(constants[how.powers].astype(np.float64) * 2.0**47).astype(np.int64)
    powers = (fine + (1 << 23)) >> 24
    rests = np.minimum(fine - (powers << 24) + (1 << 23), (1 << 24) - 1)
    ends = np.array([-1, 1], np.float32) * np.float32(result.scale) * SOFTEST
    lowest, highest = numbers_of(stored_as(ends, grid(result, (1, 1, 1, 2), "ends")), result)
    offset = (zero_of(result) << 20) + (1 << 19)
    numbers = (round(2.0**21 / step_size), close, offset, turned_bit(result), int(lowest), int(highest))
    planes = np.stack([part >> bits & 255 for part in (powers, rests) for bits in (0, 8, 16)])
    filled = [int(np.flatnonzero(plane).max(initial=0)) // (CODES // 8) + 1 for plane in planes[:3]]
    fall = max(at for at, parts in enumerate(PARTS) if all(map(int.__le__, filled, parts)))
    numbers += (fall, own + -(-summed // 16) + 1, summed)
    return header(SOFTMAX, turned_bit(source), *numbers) + laid_table(planes).tobytes()


PARTS = ((8, 8, 8), (8, 7, 3), (6, 4, 2), (4, 3, 1))
"""How many of the eight parts of a table have anything but 0, of each of three bytes: by how fast powers fall."""


def _beside(operand: Operand, axis: int) -> int:
    """How many elements lie from one along an axis to the next: so many lines lie side by side."""
    order = (0, 3, 1, 2) if operand.layout == NCHW else (0, 1, 2, 3)
    return prod(operand.extents[at] for at in order[order.index(axis) + 1 :])


def _code_of(at: Operand, to: Operand, elements: Array) -> Array:
    """Convert elements by the definition."""
    return stored_as(_converted(Operation("convert", "", (at,), to), [elements.reshape(at.extents)], {}), to)


def _functions_terms(step: Operation, sizes: Sequence[float], constants: Stored) -> tuple[int, float]:
    """What a number is rounded by before, a power or an exponential makes larger."""
    reals = constants[step.told(Map).reals]
    return len(sizes), sum(sizes) + float(np.abs(reals[np.isfinite(reals)]).max(initial=0))


OPERATORS = {
    "convert": Operator(_converted, convert_form),
    "map": Operator(_mapped, _map_form, _functions_terms),
    "softmax": Operator(_shares, _softmax_form),
}
NODES: Table = {
    **dict.fromkeys(FUNCTIONS, _read_function),
    "QuantizeLinear": _read_quantize,
    "DequantizeLinear": _read_dequantize,
    "Relu": _read_clamp,
    "Clip": _read_clamp,
    "Identity": _read_same,
    "Dropout": _read_dropout,
    "BatchNormalization": _read_normalised,
    "Softmax": _read_softmax,
    f"{DOMAIN}.QLinearSoftmax": _read_quantised_softmax,
    f"{DOMAIN}.QLinearSigmoid": _read_quantised_function,
    f"{DOMAIN}.QLinearLeakyRelu": _read_quantised_function,
}
