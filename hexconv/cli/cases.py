"""Reads the case files that a command line names, and does a command's work on each of them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hexconv.cli.app import signals
from hexconv.cli.options import memory_bytes
from hexconv.cli.progress import counted
from hexconv.errors import HexconvError, InputError, Interrupted, Unsupported, fault, one_line
from hexconv.model import MANIFEST, Manifest
from hexconv.report.words import changed_knobs, knob_words
from hexconv.report.words import counted as counted_of
from hexconv.run.given import bounded, weights_beside
from hexconv.search import Question, best_plan
from hexconv.search.grid import figures_of
from hexconv.search.machine import rates
from hexconv.spec import Case, KernelChoice, Plan, Target
from hexconv.spec.capacities import capacity_of
from hexconv.spec.kernel_choice import kernel_words

OUT_OF_MEMORY = "out of memory: this machine has less than the case asks for; use a smaller one"
Result = TypeVar("Result")


@dataclass
class Batch:
    """The cases of a command line. An error in one case is printed in a line, and doesn't stop the others.

    Attributes:
        sources: the cases that could be read, each with its file.
        refused: how many cases could not be read, or not be done.
    """

    sources: list[tuple[Path, Case]]
    refused: int = 0

    @classmethod
    def of(cls, paths: Sequence[Path], target: Target) -> "Batch":
        """Read all case files before anything is done with one.

        Args:
            paths: files; folders, which stand for all of their case files; or patterns, such as `schedules/*.toml`. A
                `network.toml` stands for its folder where no case file is named beside it.
            target: choose kernels for Hexagon, or for this machine (llvm).

        Raises:
            InputError: no file was named; or a single file was named, and it can't be used.
        """
        batch, names = cls([]), dict[str, Path]()
        files = case_files(paths, batch)
        if len(files) == 1 and not batch.refused:
            batch.sources = [(files[0], Case.load(files[0], target))]
            return batch
        for path in files:
            with batch.telling():
                other = names.setdefault(path.stem, path)
                if other != path:
                    raise InputError(
                        str(path), f"a second file of this name, after {other}", "files of different names"
                    )
                batch.sources.append((path, Case.load(path, target)))
        return batch

    @property
    def cases(self) -> list[Case]:
        """The cases that could be read."""
        return [case for _, case in self.sources]

    def say_fallbacks(self) -> None:
        """Print a line for each case that gets another kernel than it asks for, and for the notes of their import."""
        for case in self.cases:
            say_fallback(case.name, case.kernels)
            if hint := threads_hint(case):
                print(f"hexconv: {one_line(case.name)}: {hint}", file=sys.stderr)
        self.say_notes()

    def say_notes(self) -> None:
        """Print a line for each import whose cases these are, if it notes where they differ from the model."""
        folders = dict.fromkeys(path.parent for path, _ in self.sources)
        for folder in (each for each in folders if (each / MANIFEST).exists()):
            with suppress(InputError):  # a manifest that can't be read, which these cases don't need
                known = Manifest.load(folder)
                say_notes(known.model, known.differences, folder / MANIFEST)

    def each(self, doing: str, work: Callable[[Case], Result]) -> Iterator[tuple[Case, Result]]:
        """Yield each case with the result of its work, and show a bar; a case that can't be done is printed in a line.

        Args:
            doing: a word for the bar that says what is done.
            work: the function to call with each case.
        """
        for case in counted(self.cases, doing, lambda case: case.name):
            done: list[Result] = []
            with self.telling(case.name):
                done.append(work(case))
            yield from ((case, result) for result in done)

    @contextmanager
    def telling(self, name: str = "", refused: Callable[[str], None] | None = None) -> Iterator[None]:
        """Do something with one case: if it is refused, one line says so, and the exit code will be 2.

        Args:
            name: the name of the case.
            refused: a function that is also called with the reason.
        """
        try:
            yield
        except Interrupted:
            raise
        except Exception as error:
            signals.check()
            reason = self._reason(error)
            self.refused += 1
            self.tell(f"{name}: {reason}" if name else reason)
            if refused:
                refused(reason)

    def _reason(self, error: Exception) -> str:
        """Why a case was refused; a fault of hexconv itself is raised again if there is no other case."""
        if isinstance(error, HexconvError):
            return str(error)
        if isinstance(error, MemoryError):
            return OUT_OF_MEMORY
        if len(self.sources) < 2:
            raise error
        return fault(error)

    def tell(self, line: str) -> None:
        """Print a line about one case on standard error."""
        print(f"hexconv: {one_line(line)}", file=sys.stderr)

    def code(self, holds: bool) -> int:
        """Return the exit code: 2 if any case was refused, else whether what was checked holds."""
        return 2 if self.refused else int(not holds)


def case_files(paths: Sequence[Path], batch: Batch) -> list[Path]:
    """Return the files that paths, folders and patterns name, each once.

    Raises:
        InputError: nothing was named; or a single path was named, and no case file is there.
    """
    if not paths:
        raise InputError.because("no case file given", "name one or more case files, or folders of them")
    found: list[Path] = []
    for path in paths:
        if len(paths) == 1:
            found = _files_of(path)
            continue
        with batch.telling():
            found += _files_of(path)
    cases = [path for path in found if path.name != MANIFEST]
    return list(dict.fromkeys(cases or (case for path in found for case in _files_of(path.parent))))


def network_of(paths: Sequence[Path]) -> tuple[Manifest, list[Path]] | None:
    """Return the manifest and the case files of a network that paths name, in its order; None if they name cases.

    It is named by its folder, by its `network.toml`, or by that and the case files of all of its chains.

    Raises:
        InputError: the manifest can't be used, or has no chain.
    """
    given = [file for path in paths for file in (_matches(path) or [path])]
    folders = {file if file.is_dir() else file.parent for file in given if file.is_dir() or file.name == MANIFEST}
    cases = {file for file in given if not file.is_dir() and file.name != MANIFEST}
    if len(folders) != 1 or not ((folder := folders.pop()) / MANIFEST).exists():
        return None
    known = Manifest.load(folder)
    files = [folder / f"{chain.case}.toml" for chain in known.chain]
    if not files:
        raise _no_chain(folder, known)
    return (known, files) if cases in (set(), set(files)) else None


def _no_chain(folder: Path, known: Manifest) -> InputError:
    """Say that a network has no chain, with the reason of its first conv."""
    why, change = "it has no conv", "import a model with convs"
    if known.not_taken:
        first, convs = known.not_taken[0], counted_of(len(known.not_taken), "conv")
        why = f"{convs} in none, such as {first.node}: {first.reason}"
        change = "change the model, and import it again"
    return InputError.because(f"{folder / MANIFEST}: {known.model} has no chain: {why}", change)


def _files_of(path: Path) -> list[Path]:
    """Return the case files that one path names, and manifests that it names as files."""
    if path.is_dir():
        inside = [file for file in sorted(path.glob("*.toml")) if file.name != MANIFEST]
        if not inside and (path / MANIFEST).exists():
            raise _no_chain(path, Manifest.load(path))
        if not inside:
            raise InputError.because(f"{path}: this folder has no case file", "name a folder of TOML case files")
        return inside
    matching = _matches(path)
    if matching is None:
        return [path]
    if not matching:
        raise InputError.because(f"{path}: no file matches this pattern", "try one such as '*.toml'")
    return [file for match in matching for file in _files_of(match)]


def _matches(path: Path) -> list[Path] | None:
    """Return the files that a pattern matches, none where Python refuses the pattern; None for a path without one."""
    magic = [bool(set(part) & set("*?[")) for part in path.parts]
    if not any(magic) or path.exists():
        return None
    first = magic.index(True)
    try:
        return sorted(Path(*path.parts[:first]).glob("/".join(path.parts[first:])))
    except ValueError:  # before Python 3.13, `**` beside other characters
        return []


def say_fallback(name: str, kernels: Sequence[KernelChoice]) -> None:
    """Print a line if a chain gets another kernel than was asked for, or if scalar code computes it on Hexagon."""
    if any(choice.is_fallback or choice.cost for choice in kernels):
        print(f"hexconv: {one_line(name)}: kernel {one_line(kernel_words(kernels, costs=True))}", file=sys.stderr)


WORTH_TELLING = 0.95
"""The share of a plan's packets from which on another plan is told."""
BESIDE_THREADS = {"threads", "storage", "arch", "vtcm_bytes"}


