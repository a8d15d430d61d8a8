"""Join convs into chains: a chain goes on while only the next conv reads a conv's result."""

from collections.abc import Sequence
from dataclasses import dataclass

from hexconv.model.conv_unit import Unit
from hexconv.model.graph import Graph, Node
from hexconv.model.integer import with_filters
from hexconv.model.units import Convs, is_conv
from hexconv.spec import Chain
from hexconv.spec.chain import MOST_CONVS
from hexconv.spec.dtypes import INTEGER_RANGE

JOINS = ("Add", "Sum", "Sub", "Mul", "Div", "Concat", "Max", "Min", "QLinearAdd", "QLinearConcat")
POOLS = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "QLinearGlobalAveragePool")
CLAMPS = ("Relu", "Clip")
SHOWN_READERS = 4


@dataclass(frozen=True)
class Ending:
    """What ends a chain: an operator (or `output`, `branch`, `limit`, `nothing`), and the reason in words."""

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
        return self.units[0].chain(tuple(unit.conv for unit in self.units))


def find_runs(graph: Graph, convs: Convs) -> tuple[Run, ...]:
    """Find all maximal chains, in the order of their first convs; each conv that is taken is in one."""
    after = {id(unit): _after(graph, unit, convs) for unit in convs.units}
    inside = {id(found) for found in after.values() if isinstance(found, Unit)}
    runs = [run for unit in convs.units if id(unit) not in inside for run in _runs_from(unit, after)]
    position = {id(unit): index for index, unit in enumerate(convs.units)}
    return tuple(sorted(runs, key=lambda run: position[id(run.units[0])]))


def _runs_from(unit: Unit, after: dict[int, "Unit | Ending"]) -> list[Run]:
    """Follow convs from one that continues no other; they are cut into several chains where a case can't hold all."""
    units, found = [unit], after[id(unit)]
    while isinstance(found, Unit):
        units.append(found)
        found = after[id(found)]
    limit = Ending("limit", f"a case has at most {MOST_CONVS} convs; the next chain goes on")
    pieces = [_alike(units[start : start + MOST_CONVS]) for start in range(0, len(units), MOST_CONVS)]
    return [Run(piece, found if piece is pieces[-1] else limit) for piece in pieces]


def _alike(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The convs of one chain, all filters in the dtype of the first, since a chain has one filter dtype."""
    return tuple(with_filters(unit, units[0].filter_dtype) for unit in units)


def _after(graph: Graph, unit: Unit, convs: Convs) -> "Unit | Ending":
    """The conv with which a chain goes on behind this one, or why it ends there."""
    if unit.result in graph.outputs:
        return Ending("output", f"{unit.result} is an output of the model")
    readers = graph.readers(unit.result)
    for reader in readers if len(readers) == 1 else ():
        following = [other for other in convs.units if other.entry[0] is reader and other.source == unit.result]
        if len(following) == 1 and _is_exclusive(graph, following[0]):
            return _mismatch(unit, following[0]) or following[0]
    return _ending(graph, unit, _beyond_dequantize(graph, readers), convs)


def _is_exclusive(graph: Graph, unit: Unit) -> bool:
    """Whether only the conv reads what the nodes that fold into it make."""
    pairs = zip(unit.entry, unit.entry[1:], strict=False)
    return all(graph.only_reader(node.outputs[0]) is reader for node, reader in pairs)


def _mismatch(unit: Unit, other: Unit) -> Ending | None:
    """Why two convs that follow each other can't be in one chain; None if they can."""
    name, op = other.node.name, other.node.op
    alone = unit.alone
    written = (alone.output_dtype(0), alone.output_zero_point(1), alone.shapes[-1])
    read = (other.dtype, other.zero_point, other.shape)
    for what, one, two in zip(("dtype", "zero point", "NHWC shape"), written, read, strict=True):
        if one != two:
            return Ending(op, f"{op} {name} reads {unit.result} with the {what} {two}; it is written with {one}")
    if unit.filter_dtype != other.filter_dtype and "int16" in (unit.filter_dtype, other.filter_dtype):
        return Ending(op, f"{op} {name} has filters of {other.filter_dtype}, the conv before it {unit.filter_dtype}")
    return None


def _beyond_dequantize(graph: Graph, readers: Sequence[Node]) -> list[Node]:
    """The nodes that compute with a tensor: for a DequantizeLinear, those that read its result."""
    found: list[Node] = []
    for reader in readers:
        found += graph.readers(reader.outputs[0]) if reader.op == "DequantizeLinear" else [reader]
    return found or list(readers)


def _ending(graph: Graph, unit: Unit, readers: Sequence[Node], convs: Convs) -> Ending:
    """Why a chain ends behind a conv."""
    sums = "; the sums stay int32" if unit.dtype in INTEGER_RANGE and unit.conv.requantize is None else ""
    if unit.unfolded:
        return Ending(readers[0].op if len(readers) == 1 else "branch", f"{unit.unfolded}{sums}")
    if not readers:
        return Ending("nothing", f"nothing reads {unit.result}")
    if len(readers) > 1:
        names = ", ".join(f"{node.op} {node.name}" for node in readers[:SHOWN_READERS])
        more = f" and {len(readers) - SHOWN_READERS} more" if len(readers) > SHOWN_READERS else ""
        return Ending("branch", f"{unit.result} is read by {len(readers)} nodes: {names}{more}{sums}")
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
