"""Look at every conv of a model: read it as a chain can have it, or say why no chain can."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import onnx
from pydantic import ValidationError

from hexconv.errors import InputError
from hexconv.model.constants import SUBGRAPHS
from hexconv.model.contributed import is_optimised
from hexconv.model.conv_unit import Unit
from hexconv.model.edits import DEQUANTISE, MOVES, PAD
from hexconv.model.elementwise import with_table
from hexconv.model.floating import float_unit
from hexconv.model.geometry import RANKS, image_shape
from hexconv.model.graph import Graph, Node, optimised, passes, unknown
from hexconv.model.integer import integer_unit, is_qdq, limited, qdq_unit, qlinear_unit
from hexconv.model.manifest import NotTaken
from hexconv.model.refused import Refused
from hexconv.spec import Case
from hexconv.spec.fields import first_complaint
from hexconv.working import each

MOST_BETWEEN = 32


@dataclass(frozen=True)
class Convs:
    """The convs of a graph, in order: each is a unit, or is not taken for a reason."""

    units: tuple[Unit, ...]
    not_taken: tuple[NotTaken, ...]


def convs_of(graph: Graph) -> Convs:
    """Read every conv of a graph."""
    units, not_taken = [], []
    for node in each([node for node in graph.nodes if is_conv(node)], "reading", lambda node: node.name):
        try:
            if graph.is_dead(node):
                raise Refused("no output of the model needs it")
            units.append(_taken(graph, node))
        except Refused as refusal:
            not_taken.append(NotTaken(node=node.name, op=node.op, reason=str(refusal)))
    return Convs(tuple(units), tuple(not_taken))


def is_requantised(graph: Graph, node: Node | None) -> bool:
    """Whether a chain can have a conv with the QuantizeLinear behind it: codes to codes."""
    try:
        return node is not None and _taken(graph, node).conv.requantize is not None
    except Refused:
        return False


def _taken(graph: Graph, node: Node) -> Unit:
    unit = _past(graph, with_table(graph, _unit(graph, node)))
    return limited(graph, _checked(graph, unit))


def is_conv(node: Node) -> bool:
    """Whether a node is a convolution of any kind: ConvTranspose, DeformConv and those of other domains are too."""
    return "Conv" in node.op.rpartition(".")[2]


def convs_inside(model: onnx.ModelProto) -> Iterator[NotTaken]:
    """Name the convs in the bodies of If, Loop and Scan, which no chain can have."""
    waiting = [(node, "") for node in model.graph.node]
    while waiting:
        proto, outside = waiting.pop()
        node = Node.of(proto)
        if outside and is_conv(node):
            yield NotTaken(
                node=node.name, op=node.op, reason=f"it is inside of {outside}; chains are found in the graph itself"
            )
        bodies = [a for a in proto.attribute if a.type in SUBGRAPHS]
        for attribute in bodies:
            for body in (attribute.g, *attribute.graphs):
                waiting += [(inner, f"{node.op} {node.name}") for inner in body.node]


def _unit(graph: Graph, node: Node) -> Unit:
    """Read a conv by its kind: float, QLinearConv, ConvInteger or QDQ."""
    if graph.is_constant(node.input(0)):
        raise Refused(f"its image {node.input(0)} is a constant; chains begin where the model's input is read")
    if reason := unknown(graph, node.input(0)):
        raise Refused(reason)
    try:
        if node.op == "Conv":
            return qdq_unit(graph, node) if is_qdq(graph, node) else _told(graph, float_unit(graph, node))
        if node.op == "QLinearConv":
            return qlinear_unit(graph, node)
        if node.op == "ConvInteger":
            return integer_unit(graph, node)
    except ValidationError as error:
        raise Refused(str(first_complaint(error).within("its case"))) from None
    except InputError as error:
        if not error.where.startswith("chain."):  # the file is at fault, not this conv
            raise
        raise Refused(str(error.within("its case"))) from None
    if is_optimised(node.op):
        raise Refused(optimised(graph))
    raise Refused(f"{node.op} is no conv2d that a chain can have; Conv, QLinearConv and ConvInteger are")


def _told(graph: Graph, unit: Unit) -> Unit:
    """A float conv with a note on why it is one, where its filter or its image is quantised."""
    image, filter = ((name, _between(graph, name)) for name in unit.node.inputs[:2])
    if image[1] is None and filter[1] is None:
        return unit
    what = "image is" if filter[1] is None else "filter is" if image[1] is None else "image and its filter are"
    reasons = [
        _why_float(graph, name, *found) for name, found in zip(("image", "filter"), (image, filter), strict=True)
    ]
    why = "; ".join(reason for reason in reasons if reason)
    return replace(unit, notes=(*unit.notes, f"it computes in {unit.dtype} though its {what} quantised: {why}"))


def _why_float(graph: Graph, what: str, tensor: str, between: tuple[Node, ...] | None) -> str:
    """Why an image or a filter keeps a conv from integers, and what to do; empty where it doesn't."""
    if between:
        names = " and ".join(f"{node.op} {node.name}" for node in between)
        return f"{names} between DequantizeLinear and its {what} does more than move values; quantise behind it"
    if between is not None:
        return ""
    if graph.is_constant(tensor):
        return f"its {what} {tensor} is not; quantise it too"
    maker = graph.maker(tensor)
    made = f"{maker.op} {maker.name} makes" if maker else "the model gives"
    return f"{made} its {what} {tensor} in floats; put QuantizeLinear and DequantizeLinear behind it"


def _between(graph: Graph, tensor: str) -> tuple[Node, ...] | None:
    """The nodes from a DequantizeLinear to a tensor; None if it comes from none, or through another conv.

    Of several tensors that a node reads, the first one counts.
    """
    nodes: list[Node] = []
    while (node := graph.maker(tensor)) and len(nodes) < MOST_BETWEEN:
        if node.op == DEQUANTISE:
            return tuple(reversed(nodes))
        is_moved = graph.is_constant(tensor) or node.op in MOVES or node.op == PAD or passes(graph, node)
        if not is_moved or not node.inputs:
            return None
        nodes.append(node)
        tensor = node.inputs[0]
    return None


def _past(graph: Graph, unit: Unit) -> Unit:
    """A unit with the nodes behind it that change nothing."""
    result = unit.result
    while (node := graph.only_reader(result)) and node.inputs[0] == result and passes(graph, node):
        result = node.outputs[0]
    return replace(unit, result=result)


def _checked(graph: Graph, unit: Unit) -> Unit:
    """Check that a unit makes a valid case by itself, with its weights, and writes a tensor of its own shape."""
    try:
        alone = Case(unit.node.name, unit.alone, states_plan=False).chain
    except ValidationError as error:
        raise Refused(str(first_complaint(error).within("its case"))) from None
    except InputError as error:
        raise Refused(str(error)) from None
    if not alone.is_integer:  # those of integers are made where their sums are limited
        unit.weights.folded(graph)
    result = graph.type_of(unit.result)
    if result.is_fixed and len(result.shape or ()) in RANKS and image_shape(graph, unit.result) != alone.shapes[-1]:
        raise Refused(f"its result {unit.result} has the shape {list(result.shape or ())}, not that of a conv's result")
    return unit
