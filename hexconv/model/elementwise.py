"""Turn elementwise operators on one quantised tensor into a table of 256 codes, or into a clamp of codes.

    conv -> quantised T -> DequantizeLinear -+-> Sigmoid -> QuantizeLinear -> DequantizeLinear -+-> Mul -> quantised Q
                                             +--------------------------------------------------+

Every element of Q depends on one element of T alone. So all nodes between are run once, at import, on all codes of
T: with ONNX's own evaluator, in float32, and with the quantisers inside. For codes of 16 bits only clamps are taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import cast

import numpy as np

from hexconv.model.constants import Array
from hexconv.model.contributed import DOMAIN
from hexconv.model.conv_unit import Inexact, Unit
from hexconv.model.graph import Graph, Node
from hexconv.model.integer import IntegerWeights
from hexconv.model.pointwise import ELEMENTWISE, following, leads_on
from hexconv.model.quantised import quantised
from hexconv.model.tail import HAS_TABLE
from hexconv.spec.activations import TABLE
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.requantize import Requantize
from hexconv.spec.vectors import looked_up

QUANTISERS = {
    "QuantizeLinear": 1,
    f"{DOMAIN}.QLinearSigmoid": 3,
    f"{DOMAIN}.QLinearLeakyRelu": 3,
    f"{DOMAIN}.QLinearMul": 6,
    f"{DOMAIN}.QLinearAdd": 6,
}
"""Operators that make a quantised tensor, and the index of the input that is its scale; the zero point comes next."""
OPERATORS = ELEMENTWISE | frozenset(QUANTISERS)
SIDES = {"uint8": 16, "int8": 16, "int16": 256}
"""The side of a square image of all codes of a dtype; constants of one number are broadcast to it."""


@dataclass(frozen=True)
class Function:
    """The function that elementwise operators apply to a quantised tensor.

    Attributes:
        result: the quantised tensor that the operators end in.
        nodes: the operators in the order of the graph; the last one makes `result`.
        zero_point: the zero point of the result.
    """

    result: str
    nodes: tuple[Node, ...]
    zero_point: int


def with_table(graph: Graph, unit: Unit) -> Unit:
    """Fold the elementwise nodes behind a conv into it, up to the last quantised tensor: as a clamp, or as a table.

    Args:
        graph: the graph that the conv is part of.
        unit: the conv with what folds into it, up to its quantiser.

    Raises:
        Refused: a constant that these nodes read can't be read.
    """
    how = unit.conv.requantize
    if how is None or graph.type_of(unit.result).dtype != unit.dtype:  # a chain has uint16 as int16
        return unit
    low, high = INTEGER_RANGE[unit.dtype]
    codes = np.arange(low, high + 1).astype(unit.dtype)
    table, made = _vectors(unit).get(TABLE, codes), unit
    while found := _function(graph, made.result, unit.dtype):
        own = _table(graph, found, made.result, codes)
        table = looked_up(table, own)
        clamp = clamp_of_codes(table, how, codes) if found.zero_point == how.zero_point else None
        if clamp is None and unit.dtype not in HAS_TABLE:
            return made
        inexact = made.inexact if clamp else tuple(_through(own, each) for each in made.inexact)
        folded = _clamped(unit, found, clamp) if clamp else _looked_up(unit, found, table)
        made = replace(folded, inexact=inexact)
    return made


def _clamped(unit: Unit, function: Function, clamp: Requantize) -> Unit:
    """Fold a function that only clamps codes into the conv before it."""
    conv = replace(unit.conv, requantize=clamp, activation="none", table_zero_point=0)
    vectors = {name: vector for name, vector in _vectors(unit).items() if name != TABLE}
    return replace(_with(unit, vectors), result=function.result, conv=conv)


def _looked_up(unit: Unit, function: Function, table: Array) -> Unit:
    """Fold a function into the conv before it, as a table."""
    conv = replace(unit.conv, activation=TABLE, table_zero_point=function.zero_point)
    return replace(_with(unit, {**_vectors(unit), TABLE: table}), result=function.result, conv=conv)


def _through(table: Array, inexact: Inexact) -> Inexact:
    """How far results are off behind a table whose codes are off."""
    codes = min(ceil(inexact.off_steps or 0.0), len(table) - 1)
    values = table.astype(np.int64)
    apart = (int(np.max(np.abs(values[by:] - values[:-by]))) for by in range(1, codes + 1))
    return replace(inexact, off_steps=float(max(apart, default=0)), looked_up_steps=inexact.off(is_looked_up=True))


def _vectors(unit: Unit) -> Mapping[str, Array]:
    return cast("IntegerWeights", unit.weights).vectors


def _with(unit: Unit, vectors: Mapping[str, Array]) -> Unit:
    return replace(unit, weights=replace(cast("IntegerWeights", unit.weights), vectors=vectors))


def clamp_of_codes(table: Array, how: Requantize, codes: Array) -> Requantize | None:
    """The requantisation with a clamp that does the same as a table behind it; None if the table is no clamp.

    >>> codes = np.arange(256).astype("uint8")
    >>> clamp_of_codes(np.clip(codes, 3, 90), Requantize(multiplier=1, clamp=(0, 60)), codes).clamp
    (3, 60)
    """
    least, most = how.codes(int(codes[0]), int(codes[-1]))
    reached = table[least - int(codes[0]) : most - int(codes[0]) + 1]
    first, last = int(reached.min()), int(reached.max())
    inside = np.clip(codes[least - int(codes[0]) : most - int(codes[0]) + 1], first, last)
    if first >= last or not np.array_equal(inside, reached):
        return None
    whole = (first, last) == (int(codes[0]), int(codes[-1]))
    return replace(how, clamp=None if whole else (first, last))


def _function(graph: Graph, tensor: str, dtype: str) -> Function | None:
    """The function from a tensor to the nearest quantised tensor that depends on it alone; None if there is none.

    Everything that reads the tensor must go into that result, and into nothing else.
    """
    nodes: list[Node] = []
    for node in following(graph, tensor, OPERATORS):
        nodes.append(node)
        if (zero_point := _quantised_zero(graph, node, dtype)) is not None and leads_on(graph, tensor, nodes):
            return Function(node.outputs[0], tuple(nodes), zero_point)
    return None


def _quantised_zero(graph: Graph, node: Node, dtype: str) -> int | None:
    """The zero point of a node that quantises to a dtype; None for any other node."""
    if (scale := QUANTISERS.get(node.op)) is None or graph.type_of(node.outputs[0]).dtype != dtype:
        return None
    by = node if node.op == "QuantizeLinear" else None
    return quantised(graph, node.outputs[0], node.input(scale), node.input(scale + 1), by=by).zero_point


def _table(graph: Graph, function: Function, tensor: str, codes: Array) -> Array:
    """The result of a function for every code."""
    side = SIDES[str(codes.dtype)]
    values = {tensor: codes.reshape(1, 1, side, side)}
    for node in function.nodes:
        constants = {name: graph.value(name) for name in node.inputs if name and name not in values}
        values |= graph.constants.computed(
            node.proto, {**constants, **{n: values[n] for n in node.inputs if n in values}}
        )
    return values[function.result].reshape(-1)
