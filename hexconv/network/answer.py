"""Compute a network in numpy, step by step: chains by their definition, operators by ONNX's.

Operators compute in float32 where `hexconv_operators.h` says so, in the same order, so that C gives the same bytes.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from math import prod

import numpy as np

from hexconv.compute import reference
from hexconv.layout import packed
from hexconv.network.program_steps import (
    NCHW,
    NHWC,
    OTHER,
    Along,
    Axis,
    Call,
    Filters,
    Map,
    Operand,
    Operation,
    Powers,
    Program,
    Resize,
    Step,
    View,
    Window,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import SOFTEST

Stored = Mapping[str, Array]
"""The contents of buffers by name, logical NHWC."""


def answer(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute the outputs of a network, in the model's shapes, by name.

    Args:
        program: the steps of the network.
        inputs: the inputs in the model's shapes, by name.
    """
    stored = stored_by(program, inputs)
    return {port.name: as_model(stored[port.operand.buffer], port.shape) for port in program.outputs}


def stored_by(program: Program, inputs: Mapping[str, Array], given: Stored | None = None) -> dict[str, Array]:
    """Compute what every buffer of a network holds, logical NHWC, by its name.

    Args:
        program: the steps of the network.
        inputs: the inputs in the model's shapes, by name.
        given: what the steps write that hexconv has no operator for, by buffer.
    """
    stored = {port.operand.buffer: nhwc(inputs[port.name], port.operand) for port in program.inputs}
    for step in program.steps:
        is_given = isinstance(step, Operation) and step.operator == OTHER
        found = (given or {})[step.result.buffer] if is_given else result_of(step, stored, program.constants)
        stored[step.result.buffer] = found
    return stored


def result_of(step: Step, stored: Mapping[str, Array], constants: Mapping[str, Array]) -> Array:
    """Compute what one step writes, logical NHWC.

    Args:
        step: the step.
        stored: the tensors that it reads, by buffer.
        constants: the constants that it reads, by name.
    """
    seen = seen_by(step, {**constants, **stored})
    if isinstance(step, Call):
        tensors = step.weights
        made = reference(step.case.chain, seen[0], tensors.filters, tensors.biases, tensors.vectors)
        return made.astype(step.result.dtype)
    return stored_as(OPERATORS[step.operator](step, seen, constants), step.result)


def reals_of(step: Operation, stored: Mapping[str, Array], constants: Mapping[str, Array]) -> Array:
    """Compute the real numbers that an operator makes, before they are clamped and stored; arguments of `result_of`."""
    return OPERATORS[step.operator](step, seen_by(step, {**constants, **stored}), constants)


def elements_of(memory: Array, operand: Operand) -> Array:
    """Return the elements of a buffer, logical NHWC, out of its bytes."""
    elements = np.ascontiguousarray(memory).view(operand.dtype)
    batch, rows, columns, channels = operand.extents
    if operand.layout == NHWC:
        return elements.reshape(operand.extents)
    if operand.layout == NCHW:
        return elements.reshape(batch, channels, rows, columns).transpose(0, 2, 3, 1)
    return packed(operand.layout, operand.extents).unpack(elements)


def seen_by(step: Step, stored: Stored) -> list[Array]:
    """Return what a step reads, logical NHWC: buffers, each under the extents that the step gives it."""
    return [_seen(stored[source.buffer], source) for source in step.sources]


def _seen(values: Array, operand: Operand) -> Array:
    """View a buffer under the extents of an operand: the same elements, or the same memory in another shape."""
    if values.shape == operand.extents:
        return values
    return nhwc(values.transpose(0, 3, 1, 2), operand)


def nhwc(values: Array, operand: Operand) -> Array:
    """Turn a tensor of the model, NCHW in any shape, into logical NHWC."""
    batch, rows, columns, channels = operand.extents
    return values.reshape(batch, channels, rows, columns).transpose(0, 2, 3, 1)


def as_model(values: Array, shape: tuple[int, ...]) -> Array:
    """Turn logical NHWC into a tensor of the model: NCHW, in its shape."""
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2)).reshape(shape)


def _steps(values: Array, operand: Operand) -> Array:
    """Subtract the zero point from codes, exactly."""
    return values.astype(np.int64) - operand.zero_point


