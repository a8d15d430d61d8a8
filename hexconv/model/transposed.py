"""Transposed convs of codes as convs: each phase of their stride becomes output channels, DepthToSpace spreads them.

    before:  codes -> DequantizeLinear -> ConvTranspose of stride 2 -> Relu -> QuantizeLinear
    after:   codes -> DequantizeLinear -> Conv of 4 times as many channels -> Relu -> QuantizeLinear -> DepthToSpace

Along one axis a result at `y = s j + r` has the taps `k = r + p - s d` of the filter, by the inputs at `j + d`: of each
phase `r` those are a filter of a conv of stride 1 (Shi et al. 2016, "Is the deconvolution layer the same as a
convolutional layer?"). The first results of the first `j` may lie before the result; a Slice takes these away. Where
phases have fewer taps than others, zeros stand beside them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hexconv.model.commuted import commuted
from hexconv.model.constants import Array
from hexconv.model.edits import DEQUANTISE, PER_AXIS, QUANTISE, Edits
from hexconv.model.granularity import is_per_tensor
from hexconv.model.graph import Graph, Node
from hexconv.model.pointwise import ELEMENTWISE, following, leads_on
from hexconv.model.refused import Refused
from hexconv.model.units import is_requantised

Padding = tuple[int, int, int, int]
TRANSPOSED, ADDED = "ConvTranspose", "output_padding"
OLDEST_SLICE = 10
"""The opset from which on Slice reads its ends from tensors."""


@dataclass(frozen=True)
class Phases:
    """A transposed conv along one axis, as the phases of a conv of stride 1.

    Attributes:
        stride: how many phases there are.
        cut: the results of the first frame that lie before the result.
        window: the taps of the conv.
        padding: the zeros before and behind the inputs.
        made: the frames that the conv makes.
        taps: for each phase and each tap of the conv, the tap of the transposed conv; -1 where it is zero.
    """

    stride: int
    cut: int
    window: int
    padding: tuple[int, int]
    made: int
    taps: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, size: int, made: int, taps: int, stride: int, begin: int) -> "Phases":
        """Choose where the first frame begins: so that the window is the shortest, and then so that least is cut.

        Args:
            size: the inputs.
            made: the results.
            taps: the taps of the transposed conv.
            stride: its stride.
            begin: how many results it drops at the beginning.
        """
        over = stride - 1 - (taps - 1) % stride
        cut = 0 if -begin % stride <= over else begin % stride
        reads = {tap: divmod(tap + cut - begin, stride) for tap in range(taps)}
        ahead = [back for back, _ in reads.values()]
        first, last = -max(0, *ahead), -min(0, *ahead)
        frames, window = -(-(made + cut) // stride), last - first + 1
        behind = max(frames - 1 + last - (size - 1), 0)
        chosen = [[-1] * window for _ in range(stride)]
        for tap, (back, phase) in reads.items():
            chosen[phase][-back - first] = tap
        return cls(stride, cut, window, (-first, behind), size - first + behind - window + 1, tuple(map(tuple, chosen)))


def with_phases(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The model with its transposed convs of codes as convs, and with quantisers beside its convs (`commuted`).

    Those of groups, with dilation, or with a stride beyond their taps stay, and those of which no chain could have the
    conv.

    Args:
        model: the model, with shapes inferred; it is changed.
        folder: the folder that external data lies in.
    """
    left = set[str]()
    while any(node.op_type == TRANSPOSED and not left.issuperset(node.output) for node in model.graph.node):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        edits = Edits(changed, Graph.of(changed, folder))
        phases = _rewritten(edits, left)
        edits.apply()
        made = Graph.of(commuted(changed, folder), folder)
        refused = {name for name, result in phases.items() if not is_requantised(made, made.maker(result))}
        if not refused:
            return changed
        left |= refused
    return commuted(model, folder)


