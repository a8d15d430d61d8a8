"""`hexconv build`: a library in C that computes chains, or a whole network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hexconv.cli.options import Count, Seed, check_folder, model_of
from hexconv.cli.progress import starting, waiting
from hexconv.errors import InputError
from hexconv.spec.choices import Engine, Kernel, Objective, Project, Target

if TYPE_CHECKING:
    from hexconv.build import Built
    from hexconv.cli.cases import Sources
    from hexconv.cli.wanted_model import ModelOptions
    from hexconv.network import BuiltNetwork


def build_(
    *cases: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    target: Target = "hexagon",
    isa: str | None = None,
    weights: Path | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    random: Annotated[bool, Parameter(negative=())] = False,
    vtcm: str | None = None,
    objective: Objective | None = None,
    shape: Annotated[list[str] | None, Parameter(negative=())] = None,
    threads: Count | None = None,
    kernel: Kernel | None = None,
    engine: Engine = "exact",
    stubs: Annotated[bool, Parameter(negative=())] = False,
    project: Project | None = None,
    seed: Seed = 0,
    json: bool = False,
) -> int:
    """Write a library in C for a device: objects, headers, weights, and an example that checks itself.

    For each case it takes the weights from NAME.npz beside NAME.toml, if that is there, and draws all else. From an
    ONNX model it builds the whole network: its chains, planned as `hexconv best` plans them, a `network.c` that calls
    them in order, and a callback for each operator between them. The objects need nothing of TVM. `make run` in the
    folder compiles the example and runs it.

    Args:
        cases: name case files (TOML), folders of them, or patterns; or one model (MODEL.onnx).
        output: write into this folder.
        target: compile for Hexagon, or for this machine (llvm).
        isa: compile for this version of Hexagon, v66 to v81; the default is the newest up to v68 that the QEMU of this
            machine runs, so that the example can be checked here, and v68 without QEMU.
        weights: take filters and biases (filter1, bias1, ..) from this .npz file (for one case).
        image: take the input of the example (NHWC) from this .npz file (for one case); for a model, its inputs by
            their names.
        random: draw the weights, even if some lie beside the case.
        vtcm: for a model, let the caches of a chain take this much, such as 4MiB; the default is all that v68 has.
        objective: for a model, plan each chain for the least of this; the default is that of `hexconv best`.
        shape: for a model, state sizes of an input that it leaves open, `NAME=1,3,224,224`; may be given many times.
        threads: for a model, let each chain run on this many threads; the default is one on Hexagon, and all of
            this machine.
        kernel: for a model, give every piece this kernel where it serves, and hmx where it costs no more by the
            objective than hvx does; the others get the fastest.
        engine: let the matrix engine requantise exactly, by HVX, or by its own convert (fast), for --kernel hmx.
        stubs: for a model, leave what hexconv has no operator or no plan for to functions in C, whose signatures are
            written, for you to fill in.
        project: also write a host program, the DSP's side of it, their interface and how to compile them for a device,
            into the folder `fastrpc` of the library (fastrpc).
        seed: start the random generator here.
        json: print what was built as JSON.
    """
    with starting():
        from hexconv.cli.cases import Sources
        from hexconv.cli.wanted_model import Code, ModelOptions

    check_folder("--output", output)
    sources = Sources(None, weights, image, random)
    code = Code.of(target, isa)
    asked = ModelOptions(code, vtcm, objective, threads, tuple(shape or ()), seed, stubs, project, kernel, engine)
    if model := model_of(cases):
        return _build_model(model, sources, asked, output, json)
    _check_cases(asked)
    return _build_cases(cases, sources, asked, output, json)


def _build_cases(paths: Sequence[Path], given_files: Sources, asked: ModelOptions, folder: Path, json: bool) -> int:
    """Build cases, and print what each takes; returns 0, or 2 if a case could not be read."""
    from hexconv.build import build
    from hexconv.cli.answers import print_json
    from hexconv.cli.cases import Batch, with_weights
    from hexconv.run.given import given
    from hexconv.run.tensors import random_tensors

    code = asked.code
    batch = Batch.of(paths, code.target)
    batch.say_fallbacks()
    given_files.check(len(batch.sources))
    sources = []
    with waiting("building"):
        for path, case in batch.sources:
            tensors = given(case.chain, *given_files.files(path))
            limited = with_weights(case, tensors.weights)
            sources.append((limited, tensors.over(random_tensors(limited.chain, asked.seed))))
        built = build(sources, folder, code.target, code.isa, asked.project)
    if json:
        print_json(built)
    else:
        for chain in built:
            print(f"{chain.name}.o: {_taken(chain)}")
        print(code.line(folder))
        if asked.project:
            print(code.project_line(folder))
    return batch.code(True)


def _taken(built: Built | BuiltNetwork) -> str:
    """Return the functions of a library, and the memory that it takes."""
    from hexconv.report.words import in_bytes

    sizes = {"weights": built.weights_bytes, "VTCM": built.vtcm_bytes, "scratch": built.scratch_bytes}
    taken = ", ".join(f"{name} {in_bytes(size)}" for name, size in sizes.items())
    return f"{built.name}_init, {built.name}_run; {taken}"


def _check_cases(asked: ModelOptions) -> None:
    """Refuse options that are for models if case files were given.

    Raises:
        InputError: `--vtcm`, `--objective`, `--shape`, `--threads`, `--kernel`, `--engine` or `--stubs` was given.
    """
    for option, value in (
        ("--vtcm", asked.vtcm),
        ("--objective", asked.objective),
        ("--shape", " ".join(asked.shapes)),
        ("--threads", asked.threads),
        ("--kernel", asked.kernel),
        ("--engine", asked.engine if asked.engine != "exact" else ""),
        ("--stubs", " " if asked.stubs else ""),
    ):
        if value:
            what = f"{option} {value} is for a model (MODEL.onnx), and case files were given"
            raise InputError.because(what, "leave it out: cases state their plan and their shape")


def _build_model(model: Path, given: Sources, asked: ModelOptions, folder: Path, json: bool) -> int:
    """Build a network, and print what it takes; returns 0."""
    from hexconv.cli.answers import print_json
    from hexconv.cli.cases import say_fallback, say_notes
    from hexconv.network import build_network
    from hexconv.network.texts import MANIFEST

    for option, value in (("--weights", given.weights), ("--random", given.random)):
        if value:
            raise InputError.because(
                f"{option} is for case files, and a model was given", "leave it out: a model has its weights"
            )
    wanted = asked.wanted("build", given.image)
    with waiting(f"building {model.name}"):
        built = build_network(model, folder, wanted)
    for name, kernels in built.kernels.items():
        say_fallback(name, kernels)
    say_notes(built.model, built.differences, folder / MANIFEST)
    if json:
        print_json(built)
    else:
        for line in _lines(built):
            print(line)
        print(asked.code.line(folder))
        if asked.project:
            print(asked.code.project_line(folder))
    return 0


def _lines(built: BuiltNetwork) -> Iterator[str]:
    """Yield the lines that say what a built network takes."""
    from hexconv.network.texts import other_kinds
    from hexconv.report.words import counted, in_bytes

    between = [step for step in built.steps if step.operator != "chain"]
    moved = sum(step.reads_bytes + step.writes_bytes for step in between)
    for kind in other_kinds(built):
        yield f"to be written in network_others.c: {kind.function} ({len(kind.numbers)})"
    yield f"network.c: {_taken(built)}"
    yield f"a call runs {counted(len(built.chains), 'compiled chain')} and {counted(len(between), 'other operator')}"
    if between:
        yield f"these operators read and write {in_bytes(moved)}"
    least = built.least_arena_bytes
    bound = "the least possible" if built.arena_bytes == least else f"at least {in_bytes(least)} are needed"
    yield f"tensors between steps: {in_bytes(built.arena_bytes)} of the scratch, {bound}"
    yield f"code of the chains and all weights: {in_bytes(built.library_bytes)}"
