"""Read a float Conv, with the Pad before it and what scales, shifts and bends its results behind it."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from hexconv.model.activation import Recognised, activation_of
from hexconv.model.affine import Affine, affine_of
from hexconv.model.entry import entry_of
from hexconv.model.geometry import check_bias, filter_shape, geometry, image_shape, oihw
from hexconv.model.graph import Graph, Node
from hexconv.model.passing import passes
from hexconv.model.refused import Refused
from hexconv.model.unit import Folded, Unit
from hexconv.spec import Conv2d
from hexconv.spec.activations import SLOPE
from hexconv.spec.dtypes import Dtype

FLOATS = ("float32", "float16")


@dataclass(frozen=True)
class FloatWeights:
    """The filter, the bias and a prelu's slopes of a float conv, and the nodes that fold into them, in order."""

    filter: str
    bias: str
    affine: tuple[Affine, ...]
    dtype: Dtype
    slopes: str = ""

    @property
    def has_bias(self) -> bool:
        """Whether the conv gets a bias: its own, or what folds into one."""
        return bool(self.bias) or any(affine.shifts for affine in self.affine)

    def folded(self, graph: Graph) -> Folded:
        """Work out filter and bias in float64, and round them once.

        Raises:
            Refused: a weight is no finite number of the dtype after that.
        """
        with np.errstate(all="ignore"):
            folded = self._rounded(graph)
        for name, weights in (("filter", folded.filter), ("bias", folded.bias)):
            if weights is not None and (lost := int(np.sum(~np.isfinite(weights)))):
                nodes = " and ".join(dict.fromkeys(affine.node.op for affine in self.affine))
                through = f" with {nodes} folded into it" if nodes else ""
                raise Refused(f"its {name} has {lost} values that are no finite {weights.dtype}{through}")
        return folded

    def _rounded(self, graph: Graph) -> Folded:
        """Work out filter and bias without a check that they are finite."""
        filter = oihw(graph.value(self.filter)).astype(np.float64)
        channels = filter.shape[0]
        bias = graph.value(self.bias).astype(np.float64) if self.bias else np.zeros(channels)
        for affine in self.affine:
            scale, shift = affine.values(graph, channels)
            filter, bias = filter * scale[:, None, None, None], bias * scale + shift
        slopes = {SLOPE: graph.value(self.slopes).astype(np.float32).reshape(-1)} if self.slopes else {}
        return Folded(filter.astype(self.dtype), bias.astype(np.float32) if self.has_bias else None, slopes)


@dataclass(frozen=True)
class _Tail:
    """The nodes behind a conv that fold into it, up to the tensor `result`."""

    result: str
    affine: tuple[Affine, ...]
    activation: Recognised | None


def float_unit(graph: Graph, node: Node) -> Unit:
    """Read a float conv as a chain can have it.

    Raises:
        Refused: no chain can have this conv.
    """
    entry, filter, bias = entry_of(graph, [node]), node.input(1), node.input(2)
    dtype, filter_dtype = (graph.type_of(name).dtype for name in (entry.source, filter))
    if not filter_dtype:
        raise Refused(f"the type of its filter {filter} is not known to ONNX's shape inference: it may be sparse")
    if dtype not in FLOATS or dtype != filter_dtype:
        raise Refused(f"it has {dtype} values and {filter_dtype} filters; a chain has {' or '.join(FLOATS)} for both")
    image, taps = image_shape(graph, node.inputs[0]), filter_shape(graph, filter, node.inputs[0])
    check_bias(graph, bias, taps[0])
    fields = geometry(graph, node, image, taps)
    fields["padding"] = entry.around(fields["padding"])
    tail = _tail(graph, node.outputs[0], taps[0])
    found = tail.activation
    weights = FloatWeights(filter, bias, tail.affine, cast("Dtype", dtype), found.slopes if found else "")
    conv = Conv2d(**fields, bias=weights.has_bias)
    return Unit(
        node=node,
        entry=entry.nodes,
        source=entry.source,
        result=tail.result,
        shape=image_shape(graph, entry.source),
        dtype=weights.dtype,
        filter_dtype=weights.dtype,
        zero_point=0,
        conv=found.over(conv) if found else conv,
        weights=weights,
        notes=(entry.unfolded,) if entry.unfolded else (),
    )


def _tail(graph: Graph, tensor: str, channels: int) -> _Tail:
    """Follow a conv's result: what scales and shifts it folds into the weights, and the first activation ends that."""
    affine: list[Affine] = []
    activation = activation_of(graph, tensor, channels)
    while activation is None and (node := graph.only_reader(tensor)):
        if found := affine_of(graph, node, tensor, channels):
            affine.append(found)
        elif node.inputs[0] != tensor or not passes(graph, node):
            break
        tensor = node.outputs[0]
        activation = activation_of(graph, tensor, channels)
    return _Tail(activation.result if activation else tensor, tuple(affine), activation)
