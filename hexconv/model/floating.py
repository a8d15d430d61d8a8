"""Read a float Conv, with the Pad before it and the BatchNormalization, Add, Mul, Relu or Clip behind it."""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hexconv.model.affine import Affine, affine_of
from hexconv.model.clamp import Clamp, clamp_of
from hexconv.model.entry import float_entry
from hexconv.model.geometry import Sides, check_bias, filter_shape, geometry, image_shape
from hexconv.model.graph import Graph, Node
from hexconv.model.passing import passes
from hexconv.model.refused import Refused
from hexconv.model.unit import Folded, Unit
from hexconv.spec import Conv2d, Padding
from hexconv.spec.activations import Activation
from hexconv.spec.dtypes import Dtype

FLOATS = ("float32", "float16")


@dataclass(frozen=True)
class FloatWeights:
    """The filter and the bias of a float conv, and the nodes that fold into them, in order."""

    filter: str
    bias: str
    affine: tuple[Affine, ...]
    dtype: Dtype

    @property
    def has_bias(self) -> bool:
        """Whether the conv gets a bias: its own, or what folds into one."""
        return bool(self.bias) or any(affine.node.op != "Mul" for affine in self.affine)

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
        filter = graph.value(self.filter).astype(np.float64)
        channels = filter.shape[0]
        bias = graph.value(self.bias).astype(np.float64) if self.bias else np.zeros(channels)
        for affine in self.affine:
            scale, shift = affine.values(graph, channels)
            filter, bias = filter * scale[:, None, None, None], bias * scale + shift
        return Folded(filter.astype(self.dtype), bias.astype(np.float32) if self.has_bias else None)


@dataclass(frozen=True)
class _Tail:
    """The nodes behind a conv that fold into it, up to the tensor `result`."""

    result: str
    affine: tuple[Affine, ...]
    activation: Activation


def float_unit(graph: Graph, node: Node) -> Unit:
    """Read a float conv as a chain can have it.

    Raises:
        Refused: no chain can have this conv.
    """
    entry, filter, bias = float_entry(graph, node), node.input(1), node.input(2)
    dtype, filter_dtype = (graph.type_of(name).dtype for name in (entry.source, filter))
    if not filter_dtype:
        raise Refused(f"the type of its filter {filter} is not known to ONNX's shape inference: it may be sparse")
    if dtype not in FLOATS or dtype != filter_dtype:
        raise Refused(f"it has {dtype} values and {filter_dtype} filters; a chain has {' or '.join(FLOATS)} for both")
    image, taps = image_shape(graph, node.inputs[0]), filter_shape(graph, filter)
    check_bias(graph, bias, taps[0])
    fields = geometry(node, image, taps)
    fields["padding"] = _with(fields["padding"], entry.padding)
    tail = _tail(graph, node.outputs[0], taps[0])
    weights = FloatWeights(filter, bias, tail.affine, cast("Dtype", dtype))
    return Unit(
        node=node,
        entry=entry.nodes,
        source=entry.source,
        result=tail.result,
        shape=image_shape(graph, entry.source),
        dtype=weights.dtype,
        filter_dtype=weights.dtype,
        zero_point=0,
        conv=Conv2d(**fields, bias=weights.has_bias, activation=tail.activation),
        weights=weights,
    )


def _with(padding: Padding, more: Sides) -> Padding:
    """Add the padding of the Pad before a conv to the conv's own."""
    top, left, bottom, right = more
    return replace(
        padding,
        top=padding.top + top,
        left=padding.left + left,
        bottom=padding.bottom + bottom,
        right=padding.right + right,
    )


def _tail(graph: Graph, tensor: str, channels: int) -> _Tail:
    """Follow a conv's result while one node alone reads it and that node folds into the conv."""
    affine: list[Affine] = []
    clamp = Clamp()
    while node := graph.only_reader(tensor):
        found = affine_of(graph, node, tensor, channels) if clamp == Clamp() else None
        narrower = _narrower(graph, node, clamp) if node.inputs[0] == tensor else None
        if found:
            affine.append(found)
        elif narrower:
            clamp = narrower
        elif node.inputs[0] != tensor or not passes(graph, node):
            break
        tensor = node.outputs[0]
    return _Tail(tensor, tuple(affine), clamp.activation or "none")


def _narrower(graph: Graph, node: Node, clamp: Clamp) -> Clamp | None:
    """Join a clamp with that of a node; None if the node is no clamp, or a case has no activation for the two."""
    own = clamp_of(graph, node)
    try:
        both = clamp.then(own) if own else None
    except Refused:
        return None
    return both if both and both.activation else None
