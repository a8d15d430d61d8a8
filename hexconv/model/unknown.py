"""Say why the type of a tensor is unknown, or a size open: name the tensor or the node where that begins."""

from collections.abc import Callable

from hexconv.model.contributed import is_optimised
from hexconv.model.graph import Graph, Node, TensorType


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
    sizes = _words(graph.type_of(tensor))
    if node is None:
        return (
            f"the model's input {tensor} {sizes} has open sizes: say them, --shape {tensor}={_example(graph, tensor)}"
        )
    return (
        f"the sizes of {tensor} {sizes} are open: {node.op} {node.name} makes them of {_read(graph, node)}; "
        "export the model with fixed sizes"
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
