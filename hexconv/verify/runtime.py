"""Run models with ONNX Runtime, whole, with inner tensors as outputs, or in parts; inputs read from a file or drawn."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from hexconv.errors import InputError, ToolMissing
from hexconv.model.graph import Graph, Node
from hexconv.model.onnx_file import Shapes, load_model
from hexconv.run.array_files import Form
from hexconv.run.given import drawn_inputs
from hexconv.run.machine_parts import INSTALL_RUNTIME

Array = NDArray[Any]
Values = Mapping[str, Array]
FATAL_ALONE = 4
"""Of its log levels; what fails is told by an exception too."""
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

    def run(self, inputs: Values) -> dict[str, Array]:
        """Compute the model's outputs, by name."""
        return run(self.model, self.name, self.outputs, inputs)

    def tapped(self, tensors: Sequence[str], inputs: Values) -> dict[str, Array]:
        """Compute the model's outputs and some inner tensors, by name.

        ONNX Runtime fuses no nodes across a tensor that it has to give back, so that it may fuse other nodes than
        without: each tensor is its answer all the same.
        """
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        names = list(dict.fromkeys((*self.outputs, *tensors)))
        model.graph.output.extend(self._info(name) for name in names[len(set(self.outputs)) :])
        return run(model, self.name, names, inputs)

    def computed(self, wanted: Sequence[str], known: Values, fuses: bool = True) -> dict[str, Array]:
        """Compute the wanted tensors out of the known ones, by name; wanted ones that are known are left out.

        Args:
            wanted: the names of the tensors to compute.
            known: the values of others, by name.
            fuses: whether ONNX Runtime may fuse nodes, and lay tensors out anew.
        """
        missing = [name for name in wanted if name not in known]
        if not missing:
            return {}
        model, reads = self.part(missing, known)
        return run(model, self.name, missing, {name: known[name] for name in reads}, fuses)

    def part(self, wanted: Sequence[str], known: Values) -> tuple[onnx.ModelProto, tuple[str, ...]]:
        """Cut out the part of the model that computes some tensors from others; return it and the names that it reads.

        Args:
            wanted: the names of the tensors to compute.
            known: the tensors that have a value already, so that the nodes that make them are left out.
        """
        nodes = self.needed(wanted, known)
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

    def needed(self, wanted: Sequence[str], known: Collection[str]) -> set[Node]:
        """Return all nodes between the known tensors and the wanted ones."""
        waiting, found = list(wanted), set[Node]()
        while waiting:
            maker = None if (name := waiting.pop()) in known else self.graph.maker(name)
            if maker and maker not in found:
                found.add(maker)
                waiting += [read for read in (*maker.inputs, *maker.captured) if read]
        return found

    @cached_property
    def _stored(self) -> dict[str, onnx.TensorProto]:
        return {tensor.name: tensor for tensor in self.model.graph.initializer}

    def _info(self, name: str) -> onnx.ValueInfoProto:
        """Return the name of a tensor, and its type where the model states it; ONNX Runtime infers it where not."""
        graph = self.model.graph
        stated = (info for info in (*graph.output, *graph.value_info, *graph.input) if info.name == name)
        return next(stated, onnx.ValueInfoProto(name=name))


def run(
    model: onnx.ModelProto, name: str, outputs: Sequence[str], inputs: Values, fuses: bool = True
) -> dict[str, Array]:
    """Run a model with ONNX Runtime; return these outputs by name.

    What it can't run once it has fused nodes, it runs node by node.

    Args:
        model: the model, with all of its data inside.
        name: the name of its file, for errors.
        outputs: the names of its outputs.
        inputs: the inputs by name.
        fuses: whether ONNX Runtime may fuse nodes, and lay tensors out anew.

    Raises:
        ToolMissing: ONNX Runtime is not installed.
        InputError: ONNX Runtime does not take the model, or can't run it on these inputs.
    """
    found = runtime()
    options = found.SessionOptions()
    options.log_severity_level = FATAL_ALONE
    if not fuses:
        options.graph_optimization_level = found.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = found.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return dict(zip(outputs, session.run(list(outputs), dict(inputs)), strict=True))
    except Exception as error:  # ONNX Runtime's errors have no class in common
        if fuses:  # it fuses block-quantised weights into kernels that don't take them
            return run(model, name, outputs, inputs, fuses=False)
        told = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        message = f"{name}: ONNX Runtime refuses the model: {told}"
        raise InputError.because(message, "name a model that it runs") from None


def runtime() -> Any:
    """Import ONNX Runtime.

    Raises:
        ToolMissing: it is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise ToolMissing(f"verify needs ONNX Runtime, which is not installed: {INSTALL_RUNTIME}") from None
    return onnxruntime


def _typed(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def inputs_of(graph: Graph, names: Sequence[str], model: str, given: Path | None, seed: int) -> dict[str, Array]:
    """Read or draw all inputs of a network.

    Args:
        graph: the graph of the model.
        names: the names of its inputs.
        model: the name of its file, for errors.
        given: an `.npz` file with these arrays; without one they are drawn.
        seed: the seed of the values that are drawn.

    Raises:
        InputError: a size is open, the file can't be used, or an input is of a dtype that nothing is drawn for.
    """
    return drawn_inputs({name: form_of(graph, name, model) for name in names}, model, given, seed)


def form_of(graph: Graph, name: str, model: str) -> Form:
    """Return the shape and dtype of an input; errors are those of `inputs_of`."""
    found = graph.type_of(name)
    sizes = [size for size in found.shape or () if isinstance(size, int)]
    if found.shape is None or len(sizes) < len(found.shape):
        told, (lack, cure) = ",".join(map(str, found.shape or ("?",))), found.lack
        raise InputError.because(f"{model}: the input {name} {lack}, {told}", f"{cure}: --shape {name}=1,3,224,224")
    return tuple(sizes), found.dtype