def _exact(values: Array, operand: Operand) -> Array:
    """Return what is summed of the elements: codes without their zero point, or the numbers themselves in float64."""
    return values.astype(np.float64) if operand.is_float else _steps(values, operand)


def _real(values: Array, operand: Operand) -> Array:
    """Return the real numbers that the elements stand for, float32."""
    if operand.is_float:
        return values.astype(np.float32)
    return _steps(values, operand).astype(np.float32) * np.float32(operand.scale)


def stored_as(reals: Array, operand: Operand) -> Array:
    """Turn real numbers into the elements of a result: clamped, and as codes where it holds codes."""
    low, high = (np.float32(end) for end in (operand.low, operand.high))
    kept = np.clip(reals.astype(np.float32), low, high)
    if operand.is_float:
        return kept
    ends = np.iinfo(operand.dtype)
    codes = np.rint(np.clip(kept / np.float32(operand.scale), -SOFTEST, SOFTEST)).astype(np.int64)
    return np.clip(codes + operand.zero_point, ends.min, ends.max).astype(operand.dtype)


def _convert(step: Operation, seen: list[Array], _: Stored) -> Array:
    return _real(seen[0], step.sources[0])


def _elementwise(made: np.ufunc, step: Operation, seen: list[Array], _: Stored) -> Array:
    return made(*map(_real, seen, step.sources))


def _under(values: Array, window: Window, made: Operand, outside: float) -> list[Array]:
    """For each tap of a window, the elements under it, `outside` in the padding: arrays [N, H, W, C] of the result."""
    _, rows, columns, _ = made.extents
    height, width = values.shape[1:3]
    found = []
    for row, column in product(*map(range, window.kernel)):
        y = np.arange(rows) * window.stride[0] + row * window.dilation[0] - window.padding[0]
        x = np.arange(columns) * window.stride[1] + column * window.dilation[1] - window.padding[1]
        there = ((y >= 0) & (y < height))[:, None] & ((x >= 0) & (x < width))[None, :]
        taken = values[:, np.clip(y, 0, height - 1)][:, :, np.clip(x, 0, width - 1)]
        found.append(np.where(there[None, :, :, None], taken, outside))
    return found


def _max_pool(step: Operation, seen: list[Array], _: Stored) -> Array:
    window = step.told(Window)
    least = float(np.finfo(np.float32).min)
    return np.maximum.reduce(_under(_real(seen[0], step.sources[0]), window, step.result, least))


def _average_pool(step: Operation, seen: list[Array], _: Stored) -> Array:
    window = step.told(Window)
    source = step.sources[0]
    total = np.sum(_under(_exact(seen[0], source), window, step.result, 0), 0)
    top, left, bottom, right = window.padding if window.counts_padding else (0, 0, 0, 0)
    inside = np.ones((1, source.extents[1] + top + bottom, source.extents[2] + left + right, 1))
    own = window if not window.counts_padding else Window(window.kernel, window.stride, window.dilation, (0, 0, 0, 0))
    count = np.sum(_under(inside, own, step.result, 0), 0)
    return mean_of(total, source, count)


def _global_average_pool(step: Operation, seen: list[Array], _: Stored) -> Array:
    source = step.sources[0]
    exact = _exact(seen[0], source)
    pixels = [exact[:, y, x] for y, x in product(range(exact.shape[1]), range(exact.shape[2]))]
    total = sum(pixels[1:], pixels[0])
    return mean_of(total[:, None, None], source, len(pixels))


def mean_of(total: Array, source: Operand, count: Array | int) -> Array:
    """Divide exact sums of steps, or of floats, by how many there are; return real numbers, float32."""
    whole = total if source.is_float else total.astype(np.float64) * np.float64(np.float32(source.scale))
    return (whole / count).astype(np.float32)


def _concat(step: Operation, seen: list[Array], _: Stored) -> Array:
    return np.concatenate([*map(_real, seen, step.sources)], step.told(Along).axis)


def _resize(step: Operation, seen: list[Array], constants: Stored) -> Array:
    how = step.told(Resize)
    along_columns = _mixed(_real(seen[0], step.sources[0]), how.columns, 2, constants)
    return _mixed(along_columns, how.rows, 1, constants)


