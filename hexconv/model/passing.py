"""Tell nodes that change nothing at inference, so that the search for chains can skip them."""

from hexconv.model.graph import Graph, Node


def passes(graph: Graph, node: Node) -> bool:
    """Whether a node gives its first input back unchanged, and no other output of it is read."""
    if node.op == "Identity":
        return True
    if node.op != "Dropout" or any(graph.readers(mask) for mask in node.outputs[1:] if mask):
        return False
    training = node.input(2)
    return not training or (graph.is_constant(training) and not graph.value(training).any())
