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

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hexconv.model.constants import Array
from hexconv.model.edits import DEQUANTISE, MOST_NODES, MOVES, PAD, PER_AXIS, QUANTISE, Edits
from hexconv.model.granularity import along, is_per_tensor, per_slice, spread
from hexconv.model.graph import Graph, Node, passes
from hexconv.model.pointwise import ELEMENTWISE
from hexconv.model.refused import Refused

NARROW = ("int4", "uint4")
"""Constants of these are moved here: ONNX Runtime moves none of them."""
LARGEST_FILTER = 1 << 26


def commuted(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The model with its quantisers beside its convs, where that changes no value.

    Args:
        model: the model, with shapes inferred; it is changed.
        folder: the folder that external data lies in.
    """
    if any(_op(node) == QUANTISE or _op(node) == DEQUANTISE for node in model.graph.node):
        for step in (_before_quantisers, _behind_dequantisers):
            edits = Edits(model, Graph.of(model, folder))
            step(edits)
            edits.apply()
    return model


def _op(node: onnx.NodeProto) -> str:
    return Node.of(node).op.rpartition(".")[2]


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


def _before_quantisers(edits: Edits) -> None:
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


def _quantise_first(edits: Edits, node: Node, path: Sequence[Node]) -> None:
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


def _behind_dequantisers(edits: Edits) -> None:
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


def _dequantise_last(edits: Edits, before: Node, path: Sequence[Node]) -> None:
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


def _beside(edits: Edits, node: Node, codes: str, like: str, fill: Array | None) -> str:
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


def _along_outputs(edits: Edits, dequantise: Node, path: Sequence[Node]) -> list[Array] | None:
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
