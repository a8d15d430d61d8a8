"""Nodes that scale and shift every channel by constants, to be folded into the filter and the bias of a conv."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused

Vector = NDArray[Any]


@dataclass(frozen=True)
class Affine:
    """`value * scale[k] + shift[k]` per channel k, worked out by `values` only when weights are wanted.

    Attributes:
        node: the node, a BatchNormalization, an Add or a Mul.
        by: the constant that Add adds or Mul multiplies by; empty for BatchNormalization, which reads four vectors.
    """

    node: Node
    by: str = ""

    def values(self, graph: Graph, channels: int) -> tuple[Vector, Vector]:
        """Work out scale and shift, [channels] each, in float64."""
        ones, zeros = np.ones(channels), np.zeros(channels)
        if self.node.op == "BatchNormalization":
            scale, bias, mean, variance = (_vector(graph, name, channels) for name in self.node.inputs[1:5])
            factor = scale / np.sqrt(variance + float(self.node.attributes.get("epsilon", 1e-5)))
            return factor, bias - mean * factor
        by = _vector(graph, self.by, channels)
        return (by, zeros) if self.node.op == "Mul" else (ones, by)


def affine_of(graph: Graph, node: Node, tensor: str, channels: int) -> Affine | None:
    """A node as a scale and a shift of each channel of `tensor` (NCHW); None if it does anything else."""
    if node.op == "BatchNormalization":
        constant = all(graph.is_constant(name) for name in node.inputs[1:5])
        per_channel = node.attributes.get("spatial", 1)  # until opset 8, `spatial = 0` normalised each pixel by itself
        only_result = not any(node.outputs[1:]) and not node.attributes.get("training_mode", 0)
        return Affine(node) if constant and per_channel and only_result and node.inputs[0] == tensor else None
    others = [name for name in node.inputs if name != tensor]
    if node.op not in ("Add", "Mul") or len(others) != 1 or not graph.is_constant(others[0]):
        return None
    return Affine(node, others[0]) if _is_per_channel(graph.type_of(others[0]).shape, channels) else None


def _is_per_channel(shape: tuple[int | str, ...] | None, channels: int) -> bool:
    """Whether a constant of this shape, broadcast to NCHW, has one value per channel, or one for all."""
    if shape is None or len(shape) > 4:
        return False
    padded = (1,) * (4 - len(shape)) + shape
    return padded[0] == padded[2] == padded[3] == 1 and padded[1] in (1, channels)


def _vector(graph: Graph, name: str, channels: int) -> Vector:
    """Read a constant as one value per channel."""
    value = graph.value(name).astype(np.float64).reshape(-1)
    if value.size not in (1, channels):
        raise Refused(f"the constant {name} has {value.size} values for {channels} channels")
    return np.broadcast_to(value, (channels,))
