"""Build a network as a folder of C: compiled chains, `network.c` that calls them, and operators to start from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hexconv.build.built_chain import archived, c_files, platform_files
from hexconv.build.device_project import check_project, project_files
from hexconv.build.library import ARCHIVE, DEFAULT_ISA, MACHINE, machine_makefile
from hexconv.errors import InputError, Unsupported
from hexconv.model import import_model
from hexconv.model.onnx_file import Shapes
from hexconv.network.answer import answer
from hexconv.network.compiled import Compiled, operators_object
from hexconv.network.planned_model import plan, question_of
from hexconv.network.program_steps import Program
from hexconv.network.texts import (
    PACKAGE,
    WEIGHTS,
    BuiltNetwork,
    device_program,
    others_of,
    ports_of,
    steps_of,
    texts_of,
)
from hexconv.run.given import drawn_inputs
from hexconv.run.tensors import Array
from hexconv.search import Question
from hexconv.spec import Plan, Target, choose_kernels
from hexconv.spec.choices import DEFAULT_OBJECTIVE, Engine, Kernel, Objective, Project
from hexconv.whitelist import identifier
from hexconv.written import write_folder

LONGEST_STEM = 40
"""The most characters of the network's name that the names of its chains begin with."""


@dataclass(frozen=True)
class Wanted:
    """What to build a network for.

    Attributes:
        vtcm_bytes: the VTCM that the caches of a chain may take.
        target: the target, `hexagon`, or `llvm` for this machine.
        isa: the instruction set of Hexagon.
        objective: the figure that the search makes as small as it can for each chain.
        shapes: the shapes of inputs whose sizes the model leaves open.
        given: a file with the inputs of the example; without one they are drawn.
        seed: the seed of the inputs that are drawn.
        threads: how many threads each chain is to have on Hexagon; on this machine it has one.
        kernel: the kernel that pieces are to get where it serves, hmx where it costs no more; None for the fastest.
        engine: how the matrix engine requantises: exactly, or by its own convert (fast).
        stubs: whether what hexconv has no operator or no plan for is left to functions that the caller writes.
        project: what to write around the library: a FastRPC project, or nothing.
    """

    vtcm_bytes: int
    target: Target = "hexagon"
    isa: str = DEFAULT_ISA
    objective: Objective = DEFAULT_OBJECTIVE
    shapes: Shapes = field(default_factory=dict)
    given: Path | None = None
    seed: int = 0
    threads: int = 1
    kernel: Kernel | None = None
    engine: Engine = "exact"
    stubs: bool = False
    project: Project | None = None

    @property
    def question(self) -> Question:
        """The question that the search answers for each chain."""
        return question_of(self.vtcm_bytes, self.objective, self.target, self.threads, self.kernel, self.engine)


def read_network(path: Path, wanted: Wanted) -> Program:
    """Read a model's steps and plan its chains.

    Raises:
        InputError: the model can't be used, or it leaves a size open.
        Unsupported: there is no operator for a node between chains, or no plan serves a chain.
    """
    planned = plan(import_model(path, wanted.shapes), wanted.question)
    if not wanted.stubs:
        return planned.program
    if planned.open_program.lost:
        raise Unsupported(f"{path.name}: {'; '.join(planned.open_program.lost)}")
    return planned.open_program


def build_network(path: Path, folder: Path, wanted: Wanted) -> BuiltNetwork:
    """Write a folder with which a C compiler makes a program that computes a whole model.

    Args:
        path: the `.onnx` file.
        folder: where to write; the folder is made if need be.
        wanted: what to build it for.

    Raises:
        InputError: the model or its inputs can't be used.
        NotWritten: the folder can't be written.
        Unsupported: there is no operator for a node, or a chain can't be lowered; either is named.
        ToolMissing: zig is not installed.
    """
    if wanted.project:
        check_project(wanted.target)
    program = read_network(path, wanted)
    if wanted.project and program.others:
        what = "--project with --stubs: no one knows the outputs that a host program could check"
        raise InputError.because(what, "leave out one of the two")
    tensors = tensors_of(path, program, wanted)
    return write_compiled(path, compiled_network(path, program, wanted), tensors, folder, wanted)


