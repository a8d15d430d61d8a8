"""Infer the types of all tensors; constants that shapes may depend on are folded first.

ONNX's inference follows values through few operators. The amounts of a Pad that PyTorch computes from constants by
Concat, Reshape, Slice and Transpose are lost to it, and all sizes behind the Pad with them. So in a copy of the model
small constants become initialisers, round by round, since the size of one may depend on the value of another:

    before:  p = Cast(Reshape(Transpose(Slice(Reshape(Concat(pads, zeros))))));  y = Pad(x, p)
    after:   p = [0, 0, 1, 1, 0, 0, 1, 1];                                       y = Pad(x, p)

In that copy, operators of ONNX Runtime's own domain are written as ONNX's too. Only types go back into the model.
"""

from collections.abc import Collection, Iterator
from math import prod
from pathlib import Path

import onnx
from onnx import helper, numpy_helper
from onnx.shape_inference import infer_shapes

from hexconv.model.constants import Array, Constants
from hexconv.model.contributed import as_standard
from hexconv.model.graph import TensorType, tensor_types
from hexconv.model.refused import Refused

MOST_ELEMENTS = 1 << 12
"""The most elements of a constant that a shape may depend on."""
MOST_ROUNDS = 64


def inferred(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The model with all types that can be inferred.

    Args:
        model: the model, without functions.
        folder: the folder that external data lies in.
    """
    found = infer_shapes(model, data_prop=True)
    made, types = [name for node in model.graph.node for name in node.output if name], tensor_types(found.graph)
    if all(types.get(name, TensorType()).is_fixed for name in made):
        return found
    copy = _copy(model)
    typed = infer_shapes(copy, data_prop=True)
    for _ in range(MOST_ROUNDS):
        folded = _folded(typed, folder)
        if not folded:
            break
        kept = [node for node in copy.graph.node if not folded.keys() & set(node.output)]
        del copy.graph.node[:]
        copy.graph.node.extend(kept)
        copy.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in folded.items())
        typed = infer_shapes(copy, data_prop=True)
    _take_over(found.graph, typed.graph, made)
    return found


def declared(graph: onnx.GraphProto, names: Collection[str]) -> onnx.GraphProto:
    """A copy of a graph in which some initialisers are inputs, so that nothing reads what they hold."""
    given = {info.name for info in graph.input}
    stored = [tensor for tensor in graph.initializer if tensor.name in names and tensor.name not in given]
    return helper.make_graph(
        graph.node,
        graph.name,
        [*graph.input, *(helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in stored)],
        graph.output,
        [tensor for tensor in graph.initializer if tensor.name not in names],
        value_info=graph.value_info,
    )


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in ONNX's own operators, without its large constants: no shape depends on what they hold."""
    large = {tensor.name for tensor in model.graph.initializer if prod(tensor.dims) > MOST_ELEMENTS}
    graph = declared(model.graph, large)
    del graph.node[:]
    graph.node.extend(part for node in model.graph.node for part in as_standard(node))
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def _folded(model: onnx.ModelProto, folder: Path) -> dict[str, Array]:
    """The small constants that nodes make and that can be computed, by name; of a node all results or none."""
    shapes = {name: found.shape for name, found in tensor_types(model.graph).items()}
    constants = Constants(model, folder, shapes, MOST_ELEMENTS)
    found: dict[str, Array] = {}
    for node in model.graph.node:
        names = [name for name in node.output if name]
        if all(name in constants for name in names):
            try:
                found |= {name: constants.value(name) for name in names}
            except Refused:  # its size is not known yet, or it is no constant of a shape
                continue
    return found


def _take_over(graph: onnx.GraphProto, typed: onnx.GraphProto, made: list[str]) -> None:
    """State the types of `typed` in a graph, for the tensors that its nodes make."""
    types = dict(_stated(typed))
    for output in graph.output:
        if output.name in types:
            output.type.CopyFrom(types[output.name])
    others = [info for info in graph.value_info if info.name not in types]
    outputs = {output.name for output in graph.output}
    more = [name for name in made if name in types and name not in outputs]
    del graph.value_info[:]
    graph.value_info.extend([*others, *(onnx.ValueInfoProto(name=name, type=types[name]) for name in more)])


def _stated(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TypeProto]]:
    """The types of all tensors that nodes make, or made before they were folded."""
    for tensor in graph.initializer:
        yield tensor.name, helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
    yield from ((info.name, info.type) for info in (*graph.value_info, *graph.output) if info.HasField("type"))
