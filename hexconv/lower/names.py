"""Names that a reader knows: loops as the schedule called them, buffers as the caches that they hold.

Only names change. They are changed in the module's JSON, where a name is one field of a variable.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import tvm

from hexconv.lower.walk import CHILDREN
from hexconv.schedule.steps import LOOP_NAME

Node = dict[str, Any]


def rename_loops(module: tvm.IRModule) -> tvm.IRModule:
    """Name every loop that carries the annotation of `hexconv.schedule.steps.name_loops` by it."""
    nodes = _Nodes(module)
    for loop in nodes.of_type("tirx.For"):
        name = nodes.annotations(loop).get(LOOP_NAME)
        if name:
            nodes.rename(loop["data"]["loop_var"], name)
    return nodes.module()


def rename_buffers(module: tvm.IRModule, names: Sequence[str]) -> tvm.IRModule:
    """Name the buffer of the i-th store, in program order, `names[i]`."""
    nodes = _Nodes(module)
    for store, name in zip(nodes.stores(), names, strict=True):
        nodes.rename(store["data"]["buffer"], name)
    return nodes.module()


def drop_annotations(module: tvm.IRModule) -> tvm.IRModule:
    """Take all annotations of loops away: the module as it is built."""
    nodes = _Nodes(module)
    empty = nodes.add({"type": "ffi.Map", "data": []})
    for loop in nodes.of_type("tirx.For"):
        loop["data"]["annotations"] = empty
    return nodes.module()


class _Nodes:
    """The object graph of a module as JSON nodes that refer to each other by index."""

    def __init__(self, module: tvm.IRModule) -> None:
        self._graph = json.loads(tvm.ir.save_json(module))
        self._nodes: list[Node] = self._graph["nodes"]

    def of_type(self, kind: str) -> Iterator[Node]:
        """All nodes of one type, in the order of the file."""
        return (node for node in list(self._nodes) if node["type"] == kind)

    def stores(self) -> Iterator[Node]:
        """All stores of the module's functions, in program order."""
        for function in self.of_type("tirx.PrimFunc"):
            yield from self._stores_in(function["data"]["body"])

    def _stores_in(self, index: int) -> Iterator[Node]:
        """The stores below one statement."""
        node = self._nodes[index]
        if node["type"] == "tirx.BufferStore":
            yield node
        if node["type"] == "tirx.SeqStmt":
            children = self._nodes[node["data"]["seq"]]["data"]
        else:
            children = [node["data"][name] for name in CHILDREN if name in node.get("data", ())]
        for child in children:
            yield from self._stores_in(child)

    def annotations(self, loop: Node) -> dict[str, str]:
        """A loop's annotations whose values are text."""
        flat = self._nodes[loop["data"]["annotations"]].get("data", [])
        values = [self._nodes[index].get("data") for index in flat]
        return dict(zip(values[::2], values[1::2], strict=True))

    def add(self, node: Node) -> int:
        """Append a node and return its index."""
        self._nodes.append(node)
        return len(self._nodes) - 1

    def rename(self, variable: int, name: str) -> None:
        """Give one variable a name of its own (others may share the string node)."""
        self._nodes[variable]["data"]["name"] = self.add({"type": "ffi.String", "data": name})

    def module(self) -> tvm.IRModule:
        """The graph as a module again."""
        return tvm.ir.load_json(json.dumps(self._graph))