def tensors_of(path: Path, program: Program, wanted: Wanted) -> dict[str, Array]:
    """Return the inputs of a network's example and the outputs that numpy computes for them, by the model's names.

    Raises:
        InputError: the given inputs don't fit the model.
    """
    forms = {port.name: (port.shape, port.operand.dtype) for port in program.inputs}
    inputs = drawn_inputs(forms, path.name, wanted.given, wanted.seed)
    return {**inputs, **({} if program.others else answer(program, inputs))}


def compiled_network(path: Path, program: Program, wanted: Wanted, workers: int | None = None) -> Compiled:
    """Compile the chains of a model's steps in some processes, by default one a core; errors are `build_network`'s."""
    return Compiled.of(program, network_name(path), wanted.target, wanted.isa, workers)


def write_compiled(
    path: Path, compiled: Compiled, tensors: Mapping[str, Array], folder: Path, wanted: Wanted
) -> BuiltNetwork:
    """Write the folder of a network whose chains are compiled.

    Args:
        path: the `.onnx` file.
        compiled: the network.
        tensors: the inputs of the example, and the outputs that are known.
        folder: where to write.
        wanted: what to build it for.

    Raises:
        NotWritten: the folder can't be written.
    """
    built = built_facts(path, wanted, compiled)
    contents = {file: text.encode() for file, text in texts_of(built, compiled).items()}
    contents |= {**platform_files(), **c_files(PACKAGE, "operators")}
    contents[MACHINE] = machine_makefile(wanted.target, wanted.isa)
    objects = {f"{chain.built.name}.o": chain.code for chain in compiled.chains}
    if wanted.target == "hexagon":
        objects["hexconv_hvx.o"] = operators_object(wanted.isa, compiled.program)
    contents[ARCHIVE] = archived(objects)
    contents[WEIGHTS] = compiled.weights.content
    known = [port for port in built.ports if port.tensor in tensors]
    if wanted.project:
        engine = any(choice.used == "hmx" for choices in built.kernels.values() for choice in choices)
        contents |= project_files(built.name, [device_program(built, compiled)], wanted.isa, engine)
    contents |= {f"network.{port.name}.bin": tensors[port.tensor].tobytes() for port in known}
    write_folder(folder, contents)
    return built


def network_name(path: Path) -> str:
    """Return the name in C of the network in a model's file."""
    return identifier(path.stem, "model", LONGEST_STEM)


def built_facts(path: Path, wanted: Wanted, compiled: Compiled) -> BuiltNetwork:
    """Return the facts about the network that was built."""
    asked = Plan(kernel=wanted.kernel) if wanted.kernel else None
    return BuiltNetwork(
        name=network_name(path),
        model=path.name,
        target=wanted.target,
        isa=wanted.isa,
        ports=ports_of(compiled.program),
        chains=tuple(chain.built.name for chain in compiled.chains),
        kernels={
            call.case.name: call.case.kernels
            if call.case.weighed
            else choose_kernels(call.case.chain, asked, wanted.target)
            for call in compiled.program.calls
        },
        steps=steps_of(compiled.program),
        operators=compiled.program.operators,
        others=others_of(compiled.program),
        weights_bytes=len(compiled.weights.content),
        vtcm_bytes=compiled.vtcm_bytes,
        arena_bytes=compiled.arena.bytes,
        least_arena_bytes=compiled.arena.least_bytes,
        scratch_bytes=compiled.scratch_bytes,
        library_bytes=compiled.library_bytes,
        threads=max((wanted.question.plan.threads, *(chain.built.threads for chain in compiled.chains))),
        differences=compiled.program.differences,
        residents=compiled.program.residents,
    )
