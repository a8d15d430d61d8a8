"""A quantised tensor of a model: 8 bits, one scale and one zero point."""

from dataclasses import dataclass
from math import inf

import numpy as np

from hexconv.model.graph import Graph
from hexconv.model.refused import Refused
from hexconv.spec.chain import INTEGER_RANGE

EIGHT_BITS = ("int8", "uint8")


@dataclass(frozen=True)
class Quantised:
    """`(element - zero_point) * scale`.

    Attributes:
        tensor: its name.
        dtype: int8 or uint8.
        scale: 1 where nobody asks.
        zero_point: of the dtype.
    """

    tensor: str
    dtype: str
    scale: float
    zero_point: int


def quantised(graph: Graph, tensor: str, scale: str, zero_point: str) -> Quantised:
    """A tensor with constants for scale and zero point, by name; an empty name is left out in the model.

    Raises:
        Refused: more than 8 bits, a scale per channel, or one that depends on the model's input or is not positive.
    """
    dtype = graph.type_of(tensor).dtype
    if dtype not in EIGHT_BITS:
        raise Refused(f"{tensor} is {dtype or 'of unknown type'}; integer chains are made of int8 and uint8")
    step, zero = _one(graph, scale, "scale", 1.0), _one(graph, zero_point, "zero point", 0)
    low, high = INTEGER_RANGE[dtype]
    if not 0 < step < inf:
        raise Refused(f"its scale {scale} is {step:g}, which is no positive number")
    if not (low <= zero <= high and zero.is_integer()):
        raise Refused(f"its zero point {zero_point} is {zero:g}, which is no {dtype}")
    return Quantised(tensor, dtype, step, int(zero))


def _one(graph: Graph, name: str, what: str, default: float) -> float:
    """The value of a constant that is the same for all channels."""
    if not name:
        return float(default)
    if not graph.is_constant(name):
        raise Refused(f"its {what} {name} depends on the model's input")
    values = np.unique(graph.value(name))
    if values.size != 1:
        raise Refused(f"{values.size} {what}s, one per channel or block; requantize has one per conv")
    return float(values[0])
