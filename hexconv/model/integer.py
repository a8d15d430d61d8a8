"""Quantised convs: QLinearConv, ConvInteger, and Conv between DequantizeLinear and QuantizeLinear (QDQ)."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hexconv.model.clamp import Clamp, clamp_of
from hexconv.model.geometry import check_bias, filter_shape, geometry, image_shape
from hexconv.model.graph import Graph, Node
from hexconv.model.passing import passes
from hexconv.model.quantised import Quantised, quantised
from hexconv.model.refused import Refused
from hexconv.model.requantize import requantize
from hexconv.model.unit import Folded, Unit
from hexconv.spec import Conv2d, Requantize
from hexconv.spec.chain import INTEGER_RANGE, Dtype

SAME_SCALE = 1e-6
"""How near a bias's own scale must be to input scale times filter scale for its integers to be the sums'."""


@dataclass(frozen=True)
class IntegerWeights:
    """Filter and bias of an integer conv.

    Attributes:
        filter: the quantised tensor.
        offset: added to its elements: 128 or -128 where it is stored in another dtype than the model has it.
        dtype: that it is stored in.
        bias: int32 in units of the sums, or with `bias_scale` anything in its own; empty if there is none.
        bias_scale: what one unit of the sums stands for, where the bias is a float.
    """

    filter: str
    offset: int
    dtype: Dtype
    bias: str = ""
    bias_scale: float | None = None

    def folded(self, graph: Graph) -> Folded:
        """A float bias is rounded to the nearest unit of the sums.

        Raises:
            Refused: part of the bias is no finite number of them.
        """
        filter = (graph.value(self.filter).astype(np.int32) + self.offset).astype(self.dtype)
        if not self.bias:
            return Folded(filter, None)
        units = graph.value(self.bias)
        if self.bias_scale is not None:
            with np.errstate(all="ignore"):
                units = np.rint(units.astype(np.float64) / self.bias_scale)
        if lost := int(np.sum(~np.isfinite(units))):
            raise Refused(f"its bias has {lost} values that are no finite number of units of its sums")
        return Folded(filter, np.clip(units, -(2**31), 2**31 - 1).astype(np.int32))


def qlinear_unit(graph: Graph, node: Node) -> Unit:
    """QLinearConv: x, its scale and zero point, w likewise, y's, and an int32 bias."""
    source = quantised(graph, *node.inputs[0:3])
    filter = quantised(graph, *node.inputs[3:6])
    output = quantised(graph, node.outputs[0], *node.inputs[6:8])
    if output.dtype != source.dtype:
        raise Refused(f"{source.dtype} in, {output.dtype} out; a chain has one of them")
    by = requantize(source.scale * filter.scale / output.scale, output.zero_point)
    return _unit(graph, node, (node,), source, filter, by, node.outputs[0], (node.input(8), None))


def integer_unit(graph: Graph, node: Node) -> Unit:
    """ConvInteger: x, w and their zero points; its sums leave the chain as they are."""
    source = quantised(graph, node.inputs[0], "", node.input(2))
    filter = quantised(graph, node.inputs[1], "", node.input(3))
    return _unit(graph, node, (node,), source, filter, None, node.outputs[0], ("", None))


def is_qdq(graph: Graph, node: Node) -> bool:
    """Whether a Conv's values and its filter both come dequantised."""
    makers = [graph.maker(name) for name in node.inputs[:2]]
    return all(maker is not None and maker.op == "DequantizeLinear" for maker in makers)


def qdq_unit(graph: Graph, node: Node) -> Unit:
    """Conv between DequantizeLinear and QuantizeLinear; without the latter its sums leave the chain as they are."""
    before, of_filter = (cast("Node", graph.maker(name)) for name in node.inputs[:2])
    source = quantised(graph, *(before.input(i) for i in range(3)))
    filter = quantised(graph, *(of_filter.input(i) for i in range(3)))
    unit_scale = source.scale * filter.scale
    result, by = _tail(graph, node.outputs[0], unit_scale, source.dtype)
    bias = _dequantised_bias(graph, node.input(2), unit_scale)
    return _unit(graph, node, (before, node), source, filter, by, result, bias)


