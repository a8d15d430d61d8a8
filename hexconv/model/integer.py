"""Read quantised convs: QLinearConv, ConvInteger, Conv between DequantizeLinear and QuantizeLinear; limits of sums.

Quantisers leave biases next to the ends of int32 in channels with next to no weights. Where such a bias would carry
sums beyond int32 although the channel has one output whatever the image, it is moved to where all sums fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from hexconv.model.constants import Array
from hexconv.model.conv_unit import Folded, Inexact, Unit
from hexconv.model.geometry import check_bias, entry_of, filter_shape, geometry, image_shape, oihw
from hexconv.model.graph import Graph, Node
from hexconv.model.multipliers import requantize, rounded, scale_of, with_fraction_bits
from hexconv.model.quantised import Quantised, quantised, quantised_filter, scales_of
from hexconv.model.refused import Refused
from hexconv.model.tail import INT32_MOST, Sums, Tail, tail_of
from hexconv.spec import Chain, Conv2d, Requantize
from hexconv.spec.activations import TABLE
from hexconv.spec.case import sums_by_channel, with_limits
from hexconv.spec.dtypes import FILTER_DTYPES, INTEGER_RANGE, LARGEST_INT32, Dtype
from hexconv.spec.names import numbered
from hexconv.spec.ranges import sums_refusals

SAME_SCALE = 1e-6
"""How far, relatively, a bias's scale may be from input scale times filter scale, the unit of the sums."""
EIGHT_BITS_MOST = 255
ROUNDED_BIASES = (
    "biases that are floats, or have another scale than their sums, are rescaled and rounded to whole units of the sums"
)
TABLES = "functions behind sums are looked up among 256 codes of the sums"


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
        vectors: the values of the requantisation that differ by channel, and a table.
        factors: the integer by which each channel's filter and bias are multiplied; None where all are 1.
        shifts: what is added to the bias then, in units of the sums, float64, [K]; None where it is nothing.
    """

    filter: str
    zero_points: Array
    zero_point: int
    dtype: Dtype
    bias: str = ""
    bias_scales: Array | None = None
    vectors: Mapping[str, Array] = field(default_factory=dict)
    factors: Array | None = None
    shifts: Array | None = None

    def folded(self, graph: Graph) -> Folded:
        """Make the weights; a real bias is rounded to the nearest unit of the sums.

        Raises:
            Refused: a value of the bias is no finite number of units, or one that int32 doesn't hold.
        """
        # Its dtype holds each result, so that steps on the way may leave it: they wrap, and come back.
        filter = oihw(graph.value(self.filter)).astype(self.dtype)
        moved = self.zero_points.reshape(-1, 1, 1, 1).astype(np.int64)
        if self.factors is not None:
            factors = self.factors.reshape(-1, 1, 1, 1)
            filter, moved = filter * factors.astype(self.dtype), moved * factors
        moved = (self.zero_point - moved).astype(self.dtype)
        filter = filter + moved if moved.any() else filter
        if not self.bias and self.shifts is None:
            return Folded(filter, None, self.vectors)
        units = bias_units(graph, self.bias, self.bias_scales) * (1 if self.factors is None else self.factors)
        units = np.rint(units if self.shifts is None else units + self.shifts)
        if (most := float(np.max(np.abs(units), initial=0))) > INT32_MOST:
            raise Refused(f"its bias comes to {most:g} units of its sums; int32 holds at most {INT32_MOST}")
        return Folded(filter, units.astype(np.int32), self.vectors)


def qlinear_unit(graph: Graph, node: Node) -> Unit:
    """Read a QLinearConv: input, filter and output, each with scale and zero point, and an int32 bias."""
    source = quantised(graph, node.inputs[0], node.inputs[1], node.inputs[2])
    filter = quantised_filter(graph, node.input(3), node.input(4), node.input(5))
    output = quantised(graph, node.outputs[0], node.inputs[6], node.inputs[7])
    if output.dtype != source.dtype:
        raise Refused(f"it reads {source.dtype} and writes {output.dtype}; a chain has one dtype")
    bias, channels = (node.input(8), None), filter_shape(graph, filter.tensor, node.inputs[0])[0]
    sums = _sums(graph, source, filter, channels, bias)
    scales = scale_of(source.scales, filter.scales, output.scales)
    scaled = requantize(scales, output.zero_point, reach=lambda: sums.reach() + np.abs(sums.bias))
    return _unit(graph, [node], source, filter, Tail(node.outputs[0], scaled), bias)


def integer_unit(graph: Graph, node: Node) -> Unit:
    """Read a ConvInteger: input and filter, each with a zero point; its int32 sums are the chain's output."""
    source = quantised(graph, node.inputs[0], "", node.input(2))
    filter = quantised_filter(graph, node.inputs[1], "", node.input(3))
    return _unit(graph, [node], source, filter, Tail(node.outputs[0], None), ("", None))


