"""The graph of a model: who makes and reads a tensor, types, constants, nodes that change no value."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from hexconv.model.constants import SHAPES, SUBGRAPHS, Array, Constants, Shape, elements
from hexconv.model.contributed import is_optimised, is_standard

NO_SIZE = "0"
"""A size of 0, as a symbol, so that it counts as not fixed: tensors of no elements are not computed."""


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor, as far as shape inference knows it.

    Attributes:
        dtype: numpy's name of its dtype, such as `float32`; empty where unknown.
        shape: its sizes; an open size is its symbol, or `?`, and a size of 0 is `NO_SIZE`. None where not even the
            number of axes is known.
    """

    dtype: str = ""
    shape: Shape | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether dtype and all sizes are known."""
        return bool(self.dtype) and elements(self.shape) is not None

    @property
    def lack(self) -> tuple[str, str]:
        """What its sizes lack where they aren't fixed, and what to do about those of an input, in words.

        >>> TensorType("uint8", ("N", 8)).lack, TensorType("uint8", (NO_SIZE, 8)).lack
        (('has open sizes', 'say them'), ('has a size of 0', 'say sizes of 1 or more'))
        """
        if NO_SIZE in (self.shape or ()):
            return "has a size of 0", "say sizes of 1 or more"
        return "has open sizes", "say them"


@dataclass(frozen=True, eq=False)
class Node:
    """One node; two nodes are equal if they are the same.

    Attributes:
        name: its own name, or that of its first output.
        op: its operator, with the domain before it where that isn't ONNX's own; ONNX Runtime's QuantizeLinear and
            DequantizeLinear, which have more dtypes and else the same meaning, count as ONNX's.
        inputs: the names of the tensors that it reads, empty where an optional one is left out.
        outputs: the names of the tensors that it makes, empty where an optional one is left out.
        captured: the tensors that the bodies of an If or a Loop read from outside, beside its inputs.
        attributes: its attributes by name, as Python values.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    captured: tuple[str, ...]
    attributes: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, proto: onnx.NodeProto) -> "Node":
        """Read a node from ONNX's own form."""
        op = proto.op_type if is_standard(proto) else f"{proto.domain}.{proto.op_type}"
        name = proto.name or next((name for name in proto.output if name), op)
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in proto.attribute}
        captured = tuple(dict.fromkeys(_read_inside(proto)))
        return cls(name, op, tuple(proto.input), tuple(proto.output), captured, attributes)

    @property
    def proto(self) -> onnx.NodeProto:
        """The node in ONNX's own form."""
        domain, _, op = self.op.rpartition(".")
        return helper.make_node(op, self.inputs, self.outputs, self.name, domain=domain, **self.attributes)

    def input(self, index: int) -> str:
        """The name of an input, empty where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else ""


@dataclass(frozen=True)
class Graph:
    """The graph of a loaded model.

    Attributes:
        nodes: its nodes, in an order in which they can run.
        types: the types of its tensors, by name.
        constants: its constants, the tensors that don't depend on the model's inputs.
        inputs: names of the tensors that the caller gives, in the model's order.
        outputs: names of the tensors that the model gives back, in the model's order.
    """

    nodes: tuple[Node, ...]
    types: dict[str, TensorType] = field(repr=False)
    constants: Constants = field(repr=False)
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, model: onnx.ModelProto, folder: Path) -> "Graph":
        """Read the graph of a model whose shapes are inferred; external data lies in `folder`."""
        types = tensor_types(model.graph)
        shapes = {name: tensor.shape for name, tensor in types.items()}
        nodes = tuple(Node.of(node) for node in model.graph.node)
        stored = {tensor.name for tensor in model.graph.initializer}
        inputs = tuple(value.name for value in model.graph.input if value.name not in stored)
        outputs = tuple(tensor.name for tensor in model.graph.output)
        return cls(nodes, types, Constants(model, folder, shapes), inputs, outputs)

    @cached_property
    def _makers(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.outputs if name}

    @cached_property
    def _live(self) -> set[Node]:
        return {node for node in self.needed({}).values() if node}

    def is_dead(self, node: Node) -> bool:
        """Whether no output of the model needs what a node makes, which is no constant."""
        return node not in self._live and not any(map(self.is_constant, node.outputs))

    @cached_property
    def _readers(self) -> dict[str, list[Node]]:
        readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            if self.is_dead(node) or (node.op in SHAPES and self.is_constant(node.outputs[0])):
                continue  # it reads no element
            for name in dict.fromkeys((*node.inputs, *node.captured)):
                readers.setdefault(name, []).append(node)
        return readers

    def type_of(self, tensor: str) -> TensorType:
        """The type of a tensor, as far as it is known."""
        return self.types.get(tensor, TensorType())

    def maker(self, tensor: str) -> Node | None:
        """The node that makes a tensor; None for inputs and initialisers."""
        return self._makers.get(tensor)

    def readers(self, tensor: str) -> list[Node]:
        """All nodes that read elements of a tensor for the model's outputs, each once."""
        return self._readers.get(tensor, [])

    def only_reader(self, tensor: str) -> Node | None:
        """The one node that reads a tensor; None if several do, or the tensor is an output of the model."""
        readers = self.readers(tensor)
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def needed(self, chains: Mapping[str, str]) -> dict[str, Node | None]:
        """The tensors that the model's outputs need, each with its maker; None where a chain or the caller makes it.

        Args:
            chains: for the tensor that each chain writes, the one that it reads.
        """
        waiting, found = list(self.outputs), dict[str, Node | None]()
        while waiting:
            name = waiting.pop()
            if not name or name in found or self.is_constant(name):
                continue
            found[name] = maker = None if name in chains else self.maker(name)
            waiting += [*maker.inputs, *maker.captured] if maker else [chains[name]] if name in chains else []
        return found

    def is_constant(self, tensor: str) -> bool:
        """Whether a tensor doesn't depend on the model's inputs."""
        return tensor in self.constants

    def value(self, tensor: str) -> Array:
        """The value of a constant.

        Raises:
            Refused: the constant can't be read or folded.
        """
        return self.constants.value(tensor)


