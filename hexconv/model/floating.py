"""Read a float Conv with its Pad, the scales and shifts behind it, and the activation that elementwise operators spell.

conv -> T -+-> Add 3 -> Clip 0, 6 -+-> Mul -> Div 6 -> R        hardswish
               +-----------------------+

All nodes between T and R are run at import, with ONNX's own evaluator in float64, on numbers of every size. They are an
activation if the results are its results; its slope and offset are read from the results, too. A PRelu with a slope for
each channel is the one operator that isn't one function of one number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hexconv.errors import InputError
from hexconv.model.affine import Affine, affine_of, is_per_channel
from hexconv.model.constants import Array, elements
from hexconv.model.conv_unit import Folded, Unit
from hexconv.model.geometry import check_bias, entry_of, filter_shape, geometry, image_shape, oihw
from hexconv.model.graph import Graph, Node, passes
from hexconv.model.pointwise import ELEMENTWISE, computed, following, leads_on
from hexconv.model.refused import Refused
from hexconv.spec import Conv2d
from hexconv.spec.activations import CURVES, PRELU, SLOPE, Activation, check_parameters
from hexconv.spec.curves import activated
from hexconv.spec.dtypes import Dtype

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


FLOATS = ("float32", "float16")


@dataclass(frozen=True)
class FloatWeights:
    """The filter, the bias and a prelu's slopes of a float conv, and the nodes that fold into them, in order."""

    filter: str
    bias: str
    affine: tuple[Affine, ...]
    dtype: Dtype
    slopes: str = ""

    @property
    def has_bias(self) -> bool:
        """Whether the conv gets a bias: its own, or what folds into one."""
        return bool(self.bias) or any(affine.shifts for affine in self.affine)

    def folded(self, graph: Graph) -> Folded:
        """Work out filter and bias in float64, and round them once.

        Raises:
            Refused: a weight is no finite number of the dtype after that.
        """
        with np.errstate(all="ignore"):
            folded = self._rounded(graph)
        for name, weights in (("filter", folded.filter), ("bias", folded.bias)):
            if weights is not None and (lost := int(np.sum(~np.isfinite(weights)))):
                nodes = " and ".join(dict.fromkeys(affine.node.op for affine in self.affine))
                through = f" with {nodes} folded into it" if nodes else ""
                raise Refused(f"its {name} has {lost} values that are no finite {weights.dtype}{through}")
        return folded

    def _rounded(self, graph: Graph) -> Folded:
        """Work out filter and bias without a check that they are finite."""
        filter = oihw(graph.value(self.filter)).astype(np.float64)
        channels = filter.shape[0]
        bias = graph.value(self.bias).astype(np.float64) if self.bias else np.zeros(channels)
        for affine in self.affine:
            scale, shift = affine.values(graph, channels)
            filter, bias = filter * scale[:, None, None, None], bias * scale + shift
        slopes = {SLOPE: graph.value(self.slopes).astype(np.float32).reshape(-1)} if self.slopes else {}
        return Folded(filter.astype(self.dtype), bias.astype(np.float32) if self.has_bias else None, slopes)


@dataclass(frozen=True)
class _Tail:
    """The nodes behind a conv that fold into it, up to the tensor `result`."""

    result: str
    affine: tuple[Affine, ...]
    activation: Recognised | None


def float_unit(graph: Graph, node: Node) -> Unit:
    """Read a float conv as a chain can have it.

    Raises:
        Refused: no chain can have this conv.
    """
    entry, filter, bias = entry_of(graph, [node]), node.input(1), node.input(2)
    dtype, filter_dtype = (graph.type_of(name).dtype for name in (entry.source, filter))
    if not filter_dtype:
        raise Refused(f"the type of its filter {filter} is not known to ONNX's shape inference: it may be sparse")
    if dtype not in FLOATS or dtype != filter_dtype:
        raise Refused(f"it has {dtype} values and {filter_dtype} filters; a chain has {' or '.join(FLOATS)} for both")
    image, taps = image_shape(graph, node.inputs[0]), filter_shape(graph, filter, node.inputs[0])
    check_bias(graph, bias, taps[0])
    fields = geometry(graph, node, image, taps)
    fields["padding"] = entry.around(fields["padding"])
    tail = _tail(graph, node.outputs[0], taps[0])
    found = tail.activation
    weights = FloatWeights(filter, bias, tail.affine, cast("Dtype", dtype), found.slopes if found else "")
    conv = Conv2d(**fields, bias=weights.has_bias)
    return Unit(
        node=node,
        entry=entry.nodes,
        source=entry.source,
        result=tail.result,
        shape=image_shape(graph, entry.source),
        dtype=weights.dtype,
        filter_dtype=weights.dtype,
        zero_point=0,
        conv=found.over(conv) if found else conv,
        weights=weights,
        notes=(entry.unfolded,) if entry.unfolded else (),
    )


def _tail(graph: Graph, tensor: str, channels: int) -> _Tail:
    """Follow a conv's result: what scales and shifts it folds into the weights, and the first activation ends that."""
    affine: list[Affine] = []
    activation = activation_of(graph, tensor, channels)
    while activation is None and (node := graph.only_reader(tensor)):
        if found := affine_of(graph, node, tensor, channels):
            affine.append(found)
        elif node.inputs[0] != tensor or not passes(graph, node):
            break
        tensor = node.outputs[0]
        activation = activation_of(graph, tensor, channels)
    return _Tail(activation.result if activation else tensor, tuple(affine), activation)
