"""Fold the constants of a model, each only when its value is asked for."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from hexconv.model.contributed import as_standard, is_standard
from hexconv.model.fold import fold
from hexconv.model.refused import Refused

LARGEST_FOLDED = 2**28
"""The most elements of a folded tensor: no filter has more, and a file of a few bytes can ask for any number."""
NEVER_FOLDED = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
SUBGRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)

SHAPES = ("Shape", "Size")
"""Operators whose results are constants wherever sizes are fixed, whatever the values are."""

Array = NDArray[Any]
Shape = tuple[int | str, ...]


class Constants:
    """Which tensors of a graph don't depend on its inputs, and what they hold."""

    def __init__(
        self, model: onnx.ModelProto, folder: Path, shapes: Mapping[str, Shape | None], most: int = LARGEST_FOLDED
    ) -> None:
        """Find the constants; nothing is read or computed yet.

        Args:
            model: the model, with shapes inferred.
            folder: the folder that external data lies in.
            shapes: the shape of each tensor, None where it is not known.
            most: the most elements of a tensor that is computed.
        """
        self._opsets, self._folder, self._shapes, self._most = model.opset_import, folder, shapes, most
        self._stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self._made: dict[str, onnx.NodeProto] = {}
        self._values: dict[str, Array] = {}
        for node in model.graph.node:
            if self._is_shape(node) or (_folds(node) and all(name in self for name in node.input if name)):
                self._made.update(dict.fromkeys(node.output, node))

    def __contains__(self, name: str) -> bool:
        """Whether a tensor is a constant."""
        return name in self._stored or name in self._made

    def value(self, name: str) -> Array:
        """The value of a constant.

        Raises:
            Refused: the constant's data can't be read, or ONNX's evaluator can't compute it.
        """
        # Deepest first, without recursion: a chain of constants may be longer than Python's stack.
        waiting = [name]
        while waiting:
            missing = [source for source in self._inputs(waiting[-1]) if source not in self._values]
            if missing:
                waiting += missing
            else:
                self._evaluate(waiting.pop())
        return self._values[name]

    def computed(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> dict[str, Array]:
        """Compute a node's outputs, by name, with ONNX's evaluator.

        Args:
            node: a node without bodies, of ONNX's own domain, or one of ONNX Runtime's with an ONNX operator inside.
            values: the values of all its inputs, by name.

        Raises:
            Refused: ONNX's evaluator can't compute it.
        """
        known = dict(values)
        try:
            for part in as_standard(node):
                known |= fold(part, self._opsets, {name: known[name] for name in part.input if name})
        except Refused:
            raise
        except Exception as error:  # whatever the evaluator raises, the rest of the model is still read
            raise Refused(f"{node.op_type} {node.name} can't be computed: {_first_words(error)}") from None
        return {name: known[name] for name in node.output if name}

    def _is_shape(self, node: onnx.NodeProto) -> bool:
        """Whether a node makes the sizes of a tensor, and these are fixed."""
        return is_standard(node) and node.op_type in SHAPES and elements(self._shapes.get(node.input[0])) is not None

    def _inputs(self, name: str) -> list[str]:
        if name in self._stored or self._is_shape(self._made[name]):
            return []
        return [source for source in self._made[name].input if source]

    def _evaluate(self, name: str) -> None:
        """Compute one tensor whose inputs are all known."""
        if name in self._values:
            return
        try:
            if name in self._stored:
                self._values[name] = numpy_helper.to_array(self._stored[name], base_dir=str(self._folder))
            else:
                self._values.update(self._folded(self._made[name]))
        except Refused:
            raise
        except Exception as error:  # whatever is wrong with data or attributes, the rest of the model is still read
            raise Refused(f"the constant {name} can't be computed: {_first_words(error)}") from None

    def _folded(self, node: onnx.NodeProto) -> dict[str, Array]:
        """Compute all outputs of a node whose inputs are constants."""
        sizes = [elements(self._shapes.get(name)) for name in node.output if name]
        if any(size is None or size > self._most for size in sizes):
            raise Refused(f"the constant {node.output[0]} is too large to fold, or of unknown size")
        if self._is_shape(node):  # which reads no element
            sizes = [size for size in self._shapes[node.input[0]] or () if isinstance(size, int)]
            return self.computed(node, {node.input[0]: np.broadcast_to(np.int8(0), sizes)})
        return self.computed(node, {name: self._values[name] for name in node.input if name})


def _first_words(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def elements(shape: Shape | None) -> int | None:
    """How many elements a shape has; None unless all its sizes are known."""
    if shape is None or any(isinstance(size, str) for size in shape):
        return None
    return prod(size for size in shape if isinstance(size, int))


def _folds(node: onnx.NodeProto) -> bool:
    """Whether a node whose inputs are constants makes a constant that ONNX's evaluator can compute."""
    standard = is_standard(node) and node.op_type not in NEVER_FOLDED
    is_random = node.op_type == "Dropout" and any(node.input[2:])
    return standard and not is_random and not any(attribute.type in SUBGRAPHS for attribute in node.attribute)
