"""Fold a Pad of zeros along rows and columns into the float conv behind it."""

from dataclasses import dataclass

from hexconv.model.geometry import NO_SIDES, Sides
from hexconv.model.graph import Graph, Node


@dataclass(frozen=True)
class Entry:
    """The nodes before a conv that fold into it.

    Attributes:
        source: the tensor that the first of the nodes reads.
        nodes: the nodes from the source to the conv, the conv included.
        padding: the padding that a Pad adds to the conv's own.
    """

    source: str
    nodes: tuple[Node, ...]
    padding: Sides = NO_SIDES


def float_entry(graph: Graph, conv: Node) -> Entry:
    """The entry of a conv: the conv alone, or with the Pad before it that nothing else reads."""
    image = conv.inputs[0]
    pad = graph.maker(image)
    if pad is None or pad.op != "Pad" or graph.only_reader(image) is not conv:
        return Entry(image, (conv,))
    sides = _zeros_around(graph, pad)
    return Entry(pad.inputs[0], (pad, conv), sides) if sides else Entry(image, (conv,))


def _zeros_around(graph: Graph, pad: Node) -> Sides | None:
    """How many rows and columns of zeros a Pad adds on each side; None if it does anything else."""
    zero, mode = pad.input(2), pad.attributes.get("mode", b"constant")
    is_zero = not graph.value(zero).any() if graph.is_constant(zero) else not zero and not pad.attributes.get("value")
    if mode != b"constant" or not is_zero or pad.input(3):
        return None
    stated = pad.attributes.get("pads") or pad.attributes.get("paddings")
    amounts = graph.value(pad.inputs[1]).tolist() if graph.is_constant(pad.input(1)) else stated
    if not isinstance(amounts, list) or len(amounts) != 8 or min(amounts) < 0:
        return None
    n0, c0, top, left, n1, c1, bottom, right = amounts
    return (top, left, bottom, right) if n0 == c0 == n1 == c1 == 0 else None
