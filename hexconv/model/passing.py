"""Tell nodes that change no value at inference, so that the search for chains can skip them."""

from hexconv.model.graph import Graph, Node

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