def _rewritten(edits: Edits, left: set[str]) -> dict[str, str]:
    """Rewrite the transposed convs whose results are not in `left`; for the result of each, that of its conv."""
    phases = {}
    for node in edits.graph.nodes:
        if node.op != TRANSPOSED or node.outputs[0] in left:
            continue
        try:
            if result := _rewrite(edits, node):
                phases[node.outputs[0]] = result
                continue
        except Refused:  # a constant that can't be read is told where the operator is read
            pass
        left.add(node.outputs[0])
    return phases


def transposed_padding(
    attributes: Mapping[str, Any], sizes: Sequence[int], made: Sequence[int], kernel: Sequence[int]
) -> Padding:
    """The results that a transposed conv drops: at the top and left, at the bottom and right.

    Args:
        attributes: the attributes of a ConvTranspose.
        sizes: rows and columns of its inputs.
        made: rows and columns of its results.
        kernel: rows and columns of its filter.

    Raises:
        Refused: it has other numbers than ONNX allows.
    """
    padding: tuple[int, ...] = tuple(attributes.get("pads", (0, 0, 0, 0)))
    way = attributes.get("auto_pad", b"NOTSET")
    if "output_shape" in attributes or way in (b"SAME_UPPER", b"SAME_LOWER"):
        strides, dilations, more = (
            attributes.get(name, each) for name, each in (("strides", (1, 1)), ("dilations", (1, 1)), (ADDED, (0, 0)))
        )
        sides = zip(sizes, made, kernel, strides, dilations, more, strict=True)
        over = [
            max(stride * (size - 1) + added + (taps - 1) * apart + 1 - out, 0)
            for size, out, taps, stride, apart, added in sides
        ]
        first = [each // 2 if way == b"SAME_UPPER" else each - each // 2 for each in over]
        padding = (*first, *(each - begin for each, begin in zip(over, first, strict=True)))
    if len(padding) != 4 or min(padding) < 0:
        raise Refused(f"its padding is {list(padding)}; it takes four numbers of at least 0")
    top, left, bottom, right = padding
    return top, left, bottom, right


@dataclass(frozen=True)
class _Quantised:
    """Constant codes with their scale and zero point; of several scales, one a slice along the outputs' axis.

    Attributes:
        codes: the codes.
        ends: scale, and zero point where there is one.
        axis: the axis of the outputs.
    """

    codes: Array
    ends: tuple[Array, ...]
    axis: int

    @classmethod
    def of(cls, graph: Graph, tensor: str, axis: int) -> "_Quantised | None":
        """Read dequantised constants; None for others, and where the outputs don't have a scale each."""
        maker = graph.maker(tensor)
        if maker is None or maker.op != DEQUANTISE or not all(map(graph.is_constant, filter(None, maker.inputs))):
            return None
        codes, *ends = (graph.value(name) for name in maker.inputs if name)
        along = int(maker.attributes.get("axis", 1)) % max(codes.ndim, 1)
        if maker.attributes.get("block_size", 0) or not all(is_per_tensor(end) or along == axis for end in ends):
            return None
        return cls(codes, tuple(ends), axis)

    def repeated(self, times: int, codes: Array) -> "_Quantised":
        """Other codes, of whose first axis the scales are: those of these, one time after the other."""
        ends = tuple(end if is_per_tensor(end) else np.tile(end, times) for end in self.ends)
        return _Quantised(codes, ends, 0)

    @property
    def zeros(self) -> Array:
        """The zero point of each output, or one of all."""
        return self.ends[1].reshape(-1) if len(self.ends) > 1 else np.zeros(1, self.codes.dtype)


def _rewrite(edits: Edits, node: Node) -> str:
    """Put a conv in the place of a transposed one, and what spreads its phases behind its QuantizeLinear.

    Returns:
        The result of the conv; empty where the transposed one stays.
    """
    graph, told = edits.graph, node.attributes
    filter = _Quantised.of(graph, node.input(1), 1)
    behind = _until_quantised(graph, node)
    source, made = (graph.type_of(name) for name in (node.inputs[0], node.outputs[0]))
    is_known = source.is_fixed and made.is_fixed and len(source.shape or ()) == 4
    if filter is None or filter.codes.ndim != 4 or not behind or not is_known:
        return ""
    if told.get("group", 1) != 1 or any(each != 1 for each in told.get("dilations", (1, 1))):
        return ""
    sizes, results = ([int(size) for size in found.shape or ()] for found in (source, made))
    kernel, strides = filter.codes.shape[2:], tuple(told.get("strides", (1, 1)))
    if len(strides) != 2 or not all(1 <= stride <= taps for stride, taps in zip(strides, kernel, strict=True)):
        return ""  # a stride beyond the taps would be phases of zeros, and as many as the file says
    begins = transposed_padding(told, sizes[2:], results[2:], kernel)
    sides = zip(sizes[2:], results[2:], kernel, strides, begins, strict=False)
    rows, columns = (Phases.of(*side) for side in sides)
    reads_inputs = all(max(each.padding) < each.window for each in (rows, columns))
    if not reads_inputs or edits.opset < OLDEST_SLICE:
        return ""
    return _replace(edits, node, behind, filter, (rows, columns), results)


def _until_quantised(graph: Graph, node: Node) -> list[Node]:
    """The elementwise nodes behind a node and the QuantizeLinear that ends them; none where they end otherwise."""
    between = list(following(graph, node.outputs[0], ELEMENTWISE - {DEQUANTISE}))
    last = between[-1] if between else node
    end = graph.only_reader(last.outputs[0])
    if end is None or end.op != QUANTISE or not leads_on(graph, node.outputs[0], [*between, end]):
        return []
    ends = [name for name in end.inputs[1:] if name]
    is_told = all(graph.is_constant(name) and is_per_tensor(graph.value(name)) for name in ends)
    return [*between, end] if is_told and end.inputs[0] == last.outputs[0] else []


def _replace(
    edits: Edits, node: Node, behind: Sequence[Node], filter: _Quantised, axes: tuple[Phases, Phases], made: list[int]
) -> str:
    rows, columns = axes
    times, outputs = rows.stride * columns.stride, filter.codes.shape[1]
    frames = [made[0], times * outputs, rows.made, columns.made]
    dtype = edits.graph.type_of(node.outputs[0]).dtype

    new = {node.outputs[0]: edits.fresh(f"{node.outputs[0]}/phases")}
    filters = _stored(edits, node.input(1), filter.repeated(times, _filters(filter, axes)))
    bias = _bias(edits, node.input(2), times)
    nodes = [*filters, *bias]
    names = [node.inputs[0], *(each[-1].output[0] if each else "" for each in (filters, bias))]
    if not bias and node.input(2):
        values = np.tile(edits.graph.value(node.input(2)), times)
        names[2] = edits.constant(f"{node.input(2)}/phases", values)
    pads = [rows.padding[0], columns.padding[0], rows.padding[1], columns.padding[1]]
    window = [rows.window, columns.window]
    inputs = [name for name in names if name]
    nodes.append(helper.make_node("Conv", inputs, [new[node.outputs[0]]], node.name, kernel_shape=window, pads=pads))
    edits.declare(new[node.outputs[0]], dtype, tuple(frames))
    for each in behind:
        result = edits.fresh(f"{each.outputs[0]}/phases")
        copied = onnx.NodeProto()
        copied.CopyFrom(edits.protos[each])
        copied.input[:], copied.output[0] = [new.get(name, name) for name in each.inputs], result
        nodes.append(copied)
        edits.declare(result, edits.graph.type_of(each.outputs[0]).dtype, tuple(frames))
        new[each.outputs[0]] = result
    end = behind[-1].outputs[0]
    nodes += _spread(edits, new[end], end, axes, made)
    edits.instead[behind[-1]] = nodes
    edits.left |= {node, *behind[:-1]}
    return new[node.outputs[0]]


def _filters(filter: _Quantised, axes: tuple[Phases, Phases]) -> Array:
    """The filters of all phases, [phases * outputs, inputs, rows, columns]."""
    rows, columns = axes
    inputs, outputs = filter.codes.shape[:2]
    shape = (rows.stride, columns.stride, outputs, inputs, rows.window, columns.window)
    made = np.empty(shape, filter.codes.dtype)
    made[:] = filter.zeros[:, None, None, None]
    for (down, along), (row, column) in product(
        product(range(rows.stride), range(columns.stride)), product(range(rows.window), range(columns.window))
    ):
        tap = rows.taps[down][row], columns.taps[along][column]
        if min(tap) >= 0:
            made[down, along, :, :, row, column] = filter.codes[:, :, tap[0], tap[1]].T
    return made.reshape(-1, *shape[3:])


def _bias(edits: Edits, tensor: str, times: int) -> list[onnx.NodeProto]:
    """A dequantised bias, once for each phase; nothing where it is none."""
    found = _Quantised.of(edits.graph, tensor, 0) if tensor else None
    return _stored(edits, tensor, found.repeated(times, np.tile(found.codes, times))) if found else []


def _stored(edits: Edits, tensor: str, values: _Quantised) -> list[onnx.NodeProto]:
    """Constants, and the DequantizeLinear that reads them."""
    arrays = (values.codes, *values.ends)
    names = [edits.constant(f"{tensor}/phases{at}", array) for at, array in enumerate(arrays)]
    result = edits.fresh(f"{tensor}/phases")
    axis: dict[str, Any] = {"axis": values.axis} if edits.opset >= PER_AXIS else {}
    edits.declare(result, "float32", values.codes.shape)
    return [helper.make_node(DEQUANTISE, names, [result], result, **axis)]


def _spread(
    edits: Edits, frames: str, result: str, axes: tuple[Phases, Phases], made: list[int]
) -> list[onnx.NodeProto]:
    """Put phases side by side, and take away what lies before and behind the result."""
    rows, columns = axes
    batch, outputs = made[:2]
    strides, sizes = (rows.stride, columns.stride), (rows.made, columns.made)
    whole = [stride * size for stride, size in zip(strides, sizes, strict=True)]
    dtype = edits.graph.type_of(result).dtype
    cuts = [each.cut for each in axes]
    is_whole = whole == made[2:]
    spread = result if is_whole else edits.fresh(f"{result}/spread")
    if strides == (1, 1):
        nodes, spread = list[onnx.NodeProto](), frames
    elif rows.stride == columns.stride:
        nodes = [helper.make_node("DepthToSpace", [frames], [spread], spread, blocksize=rows.stride)]
    else:
        apart = [batch, *strides, outputs, *sizes]
        order = [0, 3, 4, 1, 5, 2]
        names = [edits.fresh(f"{result}/{word}") for word in ("apart", "turned")]
        shapes = apart, [batch, outputs, *whole]
        tensors = [
            edits.constant(f"{result}/{word}", np.array(shape, np.int64))
            for word, shape in zip(("apart shape", "whole shape"), shapes, strict=True)
        ]
        edits.declare(names[0], dtype, tuple(apart))
        edits.declare(names[1], dtype, tuple(apart[at] for at in order))
        nodes = [
            helper.make_node("Reshape", [frames, tensors[0]], [names[0]], names[0]),
            helper.make_node("Transpose", [names[0]], [names[1]], names[1], perm=order),
            helper.make_node("Reshape", [names[1], tensors[1]], [spread], spread),
        ]
    if is_whole:
        return nodes or [helper.make_node("Identity", [frames], [result], f"{result}/same")]
    if nodes:
        edits.declare(spread, dtype, (batch, outputs, *whole))
    ends = [cut + size for cut, size in zip(cuts, made[2:], strict=True)]
    tensors = [
        edits.constant(f"{result}/{word}", np.array(values, np.int64))
        for word, values in (("begin", cuts), ("end", ends), ("axes", [2, 3]))
    ]
    return [*nodes, helper.make_node("Slice", [spread, *tensors], [result], f"{result}/slice")]
