"""What `hexconv build` does with case files: it writes the chains and their weights as a library in C."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hexconv.build import Built, build
from hexconv.cli.cases import Batch, print_json
from hexconv.cli.progress import waiting
from hexconv.cli.run_cases import Given
from hexconv.errors import InputError
from hexconv.lower.hexagon_target import isas
from hexconv.report.words import setup_words
from hexconv.run.given import bounded, given
from hexconv.run.tensors import Tensors, random_tensors
from hexconv.spec import Case, Target

KIB = 1024


def build_cases(
    paths: Sequence[Path], asked: Given, seed: int, folder: Path, target: Target, isa: str, json: bool
) -> int:
    """Build cases, and print what each takes; returns 0, or 2 if a case could not be read."""
    check_isa(isa)
    batch = Batch.of(paths, target)
    batch.say_fallbacks()
    asked.check(len(batch.sources))
    with waiting("building"):
        built = build([_with_tensors(path, case, asked, seed) for path, case in batch.sources], folder, target, isa)
    if json:
        print_json(built)
    else:
        for chain in built:
            print(_line(chain))
        print(f"make -C {folder} run: compiles and runs the example, which checks its answer")
    return batch.code(True)


def check_isa(isa: str) -> None:
    """Refuse an instruction set that LLVM doesn't know.

    Raises:
        InputError: the text names no instruction set of Hexagon that LLVM knows.
    """
    if isa not in isas():
        raise InputError("--isa", isa, "one of " + ", ".join(reversed(isas())))


def _with_tensors(path: Path, case: Case, asked: Given, seed: int) -> tuple[Case, Tensors]:
    """Return a case whose limits are those of its weights, with these weights."""
    tensors = given(case.chain, *asked.files(path))
    chain = bounded(case.chain, tensors.weights)
    return replace(case, chain=chain), tensors.over(random_tensors(chain, seed))


def _line(chain: Built) -> str:
    """Return what a built chain takes, in a line."""
    sizes = {"weights": chain.weights_bytes, "VTCM": chain.vtcm_bytes, "scratch": chain.scratch_bytes}
    taken = ", ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    return f"{chain.name}.o: {chain.name}_init, {chain.name}_run; {taken}; {setup_words(chain.setup_packets)}"


def size_text(size_bytes: int) -> str:
    """Return a size in bytes or KiB, for people.

    >>> size_text(300), size_text(2048)
    ('300 B', '2.0 KiB')
    """
    return f"{size_bytes / KIB:.1f} KiB" if size_bytes >= KIB else f"{size_bytes} B"