def tensor_types(graph: onnx.GraphProto) -> dict[str, TensorType]:
    """The types of all tensors of which shape inference, or the file, knows something."""
    values = (*graph.value_info, *graph.input, *graph.output)
    types = {value.name: _type(value.type.tensor_type) for value in values}
    stored = {tensor.name: TensorType(_dtype(tensor.data_type), tuple(tensor.dims)) for tensor in graph.initializer}
    return {**types, **stored}


def _type(proto: onnx.TypeProto.Tensor) -> TensorType:
    shape = tuple(size_of(dim) for dim in proto.shape.dim) if proto.HasField("shape") else None
    return TensorType(_dtype(proto.elem_type), shape)


def size_of(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """The size of an axis, or its symbol."""
    is_empty = dim.HasField("dim_value") and dim.dim_value == 0
    return NO_SIZE if is_empty else dim.dim_value if dim.dim_value > 0 else dim.dim_param or "?"


def _dtype(data_type: int) -> str:
    """Numpy's name of an ONNX type; the number of the type where this version of onnx doesn't know it."""
    try:
        return helper.tensor_dtype_to_np_dtype(data_type).name if data_type else ""
    except (KeyError, ValueError):
        return f"type {data_type}"


def _read_inside(proto: onnx.NodeProto) -> Iterator[str]:
    """All names that the bodies of a node read; names that they make themselves may be among them."""
    waiting = [proto]
    while waiting:
        node = waiting.pop()
        for attribute in node.attribute:
            if attribute.type in SUBGRAPHS:
                for body in (attribute.g, *attribute.graphs):
                    for inner in body.node:
                        yield from inner.input
                        waiting.append(inner)
                    yield from (output.name for output in body.output)


RELABELS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
"""Operators that give a tensor another shape, with the same elements in the same order."""
VIEWS = ("Identity", "Dropout", *RELABELS)
"""Operators whose result lies in memory as their first input does, at inference."""


def passes(graph: Graph, node: Node) -> bool:
    """Whether a node gives its first input back unchanged, in the same shape and dtype, and has no other result."""
    if node.op == "Identity":
        return True
    if node.op in (*RELABELS, "Cast"):
        before, after = graph.type_of(node.inputs[0]), graph.type_of(node.outputs[0])
        is_known = before.dtype and before.shape is not None and all(isinstance(size, int) for size in before.shape)
        return bool(is_known) and before == after
    if node.op != "Dropout" or any(graph.readers(mask) for mask in node.outputs[1:] if mask):
        return False
    training = node.input(2)
    return not training or (graph.is_constant(training) and not graph.value(training).any())


def unknown(graph: Graph, tensor: str) -> str:
    """Why the type of a tensor is unknown, in words; empty where type and axes are known.

    Tensors that are unknown for the same reason have the same words.

    Args:
        graph: the graph of the model.
        tensor: the name of one of its tensors.
    """
    if _is_known(graph.type_of(tensor)):
        return ""
    tensor, node = _origin(graph, tensor, _is_known)
    if node is None:
        return f"the model does not say what {tensor} is, and ONNX's shape inference needs it"
    if is_optimised(node.op):
        return optimised(graph)
    advice = "" if "." in node.op else "; another --shape may suit the model"
    return f"ONNX's shape inference ends at {node.op} {node.name}, which reads {_read(graph, node)}{advice}"


def optimised(graph: Graph) -> str:
    """Say that ONNX Runtime has optimised a model, naming the first operator that it made."""
    made = [node for node in graph.nodes if is_optimised(node.op)]
    return (
        f"ONNX Runtime's optimisation made {made[0].op} {made[0].name}, the first of {len(made)} operators of "
        "its own: export the model without ONNX Runtime's optimisation"
    )


def open_sizes(graph: Graph, tensor: str) -> str:
    """Why a tensor of known type has open sizes, in words, and what to do; the same words for the same reason.

    Args:
        graph: the graph of the model.
        tensor: the name of one of its tensors, with a size that is open.
    """
    tensor, node = _origin(graph, tensor, lambda found: found.is_fixed)
    sizes, (lack, cure) = _words(graph.type_of(tensor)), graph.type_of(tensor).lack
    if node is None:
        return f"the model's input {tensor} {sizes} {lack}: {cure}, --shape {tensor}={_example(graph, tensor)}"
    return (
        f"{tensor} {sizes} {lack}: {node.op} {node.name} makes it of {_read(graph, node)}; "
        "export the model with fixed sizes of 1 or more"
    )


def _origin(graph: Graph, tensor: str, is_known: Callable[[TensorType], bool]) -> tuple[str, Node | None]:
    """The first tensor that isn't known on the way to one, and its node; None where it is an input of the model."""
    node = graph.maker(tensor)
    while node and (sources := [name for name in node.inputs if name and not is_known(graph.type_of(name))]):
        tensor = sources[0]
        node = graph.maker(tensor)
    return tensor, node


def _example(graph: Graph, tensor: str) -> str:
    """Sizes that an input may have: the stated ones, one image, and 224 for what else is open."""
    sizes = graph.type_of(tensor).shape or ()
    return ",".join(str(s if isinstance(s, int) else 224 if place else 1) for place, s in enumerate(sizes))


def _read(graph: Graph, node: Node) -> str:
    return " and ".join(f"{name} {_words(graph.type_of(name))}" for name in node.inputs if name) or "nothing"


def _is_known(found: TensorType) -> bool:
    return bool(found.dtype) and found.shape is not None


def _words(found: TensorType) -> str:
    """The sizes of a tensor; one that is a formula of others, by shape inference, is a question mark."""
    return f"[{', '.join(str(size) if str(size).isalnum() else '?' for size in found.shape or ())}]"
