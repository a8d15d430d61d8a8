"""The facts about a network that was built: for people, for `network.json`, and for the C that is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from hexconv.network.step import Call, Port, Program, moved_bytes
from hexconv.spec import KernelChoice, Target
from hexconv.whitelist import apart, identifier


@dataclass(frozen=True)
class PortFacts:
    """An input or an output in C.

    Attributes:
        name: a C identifier.
        tensor: the name in the model.
        way: whether it is an `input` or an `output`.
        dtype: the dtype of its elements.
        shape: its shape in the model.
        bytes: the bytes that it takes.
        elements: how many elements it has.
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
    """One step of a network.

    Attributes:
        operator: the name of its operator, or `chain`.
        node: the name of its node in the model; for a chain, of the chain.
        reads_bytes: the bytes of the tensors that it reads.
        writes_bytes: the bytes of the tensors that it writes.
    """

    operator: str
    node: str
    reads_bytes: int
    writes_bytes: int


@dataclass(frozen=True)
class BuiltNetwork:
    """The facts about a built network.

    Attributes:
        name: the C identifier that its functions begin with.
        model: the name of the model's file.
        target: `hexagon` or `llvm`.
        isa: the Hexagon instruction set that it was built for.
        ports: its inputs, then its outputs, in the order of the parameters in C.
        chains: the C identifiers of its chains.
        kernels: for each of its chains, by the name of its case, the kernel of each conv, and why.
        steps: its steps, in order.
        operators: the names of the operator callbacks that it needs.
        weights_bytes: the size of the file of weights.
        vtcm_bytes: the VTCM of the chain that takes the most.
        arena_bytes: the size of the arena, which holds all tensors between steps.
        least_arena_bytes: a lower bound of any arena: what the tensors of the fullest step take.
        scratch_bytes: the arena, and the memory besides VTCM of the chain that takes the most.
        library_bytes: the size of all code and weights.
        threads: the number of threads of the chain that uses the most.
        differences: where its chains differ from the model, and by how much.
    """

    name: str
    model: str
    target: Target
    isa: str
    ports: tuple[PortFacts, ...]
    chains: tuple[str, ...]
    kernels: Mapping[str, tuple[KernelChoice, ...]]
    steps: tuple[StepFacts, ...]
    operators: tuple[str, ...]
    weights_bytes: int
    vtcm_bytes: int
    arena_bytes: int
    least_arena_bytes: int
    scratch_bytes: int
    library_bytes: int
    threads: int
    differences: tuple[str, ...] = ()


def ports_of(program: Program) -> tuple[PortFacts, ...]:
    """Return the facts about all inputs, then about all outputs."""
    return (*_named("input", program.inputs), *_named("output", program.outputs))


def _named(way: str, ports: Sequence[Port]) -> list[PortFacts]:
    """Give each port a name in C, in which `input` or `output` stands in front."""
    names = apart(identifier(f"{way}_{port.name}") for port in ports)
    return [
        PortFacts(name, port.name, way, port.operand.dtype, port.shape, port.operand.bytes, prod(port.shape))
        for name, port in zip(names, ports, strict=True)
    ]


def steps_of(program: Program) -> tuple[StepFacts, ...]:
    """Return the facts about all steps, in order."""
    return tuple(
        StepFacts("chain" if isinstance(step, Call) else step.operator, step.node, *moved_bytes(step))
        for step in program.steps
    )
