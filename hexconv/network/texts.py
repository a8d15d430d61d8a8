"""Texts of a built network: facts for people and JSON, statements of C, header, example, how to compile."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import inf, prod

import numpy as np

from hexconv.build.device_project import DevicePort, DeviceProgram
from hexconv.build.library import NEVER_RUN, SHARED
from hexconv.build.rendering import rendered
from hexconv.network.compiled import Compiled
from hexconv.network.operator_table import OPERATORS
from hexconv.network.program_steps import (
    BLOCKS,
    OTHER,
    Along,
    Axis,
    Call,
    Filters,
    Held,
    How,
    Map,
    Operand,
    Operation,
    Other,
    Port,
    Powers,
    Program,
    Resident,
    Resize,
    Step,
    View,
    Window,
    moved_bytes,
)
from hexconv.run.check import tolerance_of
from hexconv.spec import KernelChoice, Target
from hexconv.whitelist import Code, apart, identifier


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
        reads_bytes: the bytes of the tensors that it reads; of an operator, of its weights and tables too.
        writes_bytes: the bytes of the tensors that it writes.
    """

    operator: str
    node: str
    reads_bytes: int
    writes_bytes: int


@dataclass(frozen=True)
class OtherFacts:
    """One step that hexconv has no operator for.

    Attributes:
        number: its number in calls of the callback `other`.
        op: its ONNX operator, or `chain`.
        node: the name of its node in the model; for a chain, of the case.
        output: which of the node's outputs it writes.
        told: its attributes, in words.
        reason: why no operator computes it; empty where there is none of its kind.
        sources: dtype and shape, NHWC, of what it reads, in words.
        result: the same of what it writes.
    """

    number: int
    op: str
    node: str
    output: int
    told: str
    reason: str
    sources: tuple[str, ...]
    result: str


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
        others: the steps that hexconv has no operator for, which the callback `other` has to compute.
        weights_bytes: the size of the file of weights.
        vtcm_bytes: the VTCM of the chain that takes the most, or of all chains beside the tensors that stay in it.
        residents: the tensors that stay in VTCM from one step to a later one; no other tensor does.
        arena_bytes: the size of the arena, which holds all other tensors between steps.
        least_arena_bytes: a lower bound of any arena: what the tensors of the fullest step take.
        scratch_bytes: the arena, and the memory besides VTCM of the chain that takes the most.
        library_bytes: the size of all code and weights.
        threads: the number of threads that operators use, and at most a chain.
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
    others: tuple[OtherFacts, ...]
    weights_bytes: int
    vtcm_bytes: int
    arena_bytes: int
    least_arena_bytes: int
    scratch_bytes: int
    library_bytes: int
    threads: int
    differences: tuple[str, ...] = ()
    residents: tuple[Resident, ...] = ()


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
        StepFacts("chain" if isinstance(step, Call) else step.operator, step.node, *program.moved_bytes(step))
        for step in program.steps
    )


def others_of(program: Program) -> tuple[OtherFacts, ...]:
    """Return the facts about all steps that are left to the caller."""
    return tuple(_other(step, step.told(Other)) for step in program.others)


def _other(step: Operation, how: Other) -> OtherFacts:
    reads = tuple(map(_shaped, step.sources))
    return OtherFacts(how.number, how.op, step.node, how.output, how.told, how.reason, reads, _shaped(step.result))


def _shaped(operand: Operand) -> str:
    meaning = "" if operand.scale == 1.0 and not operand.zero_point else f" ({operand.scale:.6g}, {operand.zero_point})"
    return f"{operand.dtype} {'x'.join(map(str, operand.extents))}{meaning}"


@dataclass(frozen=True)
class OtherKind:
    """A kind of step that hexconv has no operator for, as a function to be written.

    Attributes:
        function: its name in C.
        numbers: the numbers of its steps.
        lines: comments that say which steps these are.
    """

    function: str
    numbers: tuple[int, ...]
    lines: tuple[Code, ...]


def other_kinds(built: BuiltNetwork) -> tuple[OtherKind, ...]:
    """Return the functions that have to be written for a network."""
    kinds: dict[str, list[OtherFacts]] = {}
    for other in built.others:
        kinds.setdefault(other.op, []).append(other)
    names = apart(f"{built.name}_{identifier(op.rpartition('.')[2], 'other')}" for op in kinds)
    return tuple(
        OtherKind(name, tuple(each.number for each in steps), tuple(map(_comment, steps)))
        for name, steps in zip(names, kinds.values(), strict=True)
    )


def _comment(other: OtherFacts) -> Code:
    told = f", {other.told}" if other.told else ""
    reads = ", ".join(other.sources) or "nothing that C gets"
    return Code.comment(
        f"{other.number}: {other.op} {other.node}, output {other.output}: {reads} to {other.result}{told}"
    )


BETWEEN = Code(",\n            ")
DEEPER = Code(",\n                ")
"""Between arguments, and between the elements of an array that is one."""


