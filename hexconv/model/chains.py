"""Join convs into chains: a chain goes on while only the next conv, and Adds of later convs, read a conv's result.

An Add behind a conv, with its quantisers and clamps, is the epilogue of that conv where the other tensor is one of the
chain: the end of a residual block.

before:  DequantizeLinear(conv), DequantizeLinear(other) -> Add -> Relu -> QuantizeLinear          or QLinearAdd
after:   the conv's codes, and those of the other tensor, make the codes of the sum
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hexconv.errors import InputError
from hexconv.model.affine import Clamp, clamp_of
from hexconv.model.conv_unit import Joined, Unit
from hexconv.model.graph import Graph, Node, passes
from hexconv.model.integer import with_filters
from hexconv.model.quantised import Quantised, quantised
from hexconv.model.refused import Refused
from hexconv.model.units import Convs, is_conv
from hexconv.spec import Chain
from hexconv.spec.addition import EIGHT_BITS
from hexconv.spec.chain import MOST_CONVS
from hexconv.spec.dtypes import INTEGER_RANGE

JOINS = ("Add", "Sum", "Sub", "Mul", "Div", "Concat", "Max", "Min", "QLinearAdd", "QLinearConcat")
POOLS = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "QLinearGlobalAveragePool")
CLAMPS = ("Relu", "Clip")
DEQUANTISE, QUANTISE = "DequantizeLinear", "QuantizeLinear"
SUMS = ("Add", "Sum")
QLINEAR = "QLinearAdd"
SHOWN_READERS = 4


@dataclass(frozen=True)
class Ending:
    """What ends a chain: an operator (or `output`, `branch`, `limit`), and the reason in words."""

    op: str
    reason: str


@dataclass(frozen=True)
class Run:
    """A maximal chain of a model: its convs, and what ends it."""

    units: tuple[Unit, ...]
    ending: Ending

    @property
    def chain(self) -> Chain:
        """The chain as a case states it."""
        return _chain(self.units)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensor that it reads, and those that its convs write."""
        return (self.source, *(unit.written for unit in self.units))

    @property
    def source(self) -> str:
        """The tensor that it reads."""
        return self.units[0].source

    @property
    def result(self) -> str:
        """The tensor that it writes."""
        return self.units[-1].written


def _chain(units: Sequence[Unit]) -> Chain:
    """The chain of some convs, with the Adds in their epilogues."""
    tensors = [units[0].source, *(unit.written for unit in units)]
    convs = (
        replace(unit.conv, add=unit.joined.add(tensors.index(unit.joined.other))) if unit.joined else unit.conv
        for unit in units
    )
    return units[0].chain(tuple(convs))


Adds = Mapping[str, Joined]
"""The Adds that convs may have in their epilogues, by the tensors that these convs make."""


def adds_of(graph: Graph, convs: Convs) -> Adds:
    """Find the Adds that convs could have in their epilogues."""
    read = {unit.result: joined_by(graph, unit) for unit in convs.units}
    return {result: joined for result, joined in read.items() if joined}


def find_runs(graph: Graph, convs: Convs, adds: Adds) -> tuple[Run, ...]:
    """Find all maximal chains, in the order of their first convs; each conv that is taken is in one.

    Args:
        graph: the graph of the model.
        convs: its convs.
        adds: the Adds that are part of the chain before them, where that has both tensors.
    """
    runs, taken = list[Run](), set[int]()
    for unit in convs.units:
        if id(unit) not in taken:
            found = _grown(graph, unit, convs, adds)
            taken |= {id(each) for each in found[0]}
            runs.append(Run(_joined(_alike(found[0]), adds), found[1]))
    return tuple(runs)


Use = tuple[Node, ...]
"""The nodes by which a tensor is read: an operator, and the DequantizeLinear before it if there is one."""


def _uses(graph: Graph, tensor: str) -> list[Use]:
    """Return all uses of a tensor."""
    found: list[Use] = []
    for reader in graph.readers(tensor):
        behind = graph.readers(reader.outputs[0]) if reader.op == "DequantizeLinear" else []
        found += [(reader, node) for node in behind] or [(reader,)]
    return found


def _grown(graph: Graph, unit: Unit, convs: Convs, adds: Adds) -> tuple[list[Unit], Ending]:
    """Follow convs from one on; a tensor that several nodes read is passed if later convs add it in their epilogue.

    Where an Add that reads such a tensor turns out to be none of the chain, the chain ends at that tensor.
    """
    units, waiting = [unit], dict[int, list[Use]]()
    ending = _goes_on(graph, units, convs, adds, waiting)
    while ending is None:
        ending = _goes_on(graph, units, convs, adds, waiting)
    while True:
        added = [each.joined.use for each in _joined(units, adds) if each.joined]
        left = [count for count, uses in waiting.items() if any(use not in added for use in uses)]
        if not left:
            return units, ending
        units = units[: left[0]]
        waiting = {count: uses for count, uses in waiting.items() if count < left[0]}
        ending = _ending(graph, _joined(units, adds)[-1], convs)