def threads_hint(case: Case) -> str:
    """Return what other knobs would save where a plan states threads alone; nothing where they save little.

    Bands under the documented schedule make what they read again for each tile and each stripe.
    """
    plan = case.settled
    if plan.threads == 1 or plan.kernel != "hvx" or case.plan.stated.keys() - BESIDE_THREADS:
        return ""
    asked = Plan(kernel="hvx", threads=plan.threads, arch=plan.arch, vtcm_bytes=plan.vtcm_bytes)
    try:
        best = best_plan(case.chain, Question(capacity_of(plan), "time", asked, target="hexagon")).best
    except Unsupported:  # there is no plan at all, or there are more than a search looks at
        return ""
    alone = figures_of(case.chain, plan, rates(plan.arch)).latency_packets
    if best is None or best.latency_packets > WORTH_TELLING * alone:
        return ""
    knobs = knob_words(changed_knobs(case, replace(best.plan, storage=plan.storage)))
    return (
        f"threads = {plan.threads} alone takes {alone:.0f} packets by the model, {best.latency_packets:.0f} with "
        f"{knobs}; `hexconv best --threads {plan.threads}` searches for more"
    )


def limit_bytes(vtcm: str | None, plan: Plan | None = None) -> int:
    """Return the bytes of VTCM that caches may take: as `--vtcm` states, or all that a plan's architecture has.

    Raises:
        InputError: `--vtcm` is no amount of memory.
    """
    return memory_bytes(vtcm, "--vtcm") if vtcm is not None else capacity_of(plan or Plan())