@dataclass(frozen=True)
class Statement:
    """The statement of one step.

    Attributes:
        comment: the comment that says what the step is and which bytes it moves.
        macro: the macro around the call, `CHAIN` or `STEP`, which checks what the call returns.
        call: the text of the call.
        result: the address of what it writes.
        bytes: the bytes that it writes.
    """

    comment: Code
    macro: str
    call: Code
    result: Code
    bytes: int


def statements(steps: tuple[Step, ...], names: tuple[str, ...], places: Mapping[str, Code]) -> Iterator[Statement]:
    """Write all steps as statements.

    Args:
        steps: the steps, in order.
        names: the C identifiers of the chains, in the order of their calls.
        places: the address of every buffer, as an expression in C.
    """
    chains = iter(names)
    for number, step in enumerate(steps, 1):
        read, written = moved_bytes(step)
        told = Code("{}: reads {} bytes, writes {}").format(step.node, read, written)
        result = places[step.result.buffer]
        if isinstance(step, Call):
            name, source = next(chains), places[step.sources[0].buffer]
            call = Code("{0}_run(&context->{0}, {1}, {2})").format(name, source, result)
            yield Statement(Code("{}. the chain {}").format(number, told), "CHAIN", call, result, written)
        else:
            arguments = BETWEEN.join([Code("operators->user"), *_arguments(step, places)])
            call = Code("operators->{}({})").format(step.operator, arguments)
            yield Statement(Code("{}. {}, {}").format(number, step.operator, told), "STEP", call, result, written)


def _arguments(step: Operation, places: Mapping[str, Code]) -> Iterator[Code]:
    tensors = [_fields(source, places) for source in step.sources]
    if step.operator == OTHER or OPERATORS[step.operator].reads_many:
        lines = DEEPER.join(Code("{{{}}}").format(fields) for fields in tensors)
        yield Code("(const struct hexconv_tensor[]){{\n                {}}}").format(lines)
        yield Code("{}").format(len(tensors))
    else:
        yield from (Code("TENSOR({})").format(fields) for fields in tensors)
    for how in step.how:
        yield _how(how, places)
    yield Code("TENSOR({})").format(_fields(step.result, places))


def _fields(operand: Operand, places: Mapping[str, Code]) -> Code:
    """Return the fields of a `struct hexconv_tensor`, in its order."""
    layout, dtype = (Code("HEXCONV_{}").format(word.upper()) for word in (operand.layout, operand.dtype))
    low, high, scale = map(c_float, (operand.low, operand.high, operand.scale))
    integers = _place_of(operand.integers, places)
    return _listed(
        places[operand.buffer], dtype, layout, *operand.extents, scale, operand.zero_point, low, high, integers
    )


def _listed(*values: object) -> Code:
    return Code(", ").join(map(Code.escape, values))


def _how(how: How, places: Mapping[str, Code]) -> Code:
    """Write one entry of an operation's `how` as arguments in C."""
    if isinstance(how, Other):
        return _listed(how.number)
    if isinstance(how, Along):
        return _listed(how.axis)
    if isinstance(how, Window):
        sizes = (*how.kernel, *how.stride, *how.dilation, *how.padding, int(how.counts_padding))
        return Code("WINDOW({})").format(_listed(*sizes))
    if isinstance(how, View):
        return _view(how, places)
    if isinstance(how, Map):
        return _listed(places[how.reals], how.count)
    if isinstance(how, Powers):
        return _listed(places[how.powers], how.axis)
    if isinstance(how, Held):
        return _listed(c_float(how.low), c_float(how.high))
    if isinstance(how, Resize):
        return Code("RESIZE({}, {})").format(_axis(how.rows, places), _axis(how.columns, places))
    return _filters(how, places)


def _view(how: View, places: Mapping[str, Code]) -> Code:
    loops = [
        Code("{{{}}}").format(_listed(each.size, each.source_step, each.result_step, _place_of(each.places, places)))
        for each in how.dimensions
    ]
    rest = _listed(len(loops), how.source_first, how.result_first, int(how.fill is not None), c_float(how.fill or 0.0))
    return Code("VIEW(LOOPS({}), {})").format(Code(", ").join(loops), rest)


def _place_of(name: str, places: Mapping[str, Code]) -> Code:
    return places[name] if name else Code("NULL")


def _axis(axis: Axis, places: Mapping[str, Code]) -> Code:
    return _listed(places[axis.first], places[axis.part])


def _filters(how: Filters, places: Mapping[str, Code]) -> Code:
    biases = (_place_of(name, places) for name in (how.sums_bias, how.real_bias))
    elements, dtype = places[how.elements], Code("HEXCONV_{}").format(how.dtype.upper())
    fields = _listed(elements, dtype, *how.shape, how.groups, places[how.scales], how.scale_count, *biases)
    return Code("FILTERS({})").format(fields)


def c_float(value: float) -> Code:
    """Return a float32 as a C literal that is exactly equal.

    >>> print(c_float(0.1), c_float(2.0), c_float(float("-inf")))
    0x1.99999a0000000p-4f 0x1.0000000000000p1f -FLT_MAX
    """
    if abs(value) == inf:
        return Code("FLT_MAX") if value > 0 else Code("-FLT_MAX")
    return Code.escape(f"{float(np.float32(value)).hex()}f".replace("+", ""))


