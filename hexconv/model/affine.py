"""Nodes that scale and shift every channel by constants, to be folded into filter, bias or requantisation of a conv."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused

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