def say_notes(model: str, differences: Sequence[str], where: Path) -> None:
    """Print a line if an import notes convs that differ from the model."""
    if differences:
        notes = counted_of(len(differences), "note")
        print(f"hexconv: {one_line(model)}: {notes} on convs that differ from the model: {where}", file=sys.stderr)


def with_weights(case: Case, weights: dict[str, Any] | None) -> Case:
    """Return a case with the limits of its weights; if they give it other kernels, say so as of a case.

    Raises:
        InputError: weights beyond the limits that the case states.
        Unsupported: no kernel has room for their sums.
    """
    limited = replace(case, chain=bounded(case.chain, weights))
    if limited.kernels != case.kernels:
        say_fallback(f"{case.name} with its weights", limited.kernels)
    return limited


@dataclass(frozen=True)
class Sources:
    """Where the values of a case's tensors come from.

    Attributes:
        fill: the values of all runs, as `fills_of` reads them; if None, each run takes those of `fills_of_run`.
        weights: a file with filters and biases; if None, `NAME.npz` beside the case.
        image: a file with the input.
        random: whether to draw the weights even if some lie beside the case.
    """

    fill: str | None
    weights: Path | None
    image: Path | None
    random: bool

    def files(self, case: Path) -> tuple[Path | None, Path | None]:
        """Return the files of weights and of the input of a case."""
        return self.weights or (None if self.random else weights_beside(case)), self.image

    def check(self, cases: int) -> None:
        """Refuse what doesn't go together.

        Raises:
            InputError: a file was given for several cases, or weights are both drawn and given.
        """
        for option, path in (("--weights", self.weights), ("--input", self.image)):
            if path and cases > 1:
                raise InputError.because(
                    f"{option} is for one chain, and {cases} cases were given", "run them one at a time"
                )
        if self.random and self.weights:
            what = f"--random draws weights, and --weights {self.weights} gives them"
            raise InputError.because(what, "leave one of them out")
