"""What `hexconv build` does: it writes chains, or a whole network, as a library in C."""

from collections.abc import Sequence
from pathlib import Path

from hexconv.build import Built, build
from hexconv.cli.answers import print_json
from hexconv.cli.cases import Batch, say_fallback, say_notes, with_weights
from hexconv.cli.progress import waiting
from hexconv.cli.run_cases import Given
from hexconv.cli.wanted_model import Code, ModelOptions
from hexconv.errors import InputError
from hexconv.network import BuiltNetwork, build_network
from hexconv.network.texts import MANIFEST, other_kinds
from hexconv.report.words import counted
from hexconv.run.given import given
from hexconv.run.tensors import Tensors, random_tensors
from hexconv.spec import Case

KIB = 1024


def build_cases(paths: Sequence[Path], asked: Given, seed: int, folder: Path, code: Code, json: bool) -> int:
    """Build cases, and print what each takes; returns 0, or 2 if a case could not be read."""
    batch = Batch.of(paths, code.target)
    batch.say_fallbacks()
    asked.check(len(batch.sources))
    with waiting("building"):
        sources = [_with_tensors(path, case, asked, seed) for path, case in batch.sources]
        built = build(sources, folder, code.target, code.isa)
    if json:
        print_json(built)
    else:
        for chain in built:
            print(_line(chain))
        print(code.line(folder))
    return batch.code(True)


def _with_tensors(path: Path, case: Case, asked: Given, seed: int) -> tuple[Case, Tensors]:
    """Return a case whose limits are those of its weights, with these weights."""
    tensors = given(case.chain, *asked.files(path))
    limited = with_weights(case, tensors.weights)
    return limited, tensors.over(random_tensors(limited.chain, seed))


def _line(chain: Built) -> str:
    """Return what a built chain takes, in a line."""
    sizes = {"weights": chain.weights_bytes, "VTCM": chain.vtcm_bytes, "scratch": chain.scratch_bytes}
    taken = ", ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    return f"{chain.name}.o: {chain.name}_init, {chain.name}_run; {taken}"


def size_text(size_bytes: int) -> str:
    """Return a size in bytes or KiB, for people.

    >>> size_text(300), size_text(2048)
    ('300 B', '2.0 KiB')
    """
    return f"{size_bytes / KIB:.1f} KiB" if size_bytes >= KIB else f"{size_bytes} B"


ENDING = ".onnx"


def check_cases(asked: ModelOptions) -> None:
    """Refuse options that are for models if case files were given.

    Raises:
        InputError: `--vtcm`, `--objective`, `--shape`, `--threads` or `--stubs` was given.
    """
    for option, value in (
        ("--vtcm", asked.vtcm),
        ("--objective", asked.objective),
        ("--shape", " ".join(asked.shapes)),
        ("--threads", asked.threads),
        ("--stubs", " " if asked.stubs else ""),
    ):
        if value:
            what = f"{option} {value} is for a model (MODEL.onnx), and case files were given"
            raise InputError.because(what, "leave it out: cases state their plan and their shape")


def build_model(paths: Sequence[Path], given: Given, asked: ModelOptions, folder: Path, json: bool) -> int:
    """Build a network, and print what it takes; returns 0."""
    if len(paths) > 1:
        raise InputError("CASE", f"{len(paths)} files, one of them a model", "one model, or case files alone")
    for option, value in (("--weights", given.weights), ("--random", given.random)):
        if value:
            raise InputError.because(
                f"{option} is for case files, and a model was given", "leave it out: a model has its weights"
            )
    wanted = asked.wanted("build", given.image)
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
    left = [f"to be written in network_others.c: {kind.function} ({len(kind.numbers)})" for kind in other_kinds(built)]
    return [
        *left,
        f"network.c: {built.name}_init, {built.name}_run; {taken}",
        f"{counted(len(built.chains), 'call')} of chains; {len(between)} of operators, which move {size_text(moved)}",
        f"tensors between them take {size_text(built.arena_bytes)}; the fullest step needs "
        f"{size_text(built.least_arena_bytes)}",
        f"code of chains and weights: {size_text(built.library_bytes)}",
    ]
