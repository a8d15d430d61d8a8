"""What `hexconv build MODEL.onnx` does: it writes a whole network as a library in C."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hexconv.cli.answers import print_json
from hexconv.cli.build_cases import Code, size_text
from hexconv.cli.cases import say_fallback, say_notes
from hexconv.cli.memory import memory_bytes
from hexconv.cli.progress import waiting
from hexconv.cli.run_cases import Given
from hexconv.cli.shapes import stated_shapes
from hexconv.errors import InputError
from hexconv.lower.vtcm import capacity_of
from hexconv.network import BuiltNetwork, Wanted, build_network
from hexconv.network.texts import MANIFEST
from hexconv.report.units import counted
from hexconv.spec import Plan
from hexconv.spec.objective import Objective

ENDING = ".onnx"


@dataclass(frozen=True)
class Asked:
    """The options of a network's build, except those that state its tensors."""

    vtcm: str | None
    objective: Objective | None
    shapes: Sequence[str]
    code: Code
    seed: int
    threads: int | None = None


def check_cases(asked: Asked) -> None:
    """Refuse options that are for models if case files were given.

    Raises:
        InputError: `--vtcm`, `--objective`, `--shape` or `--threads` was given.
    """
    for option, value in (
        ("--vtcm", asked.vtcm),
        ("--objective", asked.objective),
        ("--shape", " ".join(asked.shapes)),
        ("--threads", asked.threads),
    ):
        if value:
            what = f"{option} {value} is for a model (MODEL.onnx), and case files were given"
            raise InputError.because(what, "leave it out: cases state their plan and their shape")


def build_model(paths: Sequence[Path], given: Given, asked: Asked, folder: Path, json: bool) -> int:
    """Build a network, and print what it takes; returns 0."""
    if len(paths) > 1:
        raise InputError("CASE", f"{len(paths)} files, one of them a model", "one model, or case files alone")
    for option, value in (("--weights", given.weights), ("--random", given.random)):
        if value:
            raise InputError.because(
                f"{option} is for case files, and a model was given", "leave it out: a model has its weights"
            )
    if asked.code.target == "llvm" and (asked.threads or 1) > 1:
        what = f"--threads {asked.threads} with --target llvm: the plain kernel runs in one thread"
        raise InputError.because(what, "leave it out, or take --target hexagon")
    wanted = Wanted(
        vtcm_bytes=memory_bytes(asked.vtcm, "--vtcm") if asked.vtcm else capacity_of(Plan()),
        target=asked.code.target,
        isa=asked.code.isa,
        objective=asked.objective or "traffic",
        shapes=stated_shapes("build", asked.shapes),
        given=given.image,
        seed=asked.seed,
        threads=asked.threads or 1,
    )
    with waiting(f"building {paths[0].name}"):
        built = build_network(paths[0], folder, wanted)
    for name, kernels in built.kernels.items():
        say_fallback(name, kernels)
    say_notes(built.model, built.differences, folder / MANIFEST)
    if json:
        print_json(built)
    else:
        for line in _lines(built):
            print(line)
        print(asked.code.line(folder))
    return 0


def _lines(built: BuiltNetwork) -> list[str]:
    """Return the lines that say what a built network takes."""
    between = [step for step in built.steps if step.operator != "chain"]
    moved = sum(step.reads_bytes + step.writes_bytes for step in between)
    sizes = {"weights": built.weights_bytes, "VTCM": built.vtcm_bytes, "scratch": built.scratch_bytes}
    taken = ", ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    return [
        f"network.c: {built.name}_init, {built.name}_run; {taken}",
        f"{counted(len(built.chains), 'call')} of chains; {len(between)} of operators, which move {size_text(moved)}",
        f"tensors between them take {size_text(built.arena_bytes)}; the fullest step needs "
        f"{size_text(built.least_arena_bytes)}",
        f"code of chains and weights: {size_text(built.library_bytes)}",
    ]
