"""Two kinds of models made out of one: one with more outputs, and one that computes some tensors from others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx
from onnx import helper

from hexconv.errors import InputError
from hexconv.model.graph import Graph, Node
from hexconv.model.load import Shapes, load_model
from hexconv.verify.runtime import Array

LARGEST_MODEL_BYTES = 2**31 - 1
"""The limit of protobuf, the form in which a model is handed to ONNX Runtime."""


@dataclass(frozen=True)
class Whole:
    """A model with all of its data.

    Attributes:
        model: the model as `hexconv.model` sees it: functions inlined, shapes inferred.
        graph: its graph.
        name: the name of its file.
    """

    model: onnx.ModelProto
    graph: Graph
    name: str

    @classmethod
    def load(cls, path: Path, shapes: Shapes | None) -> "Whole":
        """Read a model and its data.

        Raises:
            InputError: the file can't be used, or is larger than what can be handed over.
        """
        model = load_model(path, shapes)
        onnx.load_external_data_for_model(model, str(path.parent))
        if (size := model.ByteSize()) > LARGEST_MODEL_BYTES:
            raise InputError(str(path), f"{size} bytes with all weights", f"at most {LARGEST_MODEL_BYTES} to verify")
        return cls(model, Graph.of(model, path.parent), path.name)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the model's outputs, in its order."""
        return tuple(output.name for output in self.model.graph.output)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the model's inputs, without those that have a value in the file."""
        return tuple(value.name for value in self.model.graph.input if value.name not in self._stored)

    @cached_property
    def _stored(self) -> dict[str, onnx.TensorProto]:
        return {tensor.name: tensor for tensor in self.model.graph.initializer}

    def tapped(self, tensors: Sequence[str]) -> onnx.ModelProto:
        """Return a copy of the model that has these tensors as outputs too."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        there = set(self.outputs)
        model.graph.output.extend(self._info(name) for name in dict.fromkeys(tensors) if name not in there)
        return model

    def part(self, wanted: Sequence[str], known: Mapping[str, Array]) -> tuple[onnx.ModelProto, tuple[str, ...]]:
        """Cut out the part of the model that computes some tensors from others; return it and the names that it reads.

        Args:
            wanted: the names of the tensors to compute.
            known: the tensors that have a value already, so that the nodes that make them are left out.
        """
        nodes = self._needed(wanted, known)
        read = {name for node in nodes for name in (*node.inputs, *node.captured)}
        inputs = tuple(name for name in known if name in read)
        graph = helper.make_graph(
            [proto for proto, node in zip(self.model.graph.node, self.graph.nodes, strict=True) if node in nodes],
            self.model.graph.name,
            [_typed(name, known[name]) for name in inputs],
            [self._info(name) for name in wanted],
            [tensor for name, tensor in self._stored.items() if name in read and name not in known],
        )
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.graph.CopyFrom(graph)
        return model, inputs

    def _needed(self, wanted: Sequence[str], known: Collection[str]) -> set[Node]:
        """Return all nodes between the known tensors and the wanted ones."""
        waiting, found = list(wanted), set[Node]()
        while waiting:
            maker = None if (name := waiting.pop()) in known else self.graph.maker(name)
            if maker and maker not in found:
                found.add(maker)
                waiting += [read for read in (*maker.inputs, *maker.captured) if read]
        return found

    def _info(self, name: str) -> onnx.ValueInfoProto:
        """Return the name and the type of a tensor, in ONNX's form."""
        graph = self.model.graph
        return next(info for info in (*graph.output, *graph.value_info, *graph.input) if info.name == name)


def _typed(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
