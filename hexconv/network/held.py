"""The tensors of a model while it is read: where each lies, and in which layout."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hexconv.errors import InputError
from hexconv.model.graph import Graph, Node
from hexconv.model.refused import Refused
from hexconv.network.operand import BLOCKS, NHWC, Operand, extents_of
from hexconv.network.step import How, Operation, Step
from hexconv.run.tensors import Array


class Held:
    """The operands in which a model's tensors lie, and the steps that make them.

    Args (of the constructor):
        graph: the graph of the model.
        model: the name of its file, for errors.
    """

    def __init__(self, graph: Graph, model: str) -> None:
        self.graph, self.model = graph, model
        self.steps: list[Step] = []
        self.constants: dict[str, Array] = {}
        self._held: dict[str, Operand] = {}

    def held(self, tensor: str) -> Operand:
        """Look up the operand in which a tensor of the model lies.

        Raises:
            Refused: the tensor is a constant, which may not stand here, or it is unknown.
        """
        if tensor not in self._held:
            raise Refused(
                f"{tensor}, which it reads, is {'a constant' if self.graph.is_constant(tensor) else 'unknown'}"
            )
        return self._held[tensor]

    def hold(self, tensor: str, operand: Operand) -> None:
        """Note the operand in which a tensor of the model lies."""
        self._held[tensor] = operand

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor of the model.

        Raises:
            InputError: the model leaves a size of it open.
        """
        shape = self.graph.type_of(tensor).shape
        sizes = tuple(size for size in shape or () if isinstance(size, int))
        if shape is None or len(sizes) < len(shape):
            told = ",".join(map(str, shape)) if shape else "?"
            raise InputError.because(
                f"{self.model}: {tensor} has open sizes, {told}", "fix them: --shape INPUT=1,3,224,224"
            )
        return sizes

    def source(self, tensor: str, rank: int | None = None) -> Operand:
        """The operand that an operator reads: in NHWC, or in blocks as a chain writes them; a constant is kept."""
        if tensor not in self._held and self.graph.is_constant(tensor):
            return self.constant_operand(tensor, rank)
        return self.dense(self.held(tensor), blocks=True)

    def constant(self, name: str, values: Array) -> str:
        """Keep an array that an operator reads besides tensors; return its name."""
        self.constants[name] = np.ascontiguousarray(values)
        return name

    def constant_operand(self, tensor: str, rank: int | None) -> Operand:
        """Keep a constant of the model as a tensor; return its operand."""
        values = self.graph.value(tensor)
        extents = extents_of(values.shape, rank)
        batch, rows, columns, channels = extents
        values = values.reshape(batch, channels, rows, columns).transpose(0, 2, 3, 1)
        name = self.constant(f"constant:{tensor}", values)
        return Operand(name, extents, str(values.dtype))

    def dense(self, operand: Operand, blocks: bool = False) -> Operand:
        """Return the operand in NHWC, converted if need be; with `blocks`, one in a chain's blocks stays as it is."""
        if operand.layout == NHWC or (blocks and operand.layout == BLOCKS):
            return operand
        return self.convert(operand, NHWC)

    def convert(self, operand: Operand, layout: str) -> Operand:
        """Convert an operand to another layout; a conversion that was made before is reused."""
        sizes = "x".join(map(str, operand.extents))
        target = Operand(f"{operand.buffer} {layout} {sizes}", operand.extents, operand.dtype, layout)
        raw = operand.as_numbers
        if not any(step.result.buffer == target.buffer for step in self.steps):
            self.steps.append(Operation("convert", f"{operand.buffer} to {layout}", (raw,), target))
        return replace(target, scale=operand.scale, zero_point=operand.zero_point)

    def add(self, operator: str, node: Node, sources: Sequence[Operand], result: Operand, *how: How) -> None:
        """Add a step."""
        self.steps.append(Operation(operator, node.name, tuple(sources), result, how))

    def rename(self, old: str, new: str) -> None:
        """Rename a buffer to one of the caller's."""

        def moved(operand: Operand) -> Operand:
            return replace(operand, buffer=new) if operand.buffer == old else operand

        self.steps = [
            replace(step, sources=tuple(map(moved, step.sources)), result=moved(step.result)) for step in self.steps
        ]
        self._held = {name: moved(operand) for name, operand in self._held.items()}
