"""A quantised tensor of a model: integers with one scale and one zero point; a filter may have one a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from hexconv.model.constants import Array
from hexconv.model.granularity import Along, along, is_per_tensor, per_slice, spread
from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused
from hexconv.spec.dtypes import FILTER_DTYPES, ZERO_POINTS

STORED = {
    **{dtype: (dtype, 0) for dtype in ("int8", "uint8", "int16")},
    **{dtype: ("int8", 0) for dtype in ("int4", "uint4", "int2", "uint2")},
    "uint16": ("int16", 2**15),
}
"""By a model's dtype, the dtype that a chain stores it in, and what a chain's codes are less than the model's."""
ACTIVATIONS = (*FILTER_DTYPES, "uint16")
WHAT = ("scale", "zero point")
NO_AXIS: Along = (0, 0)


@dataclass(frozen=True)
class Quantised:
    """A quantised tensor, whose elements stand for `(element - zero_point) * scale`.

    Attributes:
        tensor: the name of the tensor.
        dtype: the dtype that a chain stores it in, int8, uint8 or int16.
        scales: its scales, float32, [1] or one a channel; 1 where the scale doesn't matter.
        zero_points: its zero points as the model has them, int64, [1] or one a channel.
        offset: what a chain's codes are less than the model's: 32768 for uint16, which a chain has as int16.
    """

    tensor: str
    dtype: str
    scales: Array
    zero_points: Array
    offset: int = 0

    @property
    def zero_point(self) -> int:
        """The one zero point of all elements, as a chain has it."""
        return int(self.zero_points[0]) - self.offset


def quantised(graph: Graph, tensor: str, scale: str, zero_point: str, *, by: Node | None = None) -> Quantised:
    """Read a tensor with the constants of its scale and zero point, by name; an empty name: the model leaves it out.

    Args:
        graph: the graph of the model.
        tensor: the name of the tensor.
        scale: the name of its scale.
        zero_point: the name of its zero point.
        by: the QuantizeLinear or DequantizeLinear of the tensor; without one, only a single scale is allowed.

    Raises:
        Refused: the dtype is none that a chain has; or the scale depends on the model's input, is not positive, differs
            between elements, or has a shape that ONNX's definition doesn't allow.
    """
    values = _read(graph, tensor, scale, zero_point, ACTIVATIONS, by)
    if by is None and not all(map(is_per_tensor, values)):
        shapes = " and ".join(str(list(each.shape)) for each in values)
        raise Refused(f"{tensor} has a scale and a zero point of the shapes {shapes}; it takes one of each")
    singles = []
    for what, each in zip(WHAT, values, strict=True):
        grid = spread(each, graph.type_of(tensor).shape or (), along(by.attributes) if by else NO_AXIS, what)
        if (count := np.unique(grid).size) != 1:
            raise Refused(f"{tensor} has {count} {what}s, one per channel or block; a chain has one of them")
        singles.append(grid.reshape(-1)[:1])
    return _quantised(graph, tensor, *singles)


def quantised_filter(
    graph: Graph, tensor: str, scale: str, zero_point: str, *, by: Node | None = None, axis: int = 0
) -> Quantised:
    """Read a filter with one scale and zero point, or with one of each for every output channel.

    Args:
        graph: the graph of the model.
        tensor: the name of the filter.
        scale: the name of its scales.
        zero_point: the name of its zero points; may be empty.
        by: the DequantizeLinear of the filter; without one, there is a single scale, or one for each output channel.
        axis: the axis of the output channels in the filter.

    Raises:
        Refused: as for `quantised`; or scales or zero points differ between elements of one output channel.
    """
    if not graph.is_constant(tensor):
        raise Refused(f"its filter {tensor} depends on the model's input; filters are constants here")
    place = along(by.attributes) if by else (axis, 0)
    shape, vectors = graph.type_of(tensor).shape or graph.value(tensor).shape, []
    for what, each in zip(WHAT, _read(graph, tensor, scale, zero_point, tuple(STORED), by), strict=True):
        if (vector := per_slice(spread(each, shape, place, what), axis)) is None:
            raise Refused(
                f"its filter of {list(shape)} has {what}s that differ within an output channel, {_words(place)}; a "
                "chain has one for each output channel: quantise it per channel"
            )
        vectors.append(vector)
    return _quantised(graph, tensor, *vectors)


def scales_of(graph: Graph, dequantize: Node, axis: int) -> Array | None:
    """The scales of a DequantizeLinear, [1] or one for each slice along an axis; None where they differ within one.

    Raises:
        Refused: the scales are no constants, or have a shape that ONNX's definition doesn't allow.
    """
    shape = graph.type_of(dequantize.inputs[0]).shape or ()
    values = _values(graph, dequantize.input(1), "scale", np.ones(()))
    return per_slice(spread(values, shape, along(dequantize.attributes)), axis)


def _words(by: Along) -> str:
    axis, block_size = by
    return f"by blocks of {block_size} along axis {axis}" if block_size else f"along axis {axis}"


def _read(
    graph: Graph, tensor: str, scale: str, zero_point: str, dtypes: Sequence[str], by: Node | None
) -> tuple[Array, Array]:
    """The scales and the zero points of a tensor as the model has them, each of them a number that a chain can have."""
    dtype = graph.type_of(tensor).dtype
    if dtype not in dtypes:
        raise Refused(f"{tensor} is {dtype or 'of unknown type'}; integer chains are made of {', '.join(dtypes)}")
    scales = _values(graph, scale, "scale", np.ones(()))
    zeros = _values(graph, zero_point, "zero point", np.zeros(scales.shape))
    if bad := [step for step in scales.reshape(-1).tolist() if not 0 < step < inf]:
        raise Refused(f"its scale {scale} is {bad[0]:g}, which is no positive number")
    if zero_point:
        _check_zeros(zero_point, graph.type_of(zero_point).dtype or str(zeros.dtype), zeros, dtype)
    if by and scales.shape != zeros.shape and not (is_per_tensor(scales) and is_per_tensor(zeros)):
        shapes = f"{list(scales.shape)} and {list(zeros.shape)}"
        raise Refused(f"its scale {scale} and its zero point {zero_point} have the shapes {shapes}; both need the same")
    return scales, zeros


def _check_zeros(name: str, stated: str, zeros: Array, dtype: str) -> None:
    """Check that zero points are of the tensor's dtype, and that a chain has them."""
    if stated != dtype:
        raise Refused(f"its zero point {name} is {stated}, where {dtype} is quantised")
    stored, offset = STORED[dtype]
    low, high = (end + offset for end in ZERO_POINTS[stored])
    if bad := [zero for zero in zeros.astype(np.int64).reshape(-1).tolist() if not low <= zero <= high]:
        raise Refused(f"its zero point {name} is {bad[0]}; a chain has {dtype} with the zero point {low} alone")


def _quantised(graph: Graph, tensor: str, scales: Array, zeros: Array) -> Quantised:
    dtype, offset = STORED[graph.type_of(tensor).dtype]
    return Quantised(tensor, dtype, scales.astype(np.float32), zeros.astype(np.int64), offset)


def _values(graph: Graph, name: str, what: str, default: Array) -> Array:
    """The values of a constant; the default where the model leaves it out."""
    if not name:
        return default
    if not graph.is_constant(name):
        raise Refused(f"its {what} {name} depends on the model's input; it is a constant here")
    return graph.value(name)
