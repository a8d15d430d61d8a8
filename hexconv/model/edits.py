"""Edit the graph of a model: nodes that take the place of others, new constants, names and types of new tensors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hexconv.model.constants import Array, Shape, opset_of
from hexconv.model.graph import RELABELS, Graph, Node, passes

MOVES = frozenset((*RELABELS, "Transpose", "Slice", "DepthToSpace", "SpaceToDepth"))
"""Operators whose results are elements of their first input."""
QUANTISE, DEQUANTISE, PAD = "QuantizeLinear", "DequantizeLinear", "Pad"
PER_AXIS = 13
"""The opset from which on quantisers have an axis."""
OLDEST_PAD = 11
"""The opset from which on codes can be padded."""
MOST_NODES = 32


def _read(node: onnx.NodeProto) -> Iterator[str]:
    own = Node.of(node)
    return chain(own.inputs, own.captured)


@dataclass
class Edits:
    """Changes to a model.

    Attributes:
        model: the model.
        graph: its graph as it was before them.
        instead: the nodes that take the place of a node.
        beside: the nodes that stand behind a node, which stays if anything reads it.
        left: the nodes that nothing may read any more.
        narrow: constants of less than a byte that were moved, by their names.
    """

    model: onnx.ModelProto
    graph: Graph
    instead: dict[Node, list[onnx.NodeProto]] = field(default_factory=dict)
    beside: dict[Node, list[onnx.NodeProto]] = field(default_factory=dict)
    left: set[Node] = field(default_factory=set)
    narrow: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.protos = dict(zip(self.graph.nodes, self.model.graph.node, strict=True))
        self.names = {name for node in self.graph.nodes for name in (*node.inputs, *node.outputs)}
        self.opset = opset_of(self.model.opset_import)

    def path(self, tensor: str, *, alone: bool) -> list[Node]:
        """The nodes that lead to a tensor and only move or pad values, the nearest first.

        Args:
            tensor: the tensor.
            alone: whether nothing else may read what they make.
        """
        found: list[Node] = []
        while (node := self.graph.maker(tensor)) and len(found) < MOST_NODES:
            if alone and self.graph.only_reader(tensor) is None:
                break
            if (
                node.op not in MOVES
                and not passes(self.graph, node)
                and not (node.op == PAD and self._pads_codes(node))
            ):
                break
            found.append(node)
            tensor = node.inputs[0]
        return found

    def _pads_codes(self, node: Node) -> bool:
        return self.opset >= OLDEST_PAD and (not node.input(2) or self.graph.is_constant(node.input(2)))

    def moved(self, node: Node, codes: str, fill: Array | None, result: str) -> onnx.NodeProto:
        """A node that moves values, on codes.

        Args:
            node: the node.
            codes: the codes that it reads.
            fill: the code that it adds, where it is a Pad that adds one.
            result: the codes that it makes.
        """
        proto = onnx.NodeProto()
        proto.CopyFrom(self.protos[node])
        proto.input[0], proto.output[0] = codes, result
        if node.op == PAD:
            added = "" if fill is None else self.constant(f"{result}/fill", fill)
            del proto.input[2:]
            proto.input.extend([added, *node.inputs[3:4]] if added or node.input(3) else [])
        return proto

    def constant(self, name: str, value: Array) -> str:
        """Store a constant; return its name."""
        name = self.fresh(name)
        self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def fresh(self, name: str) -> str:
        """A name that no tensor has yet."""
        while name in self.names:
            name += "'"
        self.names.add(name)
        return name

    def state(self, tensor: str, dtype_of: str, shape_of: str) -> None:
        """State that a new tensor has the dtype of one that is known, and the shape of another."""
        if tensor not in self.graph.types:
            self.declare(tensor, self.graph.type_of(dtype_of).dtype, self.graph.type_of(shape_of).shape)

    def declare(self, tensor: str, dtype: str, shape: Shape | None) -> None:
        """State the dtype and the shape of a new tensor."""
        sizes = None if shape is None else [None if size == "?" else size for size in shape]
        info = helper.make_tensor_value_info(tensor, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), sizes)
        self.model.graph.value_info.append(info)

    def apply(self) -> None:
        """Put new nodes in their places, and leave out nodes that nobody reads."""
        nodes = [
            (node, [*self.instead.get(node, [self.protos[node]]), *self.beside.get(node, [])])
            for node in self.graph.nodes
        ]
        while True:
            read = {name for _, protos in nodes for proto in protos for name in _read(proto)} | {*self.graph.outputs}
            dead = {node for node in self.left - self.instead.keys() if not read & set(node.outputs)}
            self.left -= dead
            nodes = [(node, protos[1:] if node in dead else protos) for node, protos in nodes]
            if not dead:
                break
        if self.instead:
            copy = onnx.GraphProto()
            copy.node.extend(proto for _, each in nodes for proto in each)
            _name_apart(copy)
            del self.model.graph.node[:]
            self.model.graph.node.extend(copy.node)


def _name_apart(graph: onnx.GraphProto) -> None:
    """Rename nodes whose names others have: ONNX Runtime refuses two nodes of one name."""
    names = set[str]()
    for node in graph.node:
        while node.name in names:
            node.name += "'"
        names |= {node.name} - {""}
