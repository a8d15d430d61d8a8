"""Find the elementwise operators that follow a tensor and depend on nothing else, branches included.

    tensor -+-> Sigmoid -+-> Mul -> result
            +------------+

Each element of the result is one function of one element of the tensor: what the function is, its nodes tell when they
are run on chosen values.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hexconv.model.constants import Array, elements
from hexconv.model.graph import Graph, Node, passes

ACTIVATIONS = ("Celu", "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "Relu", "Selu")
SMOOTH = ("Erf", "Exp", "Log", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu")
ARITHMETIC = ("Abs", "Add", "Ceil", "Div", "Floor", "Max", "Min", "Mul", "Neg", "Pow", "Round", "Sub", "Sum")
OTHERS = ("Cast", "DequantizeLinear", "Identity", "Reciprocal")
ELEMENTWISE = frozenset((*ACTIVATIONS, *SMOOTH, *ARITHMETIC, *OTHERS))
FLOAT16, FLOAT, DOUBLE = 10, 1, 11
"""Numbers of ONNX's types of floats; a Cast between them changes no number in `computed`."""
MOST_NODES = 64
"""The most nodes between two tensors that are taken for one function."""


def following(graph: Graph, tensor: str, operators: frozenset[str]) -> Iterator[Node]:
    """The nodes whose values depend on a tensor alone, element by element, in an order in which they can run.

    Args:
        graph: the graph of the model.
        tensor: the name of the tensor.
        operators: the operators that nodes may have; each works on elements.
    """
    known, waiting = {tensor}, [tensor]
    while waiting and len(known) <= MOST_NODES:
        for node in graph.readers(waiting.pop(0)):
            if node.outputs[0] not in known and _is_elementwise(graph, node, known, operators):
                known.add(node.outputs[0])
                waiting.append(node.outputs[0])
                yield node


def _is_elementwise(graph: Graph, node: Node, known: set[str], operators: frozenset[str]) -> bool:
    """Whether each element of a node's one result depends only on known tensors' same element and on single numbers."""
    if node.op not in operators:
        return False
    others = [name for name in node.inputs if name and name not in known]
    return not any(node.outputs[1:]) and all(graph.is_constant(name) and _is_number(graph, name) for name in others)


def _is_number(graph: Graph, constant: str) -> bool:
    shape = graph.type_of(constant).shape
    return (elements(shape) if shape is not None else graph.value(constant).size) == 1


def leads_on(graph: Graph, tensor: str, nodes: Sequence[Node]) -> bool:
    """Whether only these nodes read a tensor and their own results; anything may read the result of the last."""
    inner = [tensor, *(node.outputs[0] for node in nodes[:-1])]
    readers = {reader for name in inner for reader in graph.readers(name)}
    return readers <= set(nodes) and not any(name in graph.outputs for name in inner)


def computed(graph: Graph, node: Node, values: Mapping[str, Array]) -> dict[str, Array]:
    """The results of a node for some values of what it reads, all in float64, its constants too.

    Raises:
        Refused: ONNX's evaluator can't compute it, or a constant can't be read.
    """
    is_cast = node.op == "Cast" and node.attributes["to"] in (FLOAT16, FLOAT, DOUBLE)
    if is_cast or passes(graph, node):
        return {node.outputs[0]: values[node.inputs[0]]}
    given = {name: values[name] if name in values else _double(graph.value(name)) for name in node.inputs if name}
    with np.errstate(all="ignore"):
        return graph.constants.computed(node.proto, given)


def _double(constant: Array) -> Array:
    return constant.astype(np.float64) if np.issubdtype(constant.dtype, np.floating) else constant