def _goes_on(graph: Graph, units: list[Unit], convs: Convs, adds: Adds, waiting: dict[int, list[Use]]) -> Ending | None:
    """Append the conv with which a chain goes on, and note what else reads the tensor between; or say why it ends."""
    unit = _joined(units, adds)[-1]
    if unit.written in graph.outputs:
        return Ending("output", f"{unit.written} is an output of the model")
    if len(units) == MOST_CONVS:
        return Ending("limit", f"a case has at most {MOST_CONVS} convs; the next chain goes on")
    uses = _uses(graph, unit.written)
    for following in (other for other in convs.units if other.source == unit.written):
        own = [use for use in uses if use == following.entry[: len(use)]]
        others = [use for use in uses if use not in own]
        are_adds = not others or (adds and all(_is_sum(use[-1]) for use in others))
        if len(own) == 1 and are_adds and _is_exclusive(graph, following, bool(others)):
            if mismatch := _mismatch(unit, following):
                return mismatch
            if others:
                waiting[len(units)] = others
            units.append(following)
            return None
    return _ending(graph, unit, convs)


def _is_sum(node: Node) -> bool:
    return node.op.rpartition(".")[2] in (*SUMS, QLINEAR)


def _joined(units: Sequence[Unit], adds: Adds) -> tuple[Unit, ...]:
    """The convs of a chain with the Adds whose other tensor is one of the chain."""
    found = list[Unit]()
    for unit in units:
        joined = adds.get(unit.result)
        if joined and _fits([*found, replace(unit, joined=joined)]):
            found.append(replace(unit, joined=joined))
        else:
            found.append(replace(unit, joined=None))
    return tuple(found)


def _fits(units: Sequence[Unit]) -> bool:
    """Whether a chain has what the Add of its last conv reads, as that reads it."""
    tensors, joined = [units[0].source, *(unit.written for unit in units[:-1])], units[-1].joined
    if joined is None or joined.other not in tensors:
        return False
    try:
        chain = _chain(units)
    except InputError:  # another shape, a stride, or sums that no integer form gives
        return False
    return chain.output_zero_point(tensors.index(joined.other)) == joined.other_zero_point


