"""Elements of tensors in numpy: real numbers and codes, logical NHWC and memory; what an operator is.

Operators compute in float32 where `hexconv_operators.h` says so, in the same order, so that C gives the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.layout import packed
from hexconv.network.program_steps import (
    NCHW,
    NHWC,
    Constants,
    Operand,
    Operation,
    Step,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import SOFTEST

Stored = Mapping[str, Array]
"""The contents of buffers by name, logical NHWC."""


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


def steps_of(values: Array, operand: Operand) -> Array:
    """Subtract the zero point from codes, exactly."""
    return values.astype(np.int64) - operand.zero_point


def exact_values(values: Array, operand: Operand) -> Array:
    """Return what is summed of the elements: codes without their zero point, or the numbers themselves in float64."""
    return values.astype(np.float64) if operand.is_float else steps_of(values, operand)


def real_values(values: Array, operand: Operand) -> Array:
    """Return the real numbers that the elements stand for, float32."""
    if operand.is_float:
        return values.astype(np.float32)
    return steps_of(values, operand).astype(np.float32) * np.float32(operand.scale)


def stored_as(reals: Array, operand: Operand) -> Array:
    """Turn real numbers into the elements of a result: clamped, and as codes where it holds codes."""
    low, high = (np.float32(end) for end in (operand.low, operand.high))
    kept = np.clip(reals.astype(np.float32), low, high)
    if operand.is_float:
        return kept
    ends = np.iinfo(operand.dtype)
    codes = np.rint(np.clip(kept / np.float32(operand.scale), -SOFTEST, SOFTEST)).astype(np.int64)
    return np.clip(codes + operand.zero_point, ends.min, ends.max).astype(operand.dtype)


def mean_of(total: Array, source: Operand, count: Array | int) -> Array:
    """Divide exact sums of steps, or of floats, by how many there are; return real numbers, float32."""
    whole = total if source.is_float else total.astype(np.float64) * np.float64(np.float32(source.scale))
    return (whole / count).astype(np.float32)


Sizes = Sequence[float]


def added_up(_: Operation, sizes: Sizes, __: Stored) -> tuple[int, float]:
    """How many terms a result adds up, and the largest sum of their sizes: one element of each source."""
    return len(sizes), sum(sizes)


@dataclass(frozen=True)
class Operator:
    """What C computes by one callback of `hexconv_operators.h`.

    Attributes:
        reals: its definition: real numbers before they are stored, out of a step, what it reads, and constants by name.
        form: makes the integer form by which HVX computes a step, of its constants; None where it has none.
        terms: how many terms a result adds up, and the largest sum of their sizes, out of the largest real number of
            each source: in float32 it may be off by so much.
        reads_many: whether it reads any number of tensors.
        selects: whether each element of its result is one of the source, found by comparing real numbers alone.
    """

    reals: Callable[[Operation, list[Array], Stored], Array]
    form: Callable[[Operation, Constants], bytes | None] = lambda *_: None
    terms: Callable[[Operation, Sizes, Stored], tuple[int, float]] = added_up
    reads_many: bool = False
    selects: bool = False