def is_qdq(graph: Graph, node: Node) -> bool:
    """Whether DequantizeLinear makes both the input and the filter of a Conv."""
    makers = [graph.maker(name) for name in node.inputs[:2]]
    return all(maker is not None and maker.op == "DequantizeLinear" for maker in makers)


def qdq_unit(graph: Graph, node: Node) -> Unit:
    """Read a Conv between DequantizeLinear and QuantizeLinear; without the latter its sums are the chain's output."""
    before, of_filter = (cast("Node", graph.maker(name)) for name in node.inputs[:2])
    source = quantised(graph, *(before.input(i) for i in range(3)), by=before)
    filter = quantised_filter(graph, *(of_filter.input(i) for i in range(3)), by=of_filter)
    channels = filter_shape(graph, filter.tensor, node.inputs[0])[0]
    scales = source.scales.astype(np.float64) * filter.scales
    bias = dequantised_bias(graph, node.input(2), scales)
    sums = _sums(graph, source, filter, channels, bias)
    tail = tail_of(graph, node.outputs[0], sums)
    try:
        _stored_filter(graph, filter, tail.factors, FILTER_DTYPES[source.dtype])
    except Refused as refusal:
        if tail.factors is None:
            raise
        tail = Tail(node.outputs[0], unfolded=str(refusal))
    return _unit(graph, [before, node], source, filter, tail, bias)


def _sums(graph: Graph, source: Quantised, filter: Quantised, channels: int, bias: tuple[str, Array | None]) -> Sums:
    """What the sums of a conv stand for, and how far they go.

    Raises:
        Refused: the bias has another shape, depends on the model's input, or is no finite number.
    """
    check_bias(graph, bias[0], channels)
    units = np.broadcast_to(bias_units(graph, *bias), (channels,))
    low, high = INTEGER_RANGE[source.dtype]
    most = max(high - source.zero_point, source.zero_point - low)

    def sizes() -> Array:
        return np.abs(oihw(graph.value(filter.tensor)).astype(np.int64) - filter.zero_points.reshape(-1, 1, 1, 1))

    return Sums(
        source,
        filter,
        channels,
        units,
        lambda: sizes().sum((1, 2, 3)) * most,
        lambda: sizes().max((1, 2, 3), initial=0),
    )


def _unit(
    graph: Graph,
    nodes: Sequence[Node],
    source: Quantised,
    filter: Quantised,
    tail: Tail,
    bias: tuple[str, Array | None],
) -> Unit:
    """Put a unit together; the filter keeps its dtype, unless zero points by channel need another one.

    Its requantisation comes as near to ONNX Runtime's float32 as a chain can.
    """
    node, entry = nodes[-1], entry_of(graph, nodes, int(source.zero_points[0]))
    image, taps = image_shape(graph, source.tensor), filter_shape(graph, filter.tensor, node.inputs[0])
    fields = geometry(graph, node, image, taps)
    filter_dtype, zero_point = _stored_filter(graph, filter, tail.factors, FILTER_DTYPES[source.dtype])
    if filter_dtype not in FILTER_DTYPES[source.dtype]:
        allowed = " or ".join(FILTER_DTYPES[source.dtype])
        raise Refused(f"it has filters of {filter_dtype} on {source.dtype}; a chain has {allowed} there")
    scaled, table = tail.scaled, tail.table
    vectors = {**(scaled.vectors if scaled else {}), **({TABLE: table.codes.astype(source.dtype)} if table else {})}
    unit = Unit(
        node=node,
        entry=entry.nodes,
        source=entry.source,
        result=tail.result,
        shape=image_shape(graph, entry.source),
        dtype=cast("Dtype", source.dtype),
        filter_dtype=filter_dtype,
        zero_point=source.zero_point,
        conv=Conv2d(
            **{**fields, "padding": entry.around(fields["padding"])},
            bias=bool(bias[0]) or tail.shifts is not None,
            activation=TABLE if table else "none",
            table_zero_point=table.zero_point_of_result if table else 0,
            filter_zero_point=zero_point,
            requantize=scaled.how if scaled else None,
        ),
        weights=IntegerWeights(
            filter.tensor, filter.zero_points, zero_point, filter_dtype, *bias, vectors, tail.factors, tail.shifts
        ),
        inexact=_inexact(bias, tail),
        unfolded=tail.unfolded,
        notes=(entry.unfolded,) if entry.unfolded else (),
    )
    return with_fraction_bits(unit, scaled.multipliers) if scaled else unit


def _inexact(bias: tuple[str, Array | None], tail: Tail) -> tuple[Inexact, ...]:
    """What makes the results of a conv other than the model's, before they are rounded."""
    if tail.table:
        return (Inexact(TABLES, tail.table.off_steps),)
    rounds = tail.shifts is not None or bias[1] is not None
    return (Inexact(ROUNDED_BIASES, tail.off_steps if tail.scaled else None),) if rounds else ()