def _alike(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The convs of one chain, all filters in the dtype of the first, since a chain has one filter dtype."""
    return tuple(with_filters(unit, units[0].filter_dtype) for unit in units)


@dataclass(frozen=True)
class _Sum:
    """An Add of codes: both operands with the nodes by which they are read, the conv's first, and its result."""

    operands: tuple[Quantised, Quantised]
    use: tuple[Node, ...]
    result: Quantised
    clamp: Clamp


def joined_by(graph: Graph, unit: Unit) -> Joined | None:
    """Return the Add that alone reads what a conv makes, and whose result is codes; None where there is none."""
    if unit.dtype not in EIGHT_BITS or unit.conv.requantize is None or unit.unfolded:
        return None
    reader = graph.only_reader(unit.result)
    try:
        found = reader and (_of_codes(graph, unit, reader) or _of_floats(graph, reader))
    except Refused:
        return None
    if not found or any(each.dtype != unit.dtype for each in (*found.operands, found.result)):
        return None
    if found.operands[0].zero_point != unit.alone.own_zero_point(0):
        return None
    scales = tuple(float(each.scales[0]) for each in (*found.operands, found.result))
    codes = _codes(found.clamp, found.result, unit.dtype)
    if codes and not codes[0] < codes[1]:
        return None
    return Joined(
        other=found.operands[1].tensor,
        other_zero_point=found.operands[1].zero_point,
        use=found.use,
        result=found.result.tensor,
        scales=(scales[0], scales[1], scales[2]),
        zero_point=found.result.zero_point,
        clamp=codes,
    )


def _of_codes(graph: Graph, unit: Unit, node: Node) -> _Sum | None:
    """A QLinearAdd of what a conv makes."""
    if node.op.rpartition(".")[2] != QLINEAR or node.inputs[0] == node.inputs[3]:
        return None
    places = (0, 3) if node.inputs[0] == unit.result else (3, 0)
    operands = [quantised(graph, *(node.input(place + more) for more in range(3))) for place in places]
    result = quantised(graph, node.outputs[0], node.input(6), node.input(7))
    return _Sum((operands[0], operands[1]), (node,), result, Clamp())


def _of_floats(graph: Graph, node: Node) -> _Sum | None:
    """An Add of what a conv makes, dequantised, up to the QuantizeLinear of the sum."""
    add = graph.only_reader(node.outputs[0]) if node.op == DEQUANTISE else None
    if add is None or add.op not in SUMS or len(add.inputs) != 2 or add.inputs[0] == add.inputs[1]:
        return None
    other = graph.maker(add.inputs[1 if add.inputs[0] == node.outputs[0] else 0])
    if other is None or other.op != DEQUANTISE or graph.is_constant(other.inputs[0]):
        return None
    operands = [quantised(graph, *(each.input(place) for place in range(3)), by=each) for each in (node, other)]
    at, clamp = add.outputs[0], Clamp()
    while (reader := graph.only_reader(at)) and reader.inputs[0] == at:
        if reader.op == QUANTISE:
            result = quantised(graph, reader.outputs[0], reader.input(1), reader.input(2), by=reader)
            return _Sum((operands[0], operands[1]), (other, add), result, clamp)
        own = clamp_of(graph, reader)
        if own is None and not passes(graph, reader):
            return None
        clamp, at = clamp.then(own) if own else clamp, reader.outputs[0]
    return None


def _codes(clamp: Clamp, result: Quantised, dtype: str) -> tuple[int, int] | None:
    """Return the codes of the ends of a clamp; None where it leaves all codes."""
    low, high = INTEGER_RANGE[dtype]
    scale = np.float32(result.scales[0])

    def code(bound: float) -> int:
        steps = np.rint(np.clip(np.float32(bound) / scale, -(2.0**20), 2.0**20))
        return int(np.clip(int(steps) + result.zero_point, low, high))

    ends = code(clamp.low), code(clamp.high)
    return ends if ends != (low, high) else None


def _is_exclusive(graph: Graph, unit: Unit, is_added: bool) -> bool:
    """Whether only the conv reads what the nodes that fold into it make; a DequantizeLinear may be an Add's, too."""
    entry = unit.entry[1:] if is_added and unit.entry[0].op == "DequantizeLinear" else unit.entry
    return all(graph.only_reader(node.outputs[0]) is reader for node, reader in pairwise(entry))


def _mismatch(unit: Unit, other: Unit) -> Ending | None:
    """Why two convs that follow each other can't be in one chain; None if they can."""
    name, op = other.node.name, other.node.op
    alone, joined = unit.alone, unit.joined
    zero_point = joined.zero_point if joined else alone.output_zero_point(1)
    written = (alone.output_dtype(0), zero_point, alone.shapes[-1])
    read = (other.dtype, other.zero_point, other.shape)
    for what, one, two in zip(("dtype", "zero point", "NHWC shape"), written, read, strict=True):
        if one != two:
            return Ending(op, f"{op} {name} reads {unit.written} with the {what} {two}; it is written with {one}")
    if unit.filter_dtype != other.filter_dtype and "int16" in (unit.filter_dtype, other.filter_dtype):
        return Ending(op, f"{op} {name} has filters of {other.filter_dtype}, the conv before it {unit.filter_dtype}")
    return None


def _beyond_dequantize(graph: Graph, readers: Sequence[Node]) -> list[Node]:
    """The nodes that compute with a tensor: for a DequantizeLinear, those that read its result."""
    found: list[Node] = []
    for reader in readers:
        found += graph.readers(reader.outputs[0]) if reader.op == "DequantizeLinear" else [reader]
    return found or list(readers)


def _ending(graph: Graph, unit: Unit, convs: Convs) -> Ending:
    """Why a chain ends behind a conv."""
    readers = _beyond_dequantize(graph, graph.readers(unit.written))
    sums = "; the sums stay int32" if unit.dtype in INTEGER_RANGE and unit.conv.requantize is None else ""
    if unit.unfolded:
        return Ending(readers[0].op if len(readers) == 1 else "branch", f"{unit.unfolded}{sums}")
    if len(readers) > 1:
        names = ", ".join(f"{node.op} {node.name}" for node in readers[:SHOWN_READERS])
        more = f" and {len(readers) - SHOWN_READERS} more" if len(readers) > SHOWN_READERS else ""
        return Ending("branch", f"{unit.written} is read by {len(readers)} nodes: {names}{more}{sums}")
    node = readers[0]
    return Ending(node.op, f"{node.op} {node.name} {_why(graph, node, convs)}{sums}")


def _why(graph: Graph, node: Node, convs: Convs) -> str:
    """Why a chain can't go on with a node, as the rest of a sentence."""
    if is_conv(node):
        reasons = [other.reason for other in convs.not_taken if other.node == node.name]
        return f"is not taken: {reasons[0]}" if reasons else "reads it in another place than a chain does"
    if node.op in JOINS:
        return "joins it with another tensor"
    if node.op in POOLS:
        return "pools it"
    if node.op in CLAMPS:
        return "leaves it a range that neither an activation of a case nor saturation has"
    if node.op == "QuantizeLinear":
        return f"makes it {graph.type_of(node.outputs[0]).dtype}"
    return "is no conv, and folds into none"