def _mixed(values: Array, axis: Axis, at: int, constants: Stored) -> Array:
    first = constants[axis.first]
    part = constants[axis.part].reshape([-1 if place == at else 1 for place in range(4)])
    one, other = (values.take(np.minimum(first + more, values.shape[at] - 1), at) for more in (0, 1))
    return np.where(part == 0, one, (1 - part) * one + part * other)


def _matmul(step: Operation, seen: list[Array], constants: Stored) -> Array:
    filters = step.told(Filters)
    source = step.sources[0]
    return _weighed(_products(seen[0], source, constants[filters.elements][:, 0, 0]), source, filters, constants)


def _products(values: Array, source: Operand, matrix: Array) -> Array:
    """Sums over the last axis: exact for integers, else in the order of the elements, in float64."""
    if not source.is_float and matrix.dtype.kind == "i":
        return _steps(values, source) @ matrix.T.astype(np.int64)
    reals, total = _real(values, source).astype(np.float64), np.zeros((*values.shape[:-1], len(matrix)))
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


def _conv_transpose(step: Operation, seen: list[Array], constants: Stored) -> Array:
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
            total[:, y[:, None], x, outputs] += _products(taken, source, elements[outputs, row, column])
    return _weighed(total, source, filters, constants)


def _origins(made: int, tap: int, axis: int, window: Window, size: int) -> tuple[Array, Array]:
    """Along one axis, the places of a result that a tap writes, and the places of the source that it reads."""
    moved = np.arange(made) + window.padding[axis] - tap * window.dilation[axis]
    comes = (moved >= 0) & (moved % window.stride[axis] == 0) & (moved // window.stride[axis] < size)
    return np.flatnonzero(comes), moved[comes] // window.stride[axis]


def _view(step: Operation, seen: list[Array], constants: Stored) -> Array:
    """Take elements by their places in memory, as the loops say."""
    how, source, result = step.told(View), step.sources[0], step.result
    from_, to = np.array(how.source_first), np.array(how.result_first)
    for each in how.dimensions:
        turns = np.arange(each.size)
        from_ = np.add.outer(from_, constants[each.places] if each.places else turns * each.source_step)
        to = np.add.outer(to, turns * each.result_step)
    made = np.full(prod(result.extents), np.float32(how.fill or 0.0))
    made[to] = _flat(_real(seen[0], source), source)[from_]
    return _unflat(made, result)


def _flat(values: Array, operand: Operand) -> Array:
    """Elements in the order in which they lie in memory."""
    return (values.transpose(0, 3, 1, 2) if operand.layout == NCHW else values).reshape(-1)


def _unflat(values: Array, operand: Operand) -> Array:
    """The inverse."""
    return nhwc(values, operand) if operand.layout == NCHW else values.reshape(operand.extents)


def _map(step: Operation, seen: list[Array], constants: Stored) -> Array:
    how = step.told(Map)
    reals, codes = constants[how.reals].reshape(how.count, -1), seen[0].view(np.uint8)
    return reals[np.arange(codes.shape[-1]) if how.count > 1 else 0, codes]


def _softmax(step: Operation, seen: list[Array], constants: Stored) -> Array:
    how, codes = step.told(Powers), seen[0].astype(np.int64)
    powers = constants[how.powers][codes.max(how.axis, keepdims=True) - codes].astype(np.float64)
    return (powers / np.add.accumulate(powers, how.axis).take([-1], how.axis)).astype(np.float32)


OPERATORS: dict[str, Callable[[Operation, list[Array], Stored], Array]] = {
    "convert": _convert,
    "add": partial(_elementwise, np.add),
    "multiply": partial(_elementwise, np.multiply),
    "subtract": partial(_elementwise, np.subtract),
    "divide": partial(_elementwise, np.divide),
    "view": _view,
    "map": _map,
    "softmax": _softmax,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _global_average_pool,
    "concat": _concat,
    "resize": _resize,
    "matmul": _matmul,
    "conv_transpose": _conv_transpose,
}
"""By the name of an operator, the function that computes its real numbers, before they are stored."""
