"""Commute quantisers with what only moves or pads values, so that a conv's quantisers lie right beside it.

    before:  codes -> DequantizeLinear -> Transpose -> Conv
    after:   codes -> Transpose -> DequantizeLinear -> Conv

    before:  x -> Pad of 0 -> QuantizeLinear
    after:   x -> QuantizeLinear -> Pad of the zero point

    before:  Conv -> Reshape -> QuantizeLinear
    after:   Conv -> QuantizeLinear -> Reshape

Each element keeps its code, so that all other tensors keep their values. A Pad between two quantisers of one scale and
zero point needs neither of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hexconv.model.constants import Array
from hexconv.model.granularity import along, is_per_tensor, per_slice, spread
from hexconv.model.graph import RELABELS, Graph, Node, passes
from hexconv.model.pointwise import ELEMENTWISE
from hexconv.model.refused import Refused

MOVES = frozenset((*RELABELS, "Transpose", "Slice", "DepthToSpace", "SpaceToDepth"))
"""Operators whose results are elements of their first input."""
QUANTISE, DEQUANTISE, PAD = "QuantizeLinear", "DequantizeLinear", "Pad"
OLDEST_PAD = 11
"""The opset from which on codes can be padded."""
PER_AXIS = 13
"""The opset from which on quantisers have an axis."""
NARROW = ("int4", "uint4")
"""Constants of these are moved here: ONNX Runtime moves none of them."""
MOST_NODES = 32
LARGEST_FILTER = 1 << 26


def commuted(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The model with its quantisers beside its convs, where that changes no value.

    Args:
        model: the model, with shapes inferred; it is changed.
        folder: the folder that external data lies in.
    """
    if any(_op(node) == QUANTISE or _op(node) == DEQUANTISE for node in model.graph.node):
        for step in (_before_quantisers, _behind_dequantisers):
            edits = _Edits(model, Graph.of(model, folder))
            step(edits)
            edits.apply()
    return model


def _read(node: onnx.NodeProto) -> Iterator[str]:
    own = Node.of(node)
    return chain(own.inputs, own.captured)


def _op(node: onnx.NodeProto) -> str:
    return Node.of(node).op.rpartition(".")[2]


