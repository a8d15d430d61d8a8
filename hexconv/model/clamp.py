"""Relu and Clip as clamps: each limits a value to a range, and several in a row limit it to one range."""

from dataclasses import dataclass
from math import inf, isnan

from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused
from hexconv.spec.activations import Activation


@dataclass(frozen=True)
class Clamp:
    """The clamp `min(max(value, low), high)`."""

    low: float = -inf
    high: float = inf

    def then(self, other: "Clamp") -> "Clamp":
        """Join two clamps, this one first; refuse them where their ranges don't meet, so that all values become one.

        >>> Clamp(0).then(Clamp(-1, 6))
        Clamp(low=0, high=6)
        """
        low, high = max(self.low, other.low), min(self.high, other.high)
        if not low <= high:
            raise Refused(f"its clamps leave no range of values: the lower bound is {low:g}, the upper bound {high:g}")
        return Clamp(low, high)

    @property
    def activation(self) -> Activation | None:
        """The name of the activation of a case that does the same; None if there is none."""
        names: dict[tuple[float, float], Activation] = {(-inf, inf): "none", (0, inf): "relu", (0, 6): "relu6"}
        return names.get((self.low, self.high))


def clamp_of(graph: Graph, node: Node) -> Clamp | None:
    """The clamp that a node applies to its first input; None if it does anything else."""
    if node.op == "Relu":
        return Clamp(0.0)
    if node.op != "Clip":
        return None
    try:
        return Clamp(_bound(graph, node, 1, "min", -inf), _bound(graph, node, 2, "max", inf))
    except Refused:
        return None


def _bound(graph: Graph, node: Node, index: int, attribute: str, default: float) -> float:
    """Read a bound of Clip: an input since opset 11, an attribute before."""
    name = node.input(index)
    if not name:
        return _number(float(node.attributes.get(attribute, default)))
    if not graph.is_constant(name):
        raise Refused(f"its bound {name} depends on the model's input")
    value = graph.value(name)
    if value.size != 1:
        raise Refused(f"its bound {name} has {value.size} values; a clamp has one")
    return _number(float(value.reshape(())))


def _number(bound: float) -> float:
    if isnan(bound):
        raise Refused("one of its bounds is no number")
    return bound
