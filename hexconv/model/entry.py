"""Fold a Pad along rows and columns into the conv behind it, where it adds what the conv pads with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hexconv.model.geometry import NO_SIDES, RANKS, Sides
from hexconv.model.graph import Graph, Node
from hexconv.model.passing import passes
from hexconv.spec import Padding


@dataclass(frozen=True)
class Entry:
    """The nodes before a conv that fold into it.

    Attributes:
        source: the tensor that the first of the nodes reads.
        nodes: the nodes from the source to the conv, the conv included.
        sides: the padding that Pads add to the conv's own.
        unfolded: why a Pad before the source does not fold; empty where there is none.
    """

    source: str
    nodes: tuple[Node, ...]
    sides: Sides = NO_SIDES
    unfolded: str = ""

    def around(self, padding: Padding) -> Padding:
        """Add what Pads add to a conv's own padding."""
        top, left, bottom, right = self.sides
        return replace(
            padding,
            top=padding.top + top,
            left=padding.left + left,
            bottom=padding.bottom + bottom,
            right=padding.right + right,
        )


def entry_of(graph: Graph, nodes: Sequence[Node], zero: int = 0) -> Entry:
    """The entry of a conv, with the Pads before it.

    Args:
        graph: the graph of the model.
        nodes: the nodes that fold into the conv in any case, the conv last: the first one may be its DequantizeLinear.
        zero: the number that stands for 0 in what the first of them reads, and that the conv pads with.

    Raises:
        Refused: a constant of a Pad can't be read.
    """
    found = Entry(nodes[0].inputs[0], tuple(nodes))
    at, before, sides = found.source, list(nodes), found.sides
    while node := graph.maker(at):
        if node.op == "Pad":
            more = _added(graph, node, zero)
            if isinstance(more, str):
                return replace(found, unfolded=f"Pad {node.name} before it does not fold into its padding: {more}")
            top, left, bottom, right = (one + two for one, two in zip(sides, more, strict=True))
            at, before, sides = node.inputs[0], [node, *before], (top, left, bottom, right)
            found = Entry(at, tuple(before), sides)
        elif passes(graph, node):
            at, before = node.inputs[0], [node, *before]
        else:
            break
    return found


def _added(graph: Graph, pad: Node, zero: int) -> Sides | str:
    """How many rows and columns a Pad adds on each side; or why a conv's padding can't add the same."""
    mode = pad.attributes.get("mode", b"constant").decode(errors="replace")
    if mode != "constant":
        return f"its mode is {mode}, and a conv pads with 0"
    if depends := [name for name in pad.inputs[1:] if name and not graph.is_constant(name)]:
        return f"{depends[0]} depends on the model's input; export it with constants"
    value = pad.input(2)
    filled = float(graph.value(value).reshape(-1)[0]) if value else float(pad.attributes.get("value", 0))
    if filled != zero:
        return f"it fills with {filled:g}, and the conv pads with {zero}; export it with that value"
    before, after = _amounts(graph, pad)
    if min((*before, *after), default=-1) < 0 or any((*before[:2], *after[:2])):
        return f"it adds {[*before, *after]}, and a conv has padding of at least 0 along rows and columns alone"
    return before[2], before[3], after[2], after[3]


def _amounts(graph: Graph, pad: Node) -> tuple[list[int], list[int]]:
    """What a Pad adds before and behind N, C, H and W of an image; nothing where it has other axes."""
    stated = pad.attributes.get("pads") or pad.attributes.get("paddings") or []
    stated = graph.value(pad.input(1)).reshape(-1).tolist() if pad.input(1) else stated
    rank = len(graph.type_of(pad.inputs[0]).shape or ())
    axes = graph.value(pad.input(3)).reshape(-1).tolist() if pad.input(3) else range(rank)
    if rank not in RANKS or len(stated) != 2 * len(axes) or any(not -rank <= axis < rank for axis in axes):
        return [], []
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        before[axis], after[axis] = int(stated[place]), int(stated[place + len(axes)])
    rows = [0] * (max(RANKS) - rank)
    return [*before[:2], *rows, *before[2:]], [*after[:2], *rows, *after[2:]]
