"""What `hexconv build` does with case files: it writes the chains and their weights as a library in C."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from hexconv.build import Built, build
from hexconv.build.library import DEFAULT_ISA
from hexconv.cli.answers import print_json
from hexconv.cli.cases import Batch, with_weights
from hexconv.cli.progress import waiting
from hexconv.cli.run_cases import Given
from hexconv.errors import InputError, ToolMissing
from hexconv.lower.hexagon_target import isas
from hexconv.run.given import given
from hexconv.run.simulator.needs import QEMU
from hexconv.run.simulator.qemu import find_qemu
from hexconv.run.tensors import Tensors, random_tensors
from hexconv.spec import Case, Target

KIB = 1024


@dataclass(frozen=True)
class Code:
    """What code is compiled for, and whether this machine can check it.

    Attributes:
        target: Hexagon, or this machine (llvm).
        isa: the instruction set, for Hexagon.
        note: why it is this instruction set, where none was asked for; empty where there is nothing to say.
        missing: why this machine can't run the code, and what would; empty where it can.
    """

    target: Target
    isa: str
    note: str = ""
    missing: str = ""

    @classmethod
    def of(cls, target: Target, asked: str | None) -> "Code":
        """Take what was asked for, or else what the simulator of this machine can check.

        Raises:
            InputError: there is no such instruction set.
        """
        if asked is not None and asked not in isas():
            raise InputError("--isa", asked, "one of " + ", ".join(reversed(isas())))
        if target != "hexagon":
            return cls(target, asked or DEFAULT_ISA)
        try:
            qemu = find_qemu()
            isa = asked or min(DEFAULT_ISA, qemu.isa, key=lambda isa: -isas().index(isa))
            qemu.isa_for(isa)
        except ToolMissing as missing:
            return cls(target, asked or DEFAULT_ISA, missing=str(missing))
        if isa in (asked, DEFAULT_ISA):
            return cls(target, isa)
        note = f"code for {isa}, the newest that {QEMU} {qemu.version} runs here; --isa {DEFAULT_ISA} for a device"
        return cls(target, isa, note)

    def line(self, folder: Path) -> str:
        """Return the command that compiles the example, and runs it where this machine can."""
        make = f"make -C {quote(str(folder))}"
        if self.missing:
            return f"{make}: compiles the example for {self.isa}, and can't run it here: {self.missing}"
        note = f"{self.note}\n" if self.note else ""
        return f"{note}{make} run: compiles and runs the example, which checks its answer"


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