@dataclass
class _Edits:
    """Changes to a model.

    Attributes:
        model: the model.
        graph: its graph as it was before them.
        instead: the nodes that take the place of a node.
        beside: the nodes that stand behind a node, which stays if anything reads it.
        left: the nodes that nothing may read any more.
        narrow: constants of less than a byte that were moved, by their names.
    """

    model: onnx.ModelProto
    graph: Graph
    instead: dict[Node, list[onnx.NodeProto]] = field(default_factory=dict)
    beside: dict[Node, list[onnx.NodeProto]] = field(default_factory=dict)
    left: set[Node] = field(default_factory=set)
    narrow: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.protos = dict(zip(self.graph.nodes, self.model.graph.node, strict=True))
        self.names = {name for node in self.graph.nodes for name in (*node.inputs, *node.outputs)}
        self.opset = next((each.version for each in self.model.opset_import if each.domain in ("", "ai.onnx")), 1)

    def path(self, tensor: str, *, alone: bool) -> list[Node]:
        """The nodes that lead to a tensor and only move or pad values, the nearest first.

        Args:
            tensor: the tensor.
            alone: whether nothing else may read what they make.
        """
        found: list[Node] = []
        while (node := self.graph.maker(tensor)) and len(found) < MOST_NODES:
            if alone and self.graph.only_reader(tensor) is None:
                break
            if (
                node.op not in MOVES
                and not passes(self.graph, node)
                and not (node.op == PAD and self._pads_codes(node))
            ):
                break
            found.append(node)
            tensor = node.inputs[0]
        return found

    def _pads_codes(self, node: Node) -> bool:
        return self.opset >= OLDEST_PAD and (not node.input(2) or self.graph.is_constant(node.input(2)))

    def moved(self, node: Node, codes: str, fill: Array | None, result: str) -> onnx.NodeProto:
        """A node that moves values, on codes.

        Args:
            node: the node.
            codes: the codes that it reads.
            fill: the code that it adds, where it is a Pad that adds one.
            result: the codes that it makes.
        """
        proto = onnx.NodeProto()
        proto.CopyFrom(self.protos[node])
        proto.input[0], proto.output[0] = codes, result
        if node.op == PAD:
            added = "" if fill is None else self.constant(f"{result}/fill", fill)
            del proto.input[2:]
            proto.input.extend([added, *node.inputs[3:4]] if added or node.input(3) else [])
        return proto

    def constant(self, name: str, value: Array) -> str:
        """Store a constant; return its name."""
        name = self.fresh(name)
        self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def fresh(self, name: str) -> str:
        """A name that no tensor has yet."""
        while name in self.names:
            name += "'"
        self.names.add(name)
        return name

    def state(self, tensor: str, dtype_of: str, shape_of: str) -> None:
        """State the type of a new tensor."""
        if tensor in self.graph.types:
            return
        dtype, shape = self.graph.type_of(dtype_of).dtype, self.graph.type_of(shape_of).shape
        sizes = None if shape is None else [None if size == "?" else size for size in shape]
        info = helper.make_tensor_value_info(tensor, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), sizes)
        self.model.graph.value_info.append(info)

    def apply(self) -> None:
        """Put new nodes in their places, and leave out nodes that nobody reads."""
        nodes = [
            (node, [*self.instead.get(node, [self.protos[node]]), *self.beside.get(node, [])])
            for node in self.graph.nodes
        ]
        while True:
            read = {name for _, protos in nodes for proto in protos for name in _read(proto)} | {*self.graph.outputs}
            dead = {node for node in self.left - self.instead.keys() if not read & set(node.outputs)}
            self.left -= dead
            nodes = [(node, protos[1:] if node in dead else protos) for node, protos in nodes]
            if not dead:
                break
        if self.instead:
            copy = onnx.GraphProto()
            copy.node.extend(proto for _, each in nodes for proto in each)
            _name_apart(copy)
            del self.model.graph.node[:]
            self.model.graph.node.extend(copy.node)


def _name_apart(graph: onnx.GraphProto) -> None:
    """Rename nodes whose names others have: ONNX Runtime refuses two nodes of one name."""
    names = set[str]()
    for node in graph.node:
        while node.name in names:
            node.name += "'"
        names |= {node.name} - {""}


def _adds(node: Node) -> bool:
    """Whether a node is a Pad that adds a number."""
    return node.op == PAD and node.attributes.get("mode", b"constant") == b"constant"


@dataclass(frozen=True)
class _Fill:
    """The codes of what Pads add: `rint(value / scale) + zero_point`, cut to the dtype."""

    scale: Array
    zero_point: Array

    def code(self, graph: Graph, pad: Node) -> Array:
        """The code of what a Pad adds."""
        value = graph.value(pad.input(2)).reshape(-1)[0] if pad.input(2) else 0.0
        ends = np.iinfo(self.zero_point.dtype)
        code = np.rint(np.float32(value) / self.scale.reshape(())) + self.zero_point.reshape(()).astype(np.int64)
        return np.clip(code, ends.min, ends.max).astype(self.zero_point.dtype)

    def is_exact(self, graph: Graph, pad: Node) -> bool:
        """Whether the code stands for just what a Pad adds."""
        value = graph.value(pad.input(2)).reshape(-1)[0] if pad.input(2) else 0.0
        steps = self.code(graph, pad).astype(np.int64) - self.zero_point.reshape(()).astype(np.int64)
        return bool(np.float32(steps) * self.scale.reshape(()) == np.float32(value))


def _fill_of(graph: Graph, quantiser: Node) -> _Fill | None:
    """The scale and zero point of a quantiser; None if it has several of them, or they are no constants."""
    scale, zero = quantiser.input(1), quantiser.input(2)
    if not all(graph.is_constant(name) for name in (scale, zero) if name):
        return None
    codes = quantiser.inputs[0] if quantiser.op.endswith(DEQUANTISE) else quantiser.outputs[0]
    dtype = graph.type_of(codes).dtype
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        return None
    values = graph.value(scale), graph.value(zero) if zero else np.zeros((), dtype)
    return _Fill(*values) if all(map(is_per_tensor, values)) and values[0].reshape(()) > 0 else None


