"""A quantised tensor of a model: integers with one scale and one zero point; a filter may have one a channel."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from hexconv.model.constants import Array
from hexconv.model.graph import Graph
from hexconv.model.refused import Refused
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, ZERO_POINTS

OF_FILTERS = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class Quantised:
    """A quantised tensor, whose elements stand for `(element - zero_point) * scale`.

    Attributes:
        tensor: the name of the tensor.
        dtype: its dtype, int8, uint8 or int16.
        scales: its scales, float32, [1] or one a channel; 1 where the scale doesn't matter.
        zero_points: its zero points, of the dtype, [1] or one a channel.
    """

    tensor: str
    dtype: str
    scales: Array
    zero_points: Array

    @property
    def zero_point(self) -> int:
        """The one zero point of all elements."""
        return int(self.zero_points[0])


def quantised(graph: Graph, tensor: str, scale: str, zero_point: str) -> Quantised:
    """Read a tensor with the constants of its scale and zero point, by name; an empty name: the model leaves it out.

    Raises:
        Refused: the dtype is none that a chain has, or the scale is per channel, depends on the model's input or is not
            positive.
    """
    found = _quantised(graph, tensor, scale, zero_point, tuple(FILTER_DTYPES))
    for what, values in (("scale", found.scales), ("zero point", found.zero_points)):
        if values.size != 1:
            raise Refused(f"{tensor} has {values.size} {what}s, one per channel or block; a chain has one of them")
    return found


def quantised_filter(graph: Graph, tensor: str, scale: str, zero_point: str, axis: int = 0) -> Quantised:
    """Read a filter, OIHW, with one scale and zero point, or with one of each for every output channel.

    Args:
        graph: the graph of the model.
        tensor: the name of the filter.
        scale: the name of its scales.
        zero_point: the name of its zero points; may be empty.
        axis: the axis along which scales and zero points differ, where they do.

    Raises:
        Refused: as for `quantised`; or scales or zero points differ along another axis than the output channels.
    """
    found = _quantised(graph, tensor, scale, zero_point, OF_FILTERS)
    shape = graph.type_of(tensor).shape or ()
    for what, values in (("scale", found.scales), ("zero point", found.zero_points)):
        if values.size > 1 and (axis % max(len(shape), 1) != 0 or values.size not in shape[:1]):
            raise Refused(
                f"its filter has {values.size} {what}s along axis {axis}; a chain has one for each output, along axis 0"
            )
    return found


def _quantised(graph: Graph, tensor: str, scale: str, zero_point: str, dtypes: Sequence[str]) -> Quantised:
    dtype = graph.type_of(tensor).dtype
    if dtype not in dtypes:
        raise Refused(f"{tensor} is {dtype or 'of unknown type'}; integer chains are made of {', '.join(dtypes)}")
    steps, zeros = _values(graph, scale, "scale", 1.0), _values(graph, zero_point, "zero point", 0)
    low, high = ZERO_POINTS[dtype]
    if bad := [step for step in steps.tolist() if not 0 < step < inf]:
        raise Refused(f"its scale {scale} is {bad[0]:g}, which is no positive number")
    if bad := [zero for zero in zeros.tolist() if not (low <= zero <= high and float(zero).is_integer())]:
        of = "which is no " if not INTEGER_RANGE[dtype][0] <= bad[0] <= INTEGER_RANGE[dtype][1] else "not the 0 of an "
        raise Refused(f"its zero point {zero_point} is {bad[0]:g}, {of}{dtype}")
    return Quantised(tensor, dtype, steps.astype(np.float32), zeros.astype(np.int64))


def _values(graph: Graph, name: str, what: str, default: float) -> Array:
    """The values of a constant; a single one where all are the same."""
    if not name:
        return np.array([default])
    if not graph.is_constant(name):
        raise Refused(f"its {what} {name} depends on the model's input; it is a constant here")
    values = graph.value(name).reshape(-1)
    return values[:1] if np.unique(values).size == 1 else values
