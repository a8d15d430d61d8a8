"""What the commands on a model ask of it: the code, the plans, and the inputs that it runs on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from hexconv.build.device_project import FOLDER
from hexconv.build.library import DEFAULT_ISA
from hexconv.cli.cases import limit_bytes
from hexconv.cli.options import stated_shapes
from hexconv.errors import InputError, ToolMissing
from hexconv.lower.hexagon_target import isas
from hexconv.network import Wanted
from hexconv.run.simulator.qemu import find_qemu
from hexconv.spec import Target
from hexconv.spec.choices import DEFAULT_OBJECTIVE, Engine, Kernel, Objective, Project


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
        note = f"compiled for {isa}, which QEMU {qemu.version} can check here; for a device add --isa {DEFAULT_ISA}"
        return cls(target, isa, note)

    def line(self, folder: Path) -> str:
        """Return the command that compiles the example, and runs it where this machine can."""
        make = f"make -C {quote(str(folder))}"
        if self.missing:
            return f"{make}: compiles the example for {self.isa}, and can't run it here: {self.missing}"
        note = f"{self.note}\n" if self.note else ""
        return f"{note}{make} run: compiles and runs the example, which checks its answer"

    def project_line(self, folder: Path) -> str:
        """Return the command that checks a project here, as far as this machine can."""
        make = f"make -C {quote(str(folder / FOLDER))} check"
        if self.missing:
            return f"{make}: can't run its DSP's side here: {self.missing}"
        return f"{make}: runs host and DSP of the project here, by a pipe; README.md there says what a device needs"


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command on a model.

    Attributes:
        code: what code is compiled for.
        vtcm: the VTCM that the caches of a chain may take, as text; None for all that an architecture has.
        objective: what a plan has least of; None for the usual one.
        threads: how many threads each chain is to have; None for the usual number.
        shapes: the sizes of inputs that the model leaves open, as texts.
        seed: the seed of the inputs that are drawn.
        stubs: whether what is missing is left to functions that the caller writes.
        project: what to write around the library.
        kernel: the kernel that pieces are to get where it serves, hmx where it costs no more; None for the fastest.
        engine: how the matrix engine requantises.
    """

    code: Code
    vtcm: str | None = None
    objective: Objective | None = None
    threads: int | None = None
    shapes: Sequence[str] = ()
    seed: int = 0
    stubs: bool = False
    project: Project | None = None
    kernel: Kernel | None = None
    engine: Engine = "exact"

    def wanted(self, command: str, inputs: Path | None = None) -> Wanted:
        """Return what a network is wanted for.

        Args:
            command: the name of the command, for errors.
            inputs: a file with the model's inputs.

        Raises:
            InputError: an option can't be used.
        """
        if self.code.target == "llvm" and (self.threads or 1) > 1:
            what = f"--threads {self.threads} with --target llvm: the plain kernel runs in one thread"
            raise InputError.because(what, "leave it out, or take --target hexagon")
        return Wanted(
            vtcm_bytes=limit_bytes(self.vtcm or None),
            target=self.code.target,
            isa=self.code.isa,
            objective=self.objective or DEFAULT_OBJECTIVE,
            shapes=stated_shapes(command, self.shapes),
            given=inputs,
            seed=self.seed,
            threads=self.threads or 1,
            kernel=self.kernel,
            engine=self.engine,
            stubs=self.stubs,
            project=self.project,
        )
