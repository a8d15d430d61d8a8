"""Name the activation that elementwise operators behind a float conv compute, however a model spells it.

    conv -> T -+-> Add 3 -> Clip 0, 6 -+-> Mul -> Div 6 -> R        hardswish
               +-----------------------+

All nodes between T and R are run at import, with ONNX's own evaluator in float64, on numbers of every size. They are an
activation if the results are its results; its slope and offset are read from the results, too. A PRelu with a slope for
each channel is the one operator that isn't one function of one number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hexconv.errors import InputError
from hexconv.model.affine import is_per_channel
from hexconv.model.constants import Array, elements
from hexconv.model.graph import Graph, Node
from hexconv.model.pointwise import ELEMENTWISE, computed, following, leads_on
from hexconv.model.refused import Refused
from hexconv.spec import Conv2d
from hexconv.spec.activations import CURVES, PRELU, Activation, check_parameters
from hexconv.spec.curves import activated

OPERATORS = ELEMENTWISE - {"DequantizeLinear"} | {"Dropout"}
SIZES = np.geomspace(1e-6, 1e30, 400)
PLACES = np.concatenate([np.linspace(-12, 12, 2401), SIZES, -SIZES])
"""The numbers that operators are run on: all parts of a curve, and far beyond any limit of a clamp."""
TINY = 1e-30
NEAR = {"float32": 1e-5, "float16": 2e-3}
"""By dtype, how far results may be apart, as constants are rounded: relative to the result, or to |x| up to 1."""


@dataclass(frozen=True)
class Recognised:
    """An activation that was found in a graph.

    Attributes:
        result: the tensor that it makes.
        conv: a conv with its name, slope and offset, and nothing else stated.
        slopes: the constant with the slopes of a prelu; empty for others.
    """

    result: str
    conv: Conv2d
    slopes: str = ""

    def over(self, conv: Conv2d) -> Conv2d:
        """Return a conv with this activation."""
        own = self.conv
        return replace(
            conv,
            activation=own.activation,
            activation_slope=own.activation_slope,
            activation_offset=own.activation_offset,
        )


def activation_of(graph: Graph, tensor: str, channels: int) -> Recognised | None:
    """The activation of a tensor that reaches farthest, of those that the nodes behind it compute; None if none does.

    Args:
        graph: the graph of the model.
        tensor: a tensor of floats, NCHW.
        channels: its channels.
    """
    dtype = graph.type_of(tensor).dtype
    found, nodes = _prelu(graph, tensor, channels), list[Node]()
    values = {tensor: PLACES.reshape(1, 1, 1, -1)}
    for node in following(graph, tensor, OPERATORS):
        nodes.append(node)
        try:
            values |= computed(graph, node, values)
        except Refused:
            break
        if leads_on(graph, tensor, nodes):
            made = values[node.outputs[0]].reshape(-1)
            conv = _named(made, NEAR[dtype]) if made.shape == PLACES.shape else None
            found = Recognised(node.outputs[0], conv) if conv else found
    return found


def _prelu(graph: Graph, tensor: str, channels: int) -> Recognised | None:
    """A PRelu with a slope for each channel."""
    node = graph.only_reader(tensor)
    if node is None or node.op != "PRelu" or node.inputs[0] != tensor or not graph.is_constant(node.inputs[1]):
        return None
    slopes = graph.type_of(node.inputs[1]).shape
    if channels == 1 or elements(slopes) != channels or not is_per_channel(graph, node.inputs[1], tensor, channels):
        return None
    return Recognised(node.outputs[0], Conv2d(out_channels=1, activation=PRELU), node.inputs[1])


def _named(made: Array, near: float) -> Conv2d | None:
    """The activation that has these results at all places; of several the nearest one."""
    best, least = None, near
    for conv in _candidates(made):
        with np.errstate(all="ignore"):
            wanted = activated(PLACES, conv)
            error = np.abs(made - wanted) / np.maximum(np.abs(wanted), np.clip(np.abs(PLACES), TINY, 1))
        if (largest := float(np.max(error))) < least:  # false for what is no number
            best, least = conv, largest
    return best


def _candidates(made: Array) -> Iterator[Conv2d]:
    """All activations that results may be of, with the parameters that these results would have."""
    for name, curve in CURVES.items():
        if name in ("none", PRELU):
            continue
        slope, offset = _parameters(name, made)
        slope = None if slope is None or curve.slope is None or np.isclose(slope, curve.slope, 1e-6) else slope
        offset = None if offset is None or curve.offset is None or np.isclose(offset, curve.offset, 1e-6) else offset
        try:
            check_parameters("", name, slope, offset)
            yield Conv2d(out_channels=1, activation=name, activation_slope=slope, activation_offset=offset)
        except InputError:
            continue


def _parameters(name: Activation, made: Array) -> tuple[float | None, float | None]:
    """The slope and the offset of an activation with these results, as float32 has them; None where it has none."""
    if name == "leaky_relu":
        return _short(-made[_place(-1)]), None
    if name == "elu":
        return _short(-made[_place(-SIZES[-1])]), None
    inside = np.flatnonzero((made > 0) & (made < 1) & (np.abs(PLACES) <= PLACES[2400]))
    if name != "hardsigmoid" or len(inside) < 2:
        return None, None
    first, last = inside[0], inside[-1]
    slope = float(made[last] - made[first]) / float(PLACES[last] - PLACES[first])
    return _short(slope), _short(float(made[first] - slope * PLACES[first]))


def _place(x: float) -> int:
    return int(np.argmin(np.abs(PLACES - x)))


def _short(value: float) -> float:
    """The number as float32 has it, in as few digits as tell it apart."""
    return float(str(np.float32(value)))
