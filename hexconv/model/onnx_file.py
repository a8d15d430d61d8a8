"""Load an ONNX file: check it, inline its functions, fold constants, infer its types and shapes.

ONNX's inference follows values through few operators. The amounts of a Pad that PyTorch computes from constants by
Concat, Reshape, Slice and Transpose are lost to it, and all sizes behind the Pad with them. So in a copy of the model
small constants become initialisers, round by round, since the size of one may depend on the value of another:

    before:  p = Cast(Reshape(Transpose(Slice(Reshape(Concat(pads, zeros))))));  y = Pad(x, p)
    after:   p = [0, 0, 1, 1, 0, 0, 1, 1];                                       y = Pad(x, p)

In that copy, operators of ONNX Runtime's own domain are written as ONNX's too. Only types go back into the model.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor, uses_external_data
from onnx.inliner import inline_local_functions
from onnx.shape_inference import infer_shapes

from hexconv.errors import InputError
from hexconv.model.constants import Array, Constants
from hexconv.model.contributed import as_standard
from hexconv.model.graph import TensorType, size_of, tensor_types
from hexconv.model.refused import Refused
from hexconv.model.transposed import with_phases

MOST_NODES = 100_000
Sizes = dict[tuple[str, str], int]


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inline all functions of a model; return the model without them.

    Raises:
        ValueError: the model would have more than `MOST_NODES` nodes: a few functions that call each other twice grow
            to any number, and one that calls itself has no end.
    """
    before, sizes = None, Sizes()
    while sizes != before:
        nodes = _nodes(model.graph.node, sizes)
        if max(nodes, *sizes.values(), 0, 0) > MOST_NODES:
            raise ValueError(f"{nodes} nodes or more; at most {MOST_NODES} are read")
        before, sizes = sizes, _sizes(model.functions, sizes)
    return inline_local_functions(model) if model.functions else model


def _sizes(functions: Iterable[onnx.FunctionProto], sizes: Sizes) -> Sizes:
    """Count the nodes of functions by name, one call deeper than is known; of overloads the largest counts."""
    found = Sizes()
    for function in functions:
        name = function.domain, function.name
        found[name] = max(found.get(name, 0), _nodes(function.node, sizes))
    return found


def _nodes(body: Iterable[onnx.NodeProto], sizes: Sizes) -> int:
    """Count the nodes of a body and of the bodies inside; a call counts as many as its function has."""
    return sum(
        sizes.get((node.domain, node.op_type), 1) + sum(_nodes(inner.node, sizes) for inner in _bodies(node))
        for node in body
    )


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the bodies inside of a node: branches, and what a loop repeats."""
    for attribute in node.attribute:
        yield from (inner for inner in (attribute.g, *attribute.graphs) if inner.node)


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


LARGEST_FILE_BYTES = 2**31 - 1
"""The limit of protobuf; larger models keep their weights in files of their own (external data)."""

Shapes = Mapping[str, Sequence[int]]


def load_model(path: Path, shapes: Shapes | None = None) -> onnx.ModelProto:
    """Read a model; check that external data is there, without reading it.

    Args:
        path: the `.onnx` file.
        shapes: the shapes of inputs of the model, by name, where the file leaves sizes open.

    Raises:
        InputError: the file is missing, too large, no valid ONNX model, its external data is missing or outside of its
            folder, or an input of `shapes` isn't one of the model's.
    """
    _check_size(path)
    try:
        model = _checked(path)
        for tensor in model.graph.initializer:
            _check_external(tensor, path.parent)
        model = inlined(model)
        _load_attributes(model.graph, path.parent)
        _check_names(model.graph)
        # Shapes stated in the file may be for another batch: once an input is given, inference finds all others anew.
        if shapes:
            _fix_inputs(model, shapes, str(path))
            del model.graph.value_info[:]
        return with_phases(inferred(model, path.parent), path.parent)
    except OSError as error:
        raise InputError.because(
            f"{path}: {error.strerror or 'not readable'}", "name an ONNX model that can be read"
        ) from None
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, DecodeError) as error:
        raise InputError.because(f"{path}: {_first_line(error)}", "name a valid ONNX model with all its data") from None
    except (ValueError, RuntimeError) as error:  # what is said above, and what onnx's C++ throws at bad functions
        raise InputError.because(f"{path}: {_first_line(error)}", "name a valid ONNX model") from None


def _check_size(path: Path) -> None:
    """Check that the file is there, and no larger than a model can be."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError.because(
            f"{path}: {error.strerror or 'not readable'}", "name an ONNX model that exists"
        ) from None
    if not path.is_file():
        raise InputError.because(f"{path} is no regular file", "name an ONNX model")
    if size > LARGEST_FILE_BYTES:
        allowed = f"at most {LARGEST_FILE_BYTES}; save the weights as external data"
        raise InputError(str(path), f"{size} bytes", allowed)


