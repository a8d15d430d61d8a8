"""Say why the type of a tensor is unknown: name the first node whose result ONNX's shape inference doesn't know."""

from hexconv.model.graph import Graph, TensorType


def unknown(graph: Graph, tensor: str) -> str:
    """Why the type of a tensor is unknown, in words; empty where type and axes are known.

    Tensors that are unknown for the same reason have the same words.

    Args:
        graph: the graph of the model.
        tensor: the name of one of its tensors.
    """
    if _is_known(graph.type_of(tensor)):
        return ""
    node = graph.maker(tensor)
    while node and (sources := [name for name in node.inputs if name and not _is_known(graph.type_of(name))]):
        tensor = sources[0]
        node = graph.maker(tensor)
    if node is None:
        return f"the model does not say what {tensor} is, and ONNX's shape inference needs it"
    read = " and ".join(f"{name} {_words(graph.type_of(name))}" for name in node.inputs if name) or "nothing"
    advice = "" if "." in node.op else "; another --shape may suit the model"
    return f"ONNX's shape inference ends at {node.op} {node.name}, which reads {read}{advice}"


def _is_known(found: TensorType) -> bool:
    return bool(found.dtype) and found.shape is not None


def _words(found: TensorType) -> str:
    return f"[{', '.join(map(str, found.shape or ()))}]"