PACKAGE = "hexconv.network"
MANIFEST = "network.json"
WEIGHTS = "network.weights.bin"
OTHERS = ("network_others.h", "network_others.c")
"""The files that are to be written by who takes the network to a device."""
CALLS = "network.c"
IN_SCALARS = ("hexconv_operators.c", "hexconv_filters.c")
"""The C files of operators on scalars, which are the same of every network."""
SOURCES = (CALLS, *IN_SCALARS)
"""The C files that make a network, beside those of its chains and of its platform."""


def texts_of(built: BuiltNetwork, compiled: Compiled) -> dict[str, str]:
    """Return the contents of all text files, by file name."""
    offsets = compiled.weights.offsets_bytes
    words = {
        **vars(built),
        "macro": built.name.upper(),
        "version": version("hexconv"),
        "chains": [{"name": name, "offset_bytes": offsets[name]} for name in built.chains],
        "digest": compiled.weights.digest,
        "facts": _facts(built, compiled.program),
        "parameters": Code(", ").join(map(_parameter, built.ports)),
        "statements": list(statements(compiled.program.steps, built.chains, _places(built, compiled))),
        "tolerance": _tolerance(compiled.program),
        "hexagon": built.target == "hexagon",
        "machine": f"Hexagon {built.isa}" if built.target == "hexagon" else "this machine",
        "never_run": NEVER_RUN,
        "kinds": other_kinds(built),
    }
    files = ("network.c", "network.h", "network_example.c", *SHARED, *(OTHERS if built.others else ()))
    texts = {file: rendered(file, words, PACKAGE) for file in files}
    texts[MANIFEST] = json.dumps(asdict(built), indent=2)
    return texts | {f"{chain.built.name}.h": chain.header for chain in compiled.chains}


def _parameter(port: PortFacts) -> Code:
    return (Code("const void *{}") if port.way == "input" else Code("void *{}")).format(port.name)


def _facts(built: BuiltNetwork, program: Program) -> Iterator[Code]:
    """Yield the lines of facts in the header."""
    between = [step for step in built.steps if step.operator != "chain"]
    moved = sum(step.reads_bytes + step.writes_bytes for step in between)
    layouts = [step for step in program.steps if not isinstance(step, Call) and step.operator == "convert"]
    turned = [step for step in layouts if step.sources[0].layout != step.result.layout]
    turned_bytes = sum(sum(moved_bytes(step)) for step in turned)
    calls = "1 call" if len(built.chains) == 1 else f"{len(built.chains)} calls"
    lines = [
        f"{calls} of chains, and {len(between)} of operators, which read and write {moved} bytes.",
        f"{len(turned)} of these change a layout (models have NCHW, chains of float32 write {BLOCKS}): "
        f"{turned_bytes} bytes.",
        f"Tensors between steps take {built.arena_bytes} bytes, {built.least_arena_bytes} of them at a time.",
    ]
    if names := {each.tensor for each in built.residents}:
        kept = sum(step.result.bytes for step in program.steps if step.result.buffer in names)
        lines.append(f"{len(names)} more, {kept} bytes, stay in VTCM between steps, beside the caches of chains.")
    yield from map(Code.comment, lines)


def _places(built: BuiltNetwork, compiled: Compiled) -> dict[str, Code]:
    """Return the address of every buffer, as an expression in C."""
    places = {name: Code("ARENA({})").format(offset) for name, offset in compiled.arena.offsets_bytes.items()}
    program, offsets = compiled.program, compiled.weights.offsets_bytes
    places |= {each.tensor: Code("VTCM({})").format(each.offset_bytes) for each in program.residents}
    places |= {name: Code("CONSTANT({})").format(offsets[name]) for name in program.constants}
    for port, facts in zip((*program.inputs, *program.outputs), built.ports, strict=True):
        places[port.operand.buffer] = (Code("{}") if facts.way == "output" else Code("READ({})")).format(facts.name)
    return places


def _tolerance(program: Program) -> float:
    """Return the error that the example allows, as a share of the largest value.

    It is 0 where all chains are integer, since operators round as numpy does.
    """
    floats = [call.case.chain for call in program.calls if not call.case.chain.is_integer]
    return max((sum(tolerance_of(chain.dtype, chain.longest_sum)) for chain in floats), default=0.0)


def device_program(built: BuiltNetwork, compiled: Compiled) -> DeviceProgram:
    """Return a network as the program of a FastRPC project."""
    share = _tolerance(compiled.program)
    ports = tuple(
        DevicePort(
            name=port.name,
            file=f"network.{port.name}.bin",
            dtype=port.dtype,
            is_input=port.way == "input",
            elements=port.elements,
            bytes=port.bytes,
            of_largest=share,
        )
        for port in built.ports
    )
    sizes = (built.weights_bytes, built.vtcm_bytes, built.threads)
    return DeviceProgram(built.name, "network.h", WEIGHTS, *sizes, ports, True, SOURCES)
