"""Inline the functions that a model defines, unless that would make it too large or never end."""

from collections.abc import Iterable, Mapping

import onnx
from onnx.inliner import inline_local_functions

MOST_NODES = 100_000
Sizes = Mapping[tuple[str, str], int]


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inline all functions of a model; return the model without them.

    Raises:
        ValueError: the model would have more than `MOST_NODES` nodes: a few functions that call each other twice grow
            to any number, and one that calls itself has no end.
    """
    sizes: Sizes = {(function.domain, function.name): len(function.node) for function in model.functions}
    before: Sizes = {}
    while sizes != before:
        nodes = _nodes(model.graph.node, sizes)
        if max(nodes, *sizes.values(), 0, 0) > MOST_NODES:
            raise ValueError(f"{nodes} nodes or more; at most {MOST_NODES} are read")
        bodies = {(function.domain, function.name): function.node for function in model.functions}
        before, sizes = sizes, {name: _nodes(body, sizes) for name, body in bodies.items()}
    return inline_local_functions(model) if model.functions else model


def _nodes(body: Iterable[onnx.NodeProto], sizes: Sizes) -> int:
    """Count the nodes of a body; a call counts as many as its function has."""
    return sum(sizes.get((node.domain, node.op_type), 1) for node in body)