def _stored_filter(
    graph: Graph, filter: Quantised, factors: Array | None, allowed: Sequence[Dtype]
) -> tuple[Dtype, int]:
    """The dtype and the one zero point that a chain stores a filter with.

    Channels may have different zero points, and be multiplied. Where all of them are by -1, codes are complemented.
    """
    is_one, (low, high) = filter.zero_points.size == 1, INTEGER_RANGE[filter.dtype]
    if is_one and (factors is None or np.isin(factors, (0, 1)).all()):
        return cast("Dtype", filter.dtype), filter.zero_point
    if is_one and factors is not None and np.isin(factors, (0, -1)).all() and filter.dtype != "int16":
        return cast("Dtype", filter.dtype), low + high - filter.zero_point
    apart = oihw(graph.value(filter.tensor)).astype(np.int32) - filter.zero_points.reshape(-1, 1, 1, 1)
    apart = apart if factors is None else apart * factors.reshape(-1, 1, 1, 1)
    least, most = int(apart.min(initial=0)), int(apart.max(initial=0))
    (low, high), (lowest, highest) = INTEGER_RANGE["int8"], INTEGER_RANGE["int16"]
    if low <= least and most <= high and filter.dtype != "int16":
        return "int8", 0
    if "int16" in allowed and lowest <= least and most <= highest:
        return "int16", 0
    if most - least > EIGHT_BITS_MOST or "uint8" not in allowed:
        multiplied = "" if factors is None else " is multiplied by less than 0 in some channels,"
        raise Refused(
            f"its filter{multiplied} has {filter.zero_points.size} zero points, and elements {least} to {most} away "
            f"from them; 8 bits hold a range of at most {EIGHT_BITS_MOST}"
        )
    return "uint8", -least


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


def bias_units(graph: Graph, name: str, scales: Array | None) -> Array:
    """A bias in units of the sums, float64: [K], or [1] of 0 where there is none.

    Raises:
        Refused: a value is no finite number of units.
    """
    if not name:
        return np.zeros(1)
    units = graph.value(name).astype(np.float64)
    if scales is not None:
        with np.errstate(all="ignore"):
            units = units / scales
    if lost := int(np.sum(~np.isfinite(units))):
        raise Refused(f"its bias has {lost} values that are no finite number of units of its sums")
    return units


ROOM_TO_ROUND = 1 << 20
"""What is left between a sum and the ends of int32, where that changes no result: HVX adds halves before it shifts."""


def settled_weights(graph: Graph, unit: Unit) -> Folded:
    """Make the weights of a conv, with the biases of channels of one output moved to where int32 holds their sums.

    Raises:
        Refused: a constant can't be read, or the conv's dtype does not hold it.
    """
    folded = unit.weights.folded(graph)
    how = unit.conv.requantize
    if how is None or folded.bias is None:
        return folded
    least, most = sums_by_channel(unit.alone, 0, folded.filter, None)
    bias = folded.bias.copy()
    for room in (ROOM_TO_ROUND, 0):
        end = LARGEST_INT32 - room
        moved = np.clip(bias, -end - least, end - most).astype(np.int32)
        for channel in np.flatnonzero(moved != bias):
            by = _of_channel(how, folded, int(channel))
            ends = np.add.outer([bias[channel], moved[channel]], [least[channel], most[channel]])
            if np.ptp(_codes(ends, by, unit.dtype)) == 0:  # results never fall while sums grow: all between are alike
                bias[channel] = moved[channel]
    return replace(folded, bias=bias)


def limited(graph: Graph, unit: Unit) -> Unit:
    """Return an integer conv that states the limits of its own weights; return any other conv as it is.

    Products are not rounded to few binary places where hvx has no room for that beside these sums.

    Raises:
        Refused: the weights can't be made, or no kernel has room for their sums.
    """
    if not unit.alone.is_integer:
        return unit
    folded, how = settled_weights(graph, unit), unit.conv.requantize
    ways = [how] if how is None or how.fraction_bits is None else [how, replace(how, fraction_bits=None)]
    chains = [_chain(replace(unit, conv=replace(unit.conv, requantize=way)), folded) for way in ways]
    chain = next((chain for chain in chains if not sums_refusals(chain, "hvx")[0]), chains[0])
    if refusal := sums_refusals(chain, "plain")[0]:
        raise Refused(refusal)
    return replace(unit, conv=chain.conv[0])


def _chain(unit: Unit, folded: Folded) -> Chain:
    """Return the chain of one conv with the limits of its weights."""
    vectors = {numbered(what, 1): vector for what, vector in folded.vectors.items()}
    return with_limits(unit.alone, [folded.filter], [folded.bias], vectors)


def _of_channel(how: Requantize, folded: Folded, channel: int) -> Requantize:
    """Return the requantisation of one channel."""
    own = {what: int(folded.vectors[what][channel]) for what in how.vectors}
    return replace(how, **own, least_odd=None)  # pyright: ignore[reportArgumentType]


def _codes(sums: Array, by: Requantize, dtype: str) -> Array:
    """Return the codes of some sums."""
    return np.clip(rounded(sums * by.most_multiplier, by) + by.zero_point, *by.codes(*INTEGER_RANGE[dtype]))
