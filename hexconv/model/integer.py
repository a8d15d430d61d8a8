"""Read quantised convs: QLinearConv, ConvInteger, and Conv between DequantizeLinear and QuantizeLinear (QDQ)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from hexconv.model.clamp import Clamp, clamp_of
from hexconv.model.constants import Array
from hexconv.model.float32 import with_fraction_bits
from hexconv.model.geometry import check_bias, filter_shape, geometry, image_shape
from hexconv.model.graph import Graph, Node
from hexconv.model.passing import passes
from hexconv.model.quantised import Quantised, quantised, quantised_filter, scales_of
from hexconv.model.refused import Refused
from hexconv.model.requantize import Scaled, requantize, scale_of
from hexconv.model.unit import Folded, Unit
from hexconv.spec import Conv2d
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, Dtype

SAME_SCALE = 1e-6
"""How far, relatively, a bias's scale may be from input scale times filter scale, the unit of the sums."""
INT32_MOST = 2**31 - 1
EIGHT_BITS_MOST = 255


@dataclass(frozen=True)
class IntegerWeights:
    """The filter, the bias and the scales of an integer conv.

    Attributes:
        filter: the name of the quantised filter.
        zero_points: the zero points in the model, one or one a channel; each becomes `zero_point`.
        zero_point: the one zero point of the filter as it is stored in a chain.
        dtype: the dtype that the filter is stored in.
        bias: the name of a bias, int32 in units of the sums, or real where `bias_scales` is set; empty if there is
            none.
        bias_scales: the real number that a unit of the sums stands for, one or one a channel, where the bias is real.
        vectors: the values of the requantisation that differ by channel.
    """

    filter: str
    zero_points: Array
    zero_point: int
    dtype: Dtype
    bias: str = ""
    bias_scales: Array | None = None
    vectors: Mapping[str, Array] = field(default_factory=dict)

    def folded(self, graph: Graph) -> Folded:
        """Make the weights; a real bias is rounded to the nearest unit of the sums.

        Raises:
            Refused: a value of the bias is no finite number of units, or a number that int32 doesn't hold.
        """
        moved = self.zero_point - self.zero_points.reshape(-1, 1, 1, 1)
        filter = (graph.value(self.filter).astype(np.int32) + moved).astype(self.dtype)
        if not self.bias:
            return Folded(filter, None, self.vectors)
        units = graph.value(self.bias)
        if self.bias_scales is not None:
            with np.errstate(all="ignore"):
                units = np.rint(units.astype(np.float64) / self.bias_scales)
        if lost := int(np.sum(~np.isfinite(units))):
            raise Refused(f"its bias has {lost} values that are no finite number of units of its sums")
        if (most := float(np.max(np.abs(units), initial=0))) > INT32_MOST:
            raise Refused(f"its bias comes to {most:g} units of its sums; int32 holds at most {INT32_MOST}")
        return Folded(filter, units.astype(np.int32), self.vectors)


@dataclass(frozen=True)
class Tail:
    """The nodes behind a conv that fold into it: the tensor that they end in, and the requantisation."""

    result: str
    scaled: Scaled | None


def qlinear_unit(graph: Graph, node: Node) -> Unit:
    """Read a QLinearConv: input, filter and output, each with scale and zero point, and an int32 bias."""
    source = quantised(graph, node.inputs[0], node.inputs[1], node.inputs[2])
    filter = quantised_filter(graph, node.input(3), node.input(4), node.input(5))
    output = quantised(graph, node.outputs[0], node.inputs[6], node.inputs[7])
    if output.dtype != source.dtype:
        raise Refused(f"it reads {source.dtype} and writes {output.dtype}; a chain has one dtype")
    scaled = requantize(scale_of(source.scales, filter.scales, output.scales), output.zero_point)
    return _unit(graph, node, (node,), source, filter, Tail(node.outputs[0], scaled), (node.input(8), None))


def integer_unit(graph: Graph, node: Node) -> Unit:
    """Read a ConvInteger: input and filter, each with a zero point; its int32 sums are the chain's output."""
    source = quantised(graph, node.inputs[0], "", node.input(2))
    filter = quantised_filter(graph, node.inputs[1], "", node.input(3))
    return _unit(graph, node, (node,), source, filter, Tail(node.outputs[0], None), ("", None))


def is_qdq(graph: Graph, node: Node) -> bool:
    """Whether DequantizeLinear makes both the input and the filter of a Conv."""
    makers = [graph.maker(name) for name in node.inputs[:2]]
    return all(maker is not None and maker.op == "DequantizeLinear" for maker in makers)


def qdq_unit(graph: Graph, node: Node) -> Unit:
    """Read a Conv between DequantizeLinear and QuantizeLinear; without the latter its sums are the chain's output."""
    before, of_filter = (cast("Node", graph.maker(name)) for name in node.inputs[:2])
    source = quantised(graph, *(before.input(i) for i in range(3)), by=before)
    filter = quantised_filter(graph, *(of_filter.input(i) for i in range(3)), by=of_filter)
    unit_scales = source.scales.astype(np.float64) * filter.scales
    tail = _tail(graph, node.outputs[0], source, filter)
    bias = dequantised_bias(graph, node.input(2), unit_scales)
    return _unit(graph, node, (before, node), source, filter, tail, bias)