def _checked(path: Path) -> onnx.ModelProto:
    """Read a file, and check it; an output without a type is left to inference, though ONNX's checker wants one."""
    model = onnx.load(path, load_external_data=False)
    model.SerializeToString()
    typed = [output for output in model.graph.output if _has_shape(output)]
    if len(typed) == len(model.graph.output):
        onnx.checker.check_model(str(path))
        return model
    # Of a model without a path the checker can't find external data, which is checked below.
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    rest.graph.CopyFrom(
        declared(model.graph, {each.name for each in rest.graph.initializer if uses_external_data(each)})
    )
    del rest.graph.output[:]
    rest.graph.output.extend(typed)
    onnx.checker.check_model(rest)
    return model


def _has_shape(output: onnx.ValueInfoProto) -> bool:
    kind = output.type.WhichOneof("value")
    return bool(kind) and (kind != "tensor_type" or output.type.tensor_type.HasField("shape"))


def _check_names(graph: onnx.GraphProto) -> None:
    """Check that every name is text; protobuf gives bytes where a name isn't UTF-8."""
    for name in _names(graph):
        if not isinstance(name, str):
            raise ValueError(f"the name {name!r}, which is no UTF-8")


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """All names of a graph and of the bodies in it."""
    waiting = [graph]
    while waiting:
        body = waiting.pop()
        for tensor in (*body.input, *body.output, *body.value_info):
            yield tensor.name
            yield from (dim.dim_param for dim in tensor.type.tensor_type.shape.dim)
        yield from (tensor.name for tensor in body.initializer)
        for node in body.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
            yield from (attribute.name for attribute in node.attribute)
            waiting += _bodies(node)


WIDEST_BYTES = 16
"""The bytes of an element of the widest type that ONNX has."""


def _check_external(tensor: onnx.TensorProto, folder: Path) -> None:
    """Check that an external file lies in the model's folder, and has as many bytes as its tensor may have."""
    if not uses_external_data(tensor):
        return
    info = ExternalDataInfo(tensor)
    if not (folder / info.location).resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{info.location}, the data of {tensor.name}, lies outside of the model's folder")
    size, begin = (folder / info.location).stat().st_size, info.offset or 0
    end = begin + info.length if info.length else size  # what states no length is read to its file's end
    if not 0 <= begin <= end <= size:
        raise ValueError(f"{info.location} of {size} bytes, where {tensor.name} ends at {end}")
    if end - begin > (most := prod(tensor.dims) * WIDEST_BYTES):
        raise ValueError(f"{info.location} with {end - begin} bytes of {tensor.name}, which has {most} at most")


def _load_attributes(graph: onnx.GraphProto, folder: Path) -> None:
    """Read the external data of attributes, of bodies too: ONNX's evaluator would look in the working folder."""
    for node in graph.node:
        for attribute in node.attribute:
            for tensor in (attribute.t, *attribute.tensors):
                _check_external(tensor, folder)
                if uses_external_data(tensor):
                    load_external_data_for_tensor(tensor, str(folder))
        for inner in _bodies(node):
            for tensor in inner.initializer:
                _check_external(tensor, folder)
            _load_attributes(inner, folder)


def _fix_inputs(model: onnx.ModelProto, shapes: Shapes, where: str) -> None:
    """Give inputs of the model the shapes that were asked for."""
    inputs = {tensor.name: tensor for tensor in model.graph.input}
    for name, sizes in shapes.items():
        if name not in inputs:
            raise InputError(f"{where}: --shape", name, f"an input of the model: {', '.join(inputs) or 'it has none'}")
        dims = inputs[name].type.tensor_type.shape.dim
        _check_agrees(f"{where}: --shape {name}", dims, sizes)
        for dim, size in zip(dims, sizes, strict=True):
            dim.dim_value = size
    for tensor in model.graph.output:
        tensor.type.tensor_type.ClearField("shape")


def _check_agrees(where: str, dims: Sequence[onnx.TensorShapeProto.Dimension], sizes: Sequence[int]) -> None:
    """Check that the given sizes change no size that the model fixes."""
    stated = [size_of(dim) for dim in dims]
    fits = len(stated) == len(sizes) and all(
        s == size for s, size in zip(stated, sizes, strict=True) if isinstance(s, int)
    )
    if not fits:
        raise InputError(where, str(list(sizes)), f"sizes for the open ones of {stated}".replace("'", ""))


def _first_line(error: Exception) -> str:
    """The first line of an error, without the context lines that onnx adds."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
