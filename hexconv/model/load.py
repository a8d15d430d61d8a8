"""Load an ONNX file: check it, inline its functions, infer its shapes; large external weights are not read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from hexconv.errors import InputError
from hexconv.model.commuted import commuted
from hexconv.model.functions import inlined
from hexconv.model.inference import declared, inferred

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
        _check_external(model.graph, path.parent)
        model = inlined(model)
        _check_names(model.graph)
        # Shapes stated in the file may be for another batch: once an input is given, inference finds all others anew.
        if shapes:
            _fix_inputs(model, shapes, str(path))
            del model.graph.value_info[:]
        return commuted(inferred(model, path.parent), path.parent)
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
            for attribute in node.attribute:
                yield attribute.name
                waiting += [inner for inner in (attribute.g, *attribute.graphs) if inner.node]


def _check_external(graph: onnx.GraphProto, folder: Path) -> None:
    """Check that external files lie in the model's folder, and are long enough for their tensors."""
    for tensor in graph.initializer:
        if uses_external_data(tensor):
            info = ExternalDataInfo(tensor)
            if not (folder / info.location).resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"{info.location}, the data of {tensor.name}, lies outside of the model's folder")
            size, end = (folder / info.location).stat().st_size, (info.offset or 0) + (info.length or 0)
            if end > size:
                raise ValueError(f"{info.location} of {size} bytes, where {tensor.name} ends at {end}")


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
    stated = [dim.dim_value if dim.dim_value > 0 else dim.dim_param or "?" for dim in dims]
    fits = len(stated) == len(sizes) and all(
        s == size for s, size in zip(stated, sizes, strict=True) if isinstance(s, int)
    )
    if not fits:
        raise InputError(where, str(list(sizes)), f"sizes for the open ones of {stated}".replace("'", ""))


def _first_line(error: Exception) -> str:
    """The first line of an error, without the context lines that onnx adds."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