def _unit(
    graph: Graph,
    node: Node,
    entry: tuple[Node, ...],
    source: Quantised,
    filter: Quantised,
    tail: Tail,
    bias: tuple[str, Array | None],
) -> Unit:
    """Put a unit together; the filter keeps its dtype, unless zero points by channel need another one.

    Its requantisation comes as near to ONNX Runtime's float32 as a chain can.
    """
    image, taps = image_shape(graph, source.tensor), filter_shape(graph, filter.tensor)
    check_bias(graph, bias[0], taps[0])
    filter_dtype, zero_point = _stored_filter(graph, filter)
    if filter_dtype not in FILTER_DTYPES[source.dtype]:
        allowed = " or ".join(FILTER_DTYPES[source.dtype])
        raise Refused(f"it has filters of {filter_dtype} on {source.dtype}; a chain has {allowed} there")
    scaled = tail.scaled
    vectors = scaled.vectors if scaled else {}
    unit = Unit(
        node=node,
        entry=entry,
        source=source.tensor,
        result=tail.result,
        shape=image,
        dtype=cast("Dtype", source.dtype),
        filter_dtype=filter_dtype,
        zero_point=source.zero_point,
        conv=Conv2d(
            **geometry(node, image, taps),
            bias=bool(bias[0]),
            filter_zero_point=zero_point,
            requantize=scaled.how if scaled else None,
        ),
        weights=IntegerWeights(filter.tensor, filter.zero_points, zero_point, filter_dtype, *bias, vectors),
    )
    return with_fraction_bits(unit, scaled.multipliers) if scaled else unit


def _stored_filter(graph: Graph, filter: Quantised) -> tuple[Dtype, int]:
    """The dtype and the one zero point that a chain stores a filter with, whose channels may have different ones."""
    if filter.zero_points.size == 1:
        return cast("Dtype", filter.dtype), filter.zero_point
    zeros = filter.zero_points.reshape(-1, *[1] * (len(graph.value(filter.tensor).shape) - 1))
    apart = graph.value(filter.tensor).astype(np.int32) - zeros
    least, most = int(apart.min(initial=0)), int(apart.max(initial=0))
    if most - least > EIGHT_BITS_MOST:
        raise Refused(
            f"its filter has {filter.zero_points.size} zero points, and elements {least} to {most} away from them; "
            f"8 bits hold a range of at most {EIGHT_BITS_MOST}"
        )
    low, high = INTEGER_RANGE["int8"]
    return ("int8", 0) if low <= least and most <= high else ("uint8", -least)


def with_filters(unit: Unit, dtype: Dtype) -> Unit:
    """The same conv with its filter stored in another dtype: elements and zero point are shifted alike."""
    if unit.filter_dtype == dtype:
        return unit
    offset = INTEGER_RANGE[dtype][0] - INTEGER_RANGE[unit.filter_dtype][0]
    zero_point = unit.conv.filter_zero_point + offset
    weights = replace(cast("IntegerWeights", unit.weights), zero_point=zero_point, dtype=dtype)
    return replace(unit, filter_dtype=dtype, conv=replace(unit.conv, filter_zero_point=zero_point), weights=weights)


def dequantised_bias(graph: Graph, name: str, unit_scales: Array) -> tuple[str, Array | None]:
    """Find a bias: the int32 codes if they are dequantised with the scales of the sums, else the real numbers.

    Args:
        graph: the graph of the model.
        name: the name of the bias; empty where there is none.
        unit_scales: the real number that a unit of the sums stands for, one or one a channel.

    Returns:
        The name of the int32 tensor and None, or the name of the real one and `unit_scales`.
    """
    if not name:
        return "", None
    maker = graph.maker(name)
    if maker is None or maker.op != "DequantizeLinear" or not graph.is_constant(name):
        return name, unit_scales
    stored, zero = maker.inputs[0], maker.input(2)
    scales = scales_of(graph, maker, 0)
    is_of_sums = scales is not None and np.allclose(scales.astype(np.float64), unit_scales, rtol=SAME_SCALE, atol=0)
    is_of_sums = is_of_sums and not (zero and graph.value(zero).any())
    return (stored, None) if is_of_sums and graph.type_of(stored).dtype == "int32" else (name, unit_scales)


def _tail(graph: Graph, tensor: str, source: Quantised, filter: Quantised) -> Tail:
    """Follow a conv through clamps to a QuantizeLinear; without one, nothing folds and there is no requantisation."""
    clamp, at = Clamp(), tensor
    while (node := graph.only_reader(at)) and node.inputs[0] == at:
        if node.op == "QuantizeLinear":
            found = quantised(graph, node.outputs[0], *(node.input(i) for i in (1, 2)), by=node)
            codes = _codes(clamp, found)
            if found.dtype != source.dtype or codes is None:
                break
            scales = scale_of(source.scales, filter.scales, found.scales)
            whole = codes == INTEGER_RANGE[found.dtype]
            return Tail(node.outputs[0], requantize(scales, found.zero_point, None if whole else codes))
        own = clamp_of(graph, node)
        if own is None and not passes(graph, node):
            break
        clamp, at = clamp.then(own) if own else clamp, node.outputs[0]
    return Tail(tensor, None)


def _codes(clamp: Clamp, output: Quantised) -> tuple[int, int] | None:
    """The range of codes that a clamp leaves; None where it leaves less than two codes."""
    low, high = INTEGER_RANGE[output.dtype]
    with np.errstate(all="ignore"):
        ends = np.rint(np.array([clamp.low, clamp.high], np.float32) / output.scales[0]) + output.zero_point
    first, last = (int(end) for end in np.clip(ends, low, high))
    return None if np.isnan(ends).any() or first >= last else (first, last)
