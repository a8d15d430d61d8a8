"""Constant scales and shifts of channels, to be folded into a conv; Relu and Clip as clamps."""

from dataclasses import dataclass
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused
from hexconv.spec.activations import Activation

Vector = NDArray[Any]


LINEAR = ("Add", "Sum", "Sub", "Mul", "Div")


@dataclass(frozen=True)
class Affine:
    """`value * scale[k] + shift[k]` per channel k, worked out by `values` only when weights are wanted.

    Attributes:
        node: the node: a BatchNormalization, Neg, Add, Sum, Sub, Mul or Div.
        by: the constant of a node with two inputs; empty for BatchNormalization, which reads four vectors, and Neg.
    """

    node: Node
    by: str = ""

    @property
    def shifts(self) -> bool:
        """Whether the shift can be other than 0."""
        return self.node.op not in ("Mul", "Div", "Neg")

    def values(self, graph: Graph, channels: int) -> tuple[Vector, Vector]:
        """Work out scale and shift, [channels] each, in float64."""
        ones, zeros = np.ones(channels), np.zeros(channels)
        if self.node.op == "Neg":
            return -ones, zeros
        if self.node.op == "BatchNormalization":
            scale, bias, mean, variance = (_vector(graph, name, channels) for name in self.node.inputs[1:5])
            factor = scale / np.sqrt(variance + float(self.node.attributes.get("epsilon", 1e-5)))
            return factor, bias - mean * factor
        by = _vector(graph, self.by, channels)
        if self.node.op in ("Mul", "Div"):
            return (by if self.node.op == "Mul" else ones / by), zeros
        if self.node.op == "Sub":
            return (-ones, by) if self.node.inputs[0] == self.by else (ones, -by)
        return ones, by


def affine_of(graph: Graph, node: Node, tensor: str, channels: int) -> Affine | None:
    """A node as a scale and a shift of each channel of `tensor` (NCHW); None if it does anything else."""
    if node.op == "BatchNormalization":
        constant = all(graph.is_constant(name) for name in node.inputs[1:5])
        per_channel = node.attributes.get("spatial", 1)  # until opset 8, `spatial = 0` normalised each pixel by itself
        only_result = not any(node.outputs[1:]) and not node.attributes.get("training_mode", 0)
        return Affine(node) if constant and per_channel and only_result and node.inputs[0] == tensor else None
    if node.op == "Neg":
        return Affine(node)
    others = [name for name in node.inputs if name != tensor]
    if node.op not in LINEAR or len(node.inputs) != 2 or len(others) != 1 or not graph.is_constant(others[0]):
        return None
    if node.op == "Div" and node.inputs[0] != tensor:
        return None
    return Affine(node, others[0]) if is_per_channel(graph, others[0], tensor, channels) else None


def limits_of(graph: Graph, node: Node, tensor: str, channels: int) -> tuple[Vector, Vector] | None:
    """The least and the most value, [channels] each, that a Max or Min with constants leaves; None for other nodes."""
    others = [name for name in node.inputs if name != tensor]
    if node.op not in ("Max", "Min") or not all(
        graph.is_constant(name) and is_per_channel(graph, name, tensor, channels) for name in others
    ):
        return None
    none = np.full(channels, np.inf)
    vectors = [_vector(graph, name, channels) for name in others]
    if node.op == "Max":
        return np.max([-none, *vectors], axis=0), none
    return -none, np.min([none, *vectors], axis=0)


def is_per_channel(graph: Graph, constant: str, tensor: str, channels: int) -> bool:
    """Whether a constant, broadcast to a tensor of NCHW or NCW, has one value per channel, or one for all."""
    shape, rank = graph.type_of(constant).shape, len(graph.type_of(tensor).shape or ())
    if shape is None or len(shape) > rank:
        return False
    padded = (1,) * (rank - len(shape)) + shape
    return all(size == 1 for axis, size in enumerate(padded) if axis != 1) and padded[1] in (1, channels)


def _vector(graph: Graph, name: str, channels: int) -> Vector:
    """Read a constant as one value per channel."""
    value = graph.value(name).astype(np.float64).reshape(-1)
    if value.size not in (1, channels):
        raise Refused(f"the constant {name} has {value.size} values for {channels} channels")
    return np.broadcast_to(value, (channels,))


@dataclass(frozen=True)
class Clamp:
    """The clamp `min(max(value, low), high)`."""

    low: float = -inf
    high: float = inf

    def then(self, other: "Clamp") -> "Clamp":
        """Join two clamps, this one first; refuse them where their ranges don't meet, so that all values become one.

        >>> Clamp(0).then(Clamp(-1, 6))
        Clamp(low=0, high=6)
        """
        low, high = max(self.low, other.low), min(self.high, other.high)
        if not low <= high:
            raise Refused(f"its clamps leave no range of values: the lower bound is {low:g}, the upper bound {high:g}")
        return Clamp(low, high)

    @property
    def activation(self) -> Activation | None:
        """The name of the activation of a case that does the same; None if there is none."""
        names: dict[tuple[float, float], Activation] = {(-inf, inf): "none", (0, inf): "relu", (0, 6): "relu6"}
        return names.get((self.low, self.high))


def clamp_of(graph: Graph, node: Node) -> Clamp | None:
    """The clamp that a node applies to its first input; None if it does anything else."""
    if node.op == "Relu":
        return Clamp(0.0)
    if node.op != "Clip":
        return None
    try:
        low, high = _bound(graph, node, 1, "min", -inf), _bound(graph, node, 2, "max", inf)
    except Refused:
        return None
    return Clamp(min(low, high), high)  # bounds that don't meet leave the upper one


def _bound(graph: Graph, node: Node, index: int, attribute: str, default: float) -> float:
    """Read a bound of Clip: an input since opset 11, an attribute before."""
    name = node.input(index)
    if not name:
        return _number(float(node.attributes.get(attribute, default)))
    if not graph.is_constant(name):
        raise Refused(f"its bound {name} depends on the model's input")
    value = graph.value(name)
    if value.size != 1:
        raise Refused(f"its bound {name} has {value.size} values; a clamp has one")
    return _number(float(value.reshape(())))


def _number(bound: float) -> float:
    if isnan(bound):
        raise Refused("one of its bounds is no number")
    return bound
