"""Operators outside of chains: what each reads and writes in memory, in bytes, from the graph alone.

A call of a network runs its chains, and an operator for each node that no chain has. This account asks for no operator
of hexconv's own, so it covers networks that `build` can't compile yet.

    view        Identity, Dropout, Reshape, Flatten, Squeeze, Unsqueeze and DequantizeLinear move nothing: who reads
                their result reads the tensor before them, as codes where that tensor is quantised.
    epilogue    Relu, Clip, views and the QuantizeLinear that alone read an operator's result run inside of it: it
                writes codes.
    operand     every other tensor is read once by each operator that reads it, constants included; weights and biases
                behind a DequantizeLinear are read as stored, and scales and zero points are left out.
    result      every result is written once.

Copies between layouts are not in it: which ones a call needs depends on its plan.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.model.chains import CLAMPS, Run
from hexconv.model.graph import VIEWS, Graph, Node
from hexconv.model.manifest import OperatorEntry

DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
MOVING_NOTHING = (*VIEWS, DEQUANTIZE)
SHOWN_OPERATORS = 6


def unfused_operators(graph: Graph, runs: Sequence[Run]) -> tuple[OperatorEntry, ...]:
    """Account for every node that a call computes outside of the chains, in the order of the graph."""
    needed = graph.needed({run.result: run.source for run in runs})
    return tuple(_Account(graph, set(needed.values())).entries())


def unfused_lines(entries: Sequence[OperatorEntry]) -> Iterator[str]:
    """Yield a line on what a call moves outside of chains, by operator, the most bytes first.

    >>> add = OperatorEntry(node="a", op="Add", reads_bytes=200, writes_bytes=100, elements=100)
    >>> list(unfused_lines([add, OperatorEntry(node="p", op="MaxPool", reads_bytes=100, writes_bytes=25, elements=25)]))
    ['outside of chains 2 operators move 425 bytes a call: Add (1) 300, MaxPool (1) 125']
    """
    if not entries:
        return
    moved, counts = Counter[str](), Counter(entry.op for entry in entries)
    for entry in entries:
        moved[entry.op] += entry.moved_bytes
    most = [f"{op} ({counts[op]}) {size}" for op, size in moved.most_common(SHOWN_OPERATORS)]
    rest = sum(moved.values()) - sum(size for _, size in moved.most_common(SHOWN_OPERATORS))
    more = [f"{len(moved) - SHOWN_OPERATORS} others {rest}"] if len(moved) > SHOWN_OPERATORS else []
    yield (
        f"outside of chains {len(entries)} {'operators move' if len(entries) > 1 else 'operator moves'} "
        f"{sum(moved.values())} bytes a call: {', '.join([*most, *more])}"
    )
    if left_out := [entry.node for entry in entries if entry.is_open]:
        yield f"{len(left_out)} of them have tensors of open sizes, which are left out: {', '.join(left_out[:3])}"


@dataclass(frozen=True)
class _Account:
    """The nodes that a call needs, and the tensors that they read and write behind views and epilogues."""

    graph: Graph
    needed: set[Node | None]

    def entries(self) -> Iterator[OperatorEntry]:
        """Yield the account of each operator."""
        inside = set[Node]()
        for node in self.graph.nodes:
            if node not in self.needed or node in inside or self._is_view(node):
                continue
            results = []
            for result in filter(None, node.outputs):
                epilogue = list(self._epilogue(result))
                inside.update(epilogue)
                results.append(epilogue[-1].outputs[0] if epilogue else result)
            yield self._entry(node, results)

    def _is_view(self, node: Node) -> bool:
        """Whether a node moves nothing; one that makes floats for the caller writes them."""
        return node.op in MOVING_NOTHING and not (node.op == DEQUANTIZE and node.outputs[0] in self.graph.outputs)

    def _epilogue(self, tensor: str) -> Iterator[Node]:
        """Yield the nodes that run inside of the operator that makes a tensor, up to the QuantizeLinear."""
        found = list[Node]()
        while (reader := self.graph.only_reader(tensor)) and reader.inputs[0] == tensor:
            found.append(reader)
            if reader.op == QUANTIZE:
                yield from found
                return
            if reader.op not in (*CLAMPS, *VIEWS):
                return
            tensor = reader.outputs[0]

    def _entry(self, node: Node, results: Sequence[str]) -> OperatorEntry:
        inputs = node.inputs[:1] if node.op in (DEQUANTIZE, QUANTIZE) else node.inputs
        reads = [self._read(name) for name in (*inputs, *node.captured) if name]
        sizes = [(self._bytes(name), self._elements(name)) for name in results]
        read_bytes = [self._bytes(name) for name in reads]
        known = None not in read_bytes and all(None not in size for size in sizes)
        return OperatorEntry(
            node=node.name,
            op=node.op,
            reads_bytes=sum(size or 0 for size in read_bytes),
            writes_bytes=sum(size or 0 for size, _ in sizes),
            elements=sum(count or 0 for _, count in sizes),
            is_open=not known,
        )

    def _read(self, tensor: str) -> str:
        """The tensor that lies in memory where a node reads this one."""
        while (maker := self.graph.maker(tensor)) and maker.op in MOVING_NOTHING:
            tensor = maker.inputs[0]
        return tensor

    def _elements(self, tensor: str) -> int | None:
        """How many elements a tensor has; None where a size is open."""
        shape = self.graph.type_of(tensor).shape
        if shape is None or any(not isinstance(size, int) for size in shape):
            return None
        return prod(size for size in shape if isinstance(size, int))

    def _bytes(self, tensor: str) -> int | None:
        """How many bytes a tensor takes; None where its dtype or a size is open."""
        count, dtype = self._elements(tensor), self.graph.type_of(tensor).dtype
        try:
            return None if count is None or not dtype else count * np.dtype(dtype).itemsize
        except TypeError:  # a dtype that numpy doesn't know, such as a string's or int4
            return None
