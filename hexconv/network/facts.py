"""What is known of a network that was built: for people, for `network.json`, and for the C that is written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hexconv.network.step import Call, Port, Program, moved_bytes
from hexconv.spec import Target


@dataclass(frozen=True)
class PortFacts:
    """An input or an output in C.

    Attributes:
        name: a C identifier.
        tensor: the name in the model.
        way: `input` or `output`.
        dtype: of its elements.
        shape: as the model has it.
        bytes: that it takes.
        elements: their number.
    """

    name: str
    tensor: str
    way: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    elements: int


@dataclass(frozen=True)
class StepFacts:
    """One step: the name of its operator or `chain`, its node, and the bytes that it reads and writes of tensors."""

    operator: str
    node: str
    reads_bytes: int
    writes_bytes: int


@dataclass(frozen=True)
class BuiltNetwork:
    """A network, built.

    Attributes:
        name: the C identifier that its functions begin with.
        model: name of its file.
        target: `hexagon` or `llvm`.
        isa: the instruction set, of Hexagon.
        ports: inputs, then outputs, in the order of the parameters.
        chains: C identifiers.
        steps: in order.
        operators: callbacks that it needs.
        weights_bytes: of the file of weights.
        vtcm_bytes: the most that a chain takes.
        arena_bytes: of all tensors between steps.
        least_arena_bytes: no arena could be smaller.
        scratch_bytes: the arena, and the most that a chain takes besides VTCM.
        library_bytes: of all code and weights.
        threads: the most that a chain makes use of.
    """

    name: str
    model: str
    target: Target
    isa: str
    ports: tuple[PortFacts, ...]
    chains: tuple[str, ...]
    steps: tuple[StepFacts, ...]
    operators: tuple[str, ...]
    weights_bytes: int
    vtcm_bytes: int
    arena_bytes: int
    least_arena_bytes: int
    scratch_bytes: int
    library_bytes: int
    threads: int


def ports_of(program: Program) -> tuple[PortFacts, ...]:
    """Inputs, then outputs."""
    return (*_named("input", program.inputs), *_named("output", program.outputs))


def _named(way: str, ports: Sequence[Port]) -> list[PortFacts]:
    """Names in C that are no keywords, and each there once."""
    found: list[PortFacts] = []
    for port in ports:
        name = f"{way}_{re.sub(r'[^A-Za-z0-9]+', '_', port.name).strip('_')}"
        taken = sum(other.name == name or other.name.startswith(f"{name}_again") for other in found)
        name = f"{name}_again{taken}" if taken else name
        size = port.operand.bytes
        found.append(PortFacts(name, port.name, way, port.operand.dtype, port.shape, size, prod(port.shape)))
    return found


def steps_of(program: Program) -> tuple[StepFacts, ...]:
    """All steps."""
    return tuple(
        StepFacts("chain" if isinstance(step, Call) else step.operator, step.node, *moved_bytes(step))
        for step in program.steps
    )