def _unit(
    graph: Graph,
    node: Node,
    entry: tuple[Node, ...],
    source: Quantised,
    filter: Quantised,
    by: Requantize | None,
    result: str,
    bias: tuple[str, float | None],
) -> Unit:
    """Put a unit together; the filter keeps its dtype."""
    image, taps = image_shape(graph, source.tensor), filter_shape(graph, filter.tensor)
    check_bias(graph, bias[0], taps[0])
    filter_dtype = cast("Dtype", filter.dtype)
    return Unit(
        node=node,
        entry=entry,
        source=source.tensor,
        result=result,
        shape=image,
        dtype=cast("Dtype", source.dtype),
        filter_dtype=filter_dtype,
        zero_point=source.zero_point,
        conv=Conv2d(
            **geometry(node, image, taps),
            bias=bool(bias[0]),
            filter_zero_point=filter.zero_point,
            requantize=by,
        ),
        weights=IntegerWeights(filter.tensor, 0, filter_dtype, *bias),
    )


def with_filters(unit: Unit, dtype: Dtype) -> Unit:
    """The same conv with its filter stored in another dtype: elements and zero point move alike."""
    if unit.filter_dtype == dtype:
        return unit
    offset = INTEGER_RANGE[dtype][0] - INTEGER_RANGE[unit.filter_dtype][0]
    weights = replace(cast("IntegerWeights", unit.weights), offset=offset, dtype=dtype)
    conv = replace(unit.conv, filter_zero_point=unit.conv.filter_zero_point + offset)
    return replace(unit, filter_dtype=dtype, conv=conv, weights=weights)


def _dequantised_bias(graph: Graph, name: str, unit_scale: float) -> tuple[str, float | None]:
    """The int32 behind a DequantizeLinear whose scale is that of the sums, or else a float to be rounded."""
    if not name:
        return "", None
    maker = graph.maker(name)
    if maker is None or maker.op != "DequantizeLinear" or not graph.is_constant(name):
        return name, unit_scale
    stored, zero = maker.inputs[0], maker.input(2)
    scales = graph.value(maker.inputs[1]).astype(np.float64)
    is_of_sums = np.allclose(scales, unit_scale, rtol=SAME_SCALE, atol=0) and not (zero and graph.value(zero).any())
    return (stored, None) if is_of_sums and graph.type_of(stored).dtype == "int32" else (name, unit_scale)


def _tail(graph: Graph, tensor: str, unit_scale: float, dtype: str) -> tuple[str, Requantize | None]:
    """Behind a conv: clamps that 8 bits do anyhow, then QuantizeLinear; or nothing of that, and no requantisation."""
    clamp, at = Clamp(), tensor
    while (node := graph.only_reader(at)) and node.inputs[0] == at:
        if node.op == "QuantizeLinear":
            found = quantised(graph, node.outputs[0], *(node.input(i) for i in (1, 2)))
            if found.dtype != dtype or not _is_saturation(clamp, found):
                break
            return node.outputs[0], requantize(unit_scale / found.scale, found.zero_point)
        own = clamp_of(graph, node)
        if own is None and not passes(graph, node):
            break
        clamp, at = clamp.then(own) if own else clamp, node.outputs[0]
    return tensor, None


def _is_saturation(clamp: Clamp, output: Quantised) -> bool:
    """Whether the range of the 8 bits, from the zero point on, is no wider than a clamp before them."""
    low, high = INTEGER_RANGE[output.dtype]
    ends = np.clip(np.array([clamp.low, clamp.high]) / output.scale, -1e6, 1e6)
    first, last = np.rint(ends) + output.zero_point
    return bool(first <= low and last >= high)