def _before_quantisers(edits: _Edits) -> None:
    """Quantise before values are moved or padded, where a conv makes them, or a Pad comes before a conv."""
    for node in edits.graph.nodes:
        if not node.op.endswith(QUANTISE) or node.op.endswith(DEQUANTISE):
            continue
        path = edits.path(node.inputs[0], alone=True)
        while path and passes(edits.graph, path[-1]):
            path.pop()
        if not path:
            continue
        try:
            _quantise_first(edits, node, path)
        except Refused:  # a constant that can't be read is told where a conv wants it
            continue


def _quantise_first(edits: _Edits, node: Node, path: Sequence[Node]) -> None:
    graph, source = edits.graph, path[-1].inputs[0]
    fill, pads = _fill_of(graph, node), any(each.op == PAD for each in path)
    if fill is None or not (_comes_from_conv(graph, source) or (pads and _goes_to_conv(graph, node.outputs[0]))):
        return
    before, made = graph.maker(source), list[onnx.NodeProto]()
    if before and before.op == DEQUANTISE and _is_same(graph, before, node, fill):
        codes = before.inputs[0]
        edits.left.add(before)
    else:
        codes, quantise = edits.fresh(f"{source}/codes"), onnx.NodeProto()
        quantise.CopyFrom(edits.protos[node])
        quantise.input[0], quantise.output[0] = source, codes
        edits.state(codes, node.outputs[0], source)
        made.append(quantise)
    active = [each for each in reversed(path) if not passes(graph, each)]
    for each in active:
        result = node.outputs[0] if each is active[-1] else edits.fresh(f"{each.outputs[0]}/codes")
        made.append(edits.moved(each, codes, fill.code(graph, each) if _adds(each) else None, result))
        edits.state(result, node.outputs[0], each.outputs[0])
        codes = result
    edits.instead[node] = made
    edits.left |= set(path)


def _is_same(graph: Graph, dequantise: Node, quantise: Node, fill: _Fill) -> bool:
    """Whether a quantiser gives back the codes that were dequantised."""
    own = _fill_of(graph, dequantise)
    same = graph.type_of(dequantise.inputs[0]).dtype == graph.type_of(quantise.outputs[0]).dtype
    return own is not None and same and bool(own.scale == fill.scale) and bool(own.zero_point == fill.zero_point)


def _comes_from_conv(graph: Graph, tensor: str) -> bool:
    """Whether a conv makes a tensor, with elementwise operators behind it."""
    for _ in range(MOST_NODES):
        node = graph.maker(tensor)
        if node is None or node.op == "Conv":
            return node is not None
        if node.op not in (*ELEMENTWISE - {DEQUANTISE}, "BatchNormalization", "Dropout"):
            return False
        tensor = next((name for name in node.inputs if name and not graph.is_constant(name)), "")
    return False


def _goes_to_conv(graph: Graph, codes: str) -> bool:
    """Whether a conv reads codes, through a DequantizeLinear and what only moves values."""
    waiting = [codes]
    for _ in range(MOST_NODES):
        for node in graph.readers(waiting.pop(0)) if waiting else ():
            if "Conv" in node.op:
                return True
            if node.op in MOVES or node.op in (DEQUANTISE, PAD) or passes(graph, node):
                waiting.append(node.outputs[0])
    return False


def _behind_dequantisers(edits: _Edits) -> None:
    """Dequantise behind what moves or pads the values that a Conv reads: its image, and its filter."""
    for node in edits.graph.nodes:
        for tensor in node.inputs[:2] if node.op == "Conv" else ():
            path = edits.path(tensor, alone=False)
            if not path or path[0] in edits.instead:
                continue
            before = edits.graph.maker(path[-1].inputs[0])
            if before is None or not before.op.endswith(DEQUANTISE):
                continue
            try:
                _dequantise_last(edits, before, path)
            except Refused:
                continue


def _dequantise_last(edits: _Edits, before: Node, path: Sequence[Node]) -> None:
    graph, codes = edits.graph, before.inputs[0]
    fill = _fill_of(graph, before)
    pads = [each for each in path if _adds(each)]
    if pads and (fill is None or not all(fill.is_exact(graph, pad) for pad in pads)):
        return
    ends = list(before.inputs[1:])
    axis: int | None = None
    if not all(is_per_tensor(graph.value(name)) for name in ends if name and graph.is_constant(name)):
        if not graph.is_constant(codes) or edits.opset < PER_AXIS or pads:
            return
        found = _along_outputs(edits, before, path)
        if found is None:
            return
        axis, ends = 0, [edits.constant(f"{path[0].outputs[0]}/{end}", value) for end, value in enumerate(found)]
    for each in reversed(path):
        if not passes(graph, each):
            codes = _beside(
                edits, each, codes, before.inputs[0], fill.code(graph, each) if fill and _adds(each) else None
            )
    last = onnx.NodeProto()
    last.CopyFrom(edits.protos[before])
    del last.input[:], last.output[:], last.attribute[:]
    last.input.extend([codes, *ends])
    last.output.append(path[0].outputs[0])
    last.attribute.extend(each for each in edits.protos[before].attribute if each.name not in ("axis", "block_size"))
    if axis is not None:
        last.attribute.append(helper.make_attribute("axis", axis))
    edits.instead[path[0]] = [*edits.beside.pop(path[0], []), last]
    edits.left |= {before, *path[1:]}


def _beside(edits: _Edits, node: Node, codes: str, like: str, fill: Array | None) -> str:
    """Move codes, of the dtype of `like`, as a node moves values, once for all that read them; return their name."""
    for proto in chain(edits.beside.get(node, []), edits.instead.get(node, [])):
        if proto.op_type == node.op and proto.input[0] == codes:
            return proto.output[0]
    result, graph = edits.fresh(f"{node.outputs[0]}/codes"), edits.graph
    if graph.type_of(like).dtype in NARROW and graph.is_constant(like):
        value = edits.narrow[codes] if codes in edits.narrow else graph.value(codes)
        others = {name: graph.value(name) for name in node.inputs[1:] if name}
        moved = graph.constants.computed(node.proto, {**others, node.inputs[0]: value})[node.outputs[0]]
        edits.narrow[result] = moved
        edits.model.graph.initializer.append(numpy_helper.from_array(moved, result))
        return result
    edits.state(result, like, node.outputs[0])
    edits.beside.setdefault(node, []).append(edits.moved(node, codes, fill, result))
    return result


def _along_outputs(edits: _Edits, dequantise: Node, path: Sequence[Node]) -> list[Array] | None:
    """Scales, and zero points where there are any, for each slice along axis 0 of what a path makes of constants.

    None where they differ within a slice.
    """
    graph = edits.graph
    shape = tuple(size for size in graph.type_of(dequantise.inputs[0]).shape or () if isinstance(size, int))
    if not shape or prod(shape) > LARGEST_FILTER:
        return None
    found = []
    for name in dequantise.inputs[1:3]:
        grid = np.broadcast_to(spread(graph.value(name), shape, along(dequantise.attributes)), shape)
        values = {path[-1].inputs[0]: np.ascontiguousarray(grid)}
        for node in reversed(path):
            if passes(graph, node):
                values[node.outputs[0]] = values[node.inputs[0]]
                continue
            constants = {name: graph.value(name) for name in node.inputs[1:] if name}
            values |= graph.constants.computed(node.proto, {**constants, node.inputs[0]: values[node.inputs[0]]})
        moved = values[path[0].outputs[0]]
        slices = per_slice(moved, 0)
        if slices is None:
            return None
        found.append(np.ascontiguousarray(np.broadcast_to(slices, moved.shape[:1])))
    return found
