"""Builds a folder of C for several chains: an object, a header and an example for each, and the files they share."""

import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from hexconv.build.built_chain import Built, archived, built_chain, platform_files
from hexconv.build.device_project import check_project, of_chain, project_files
from hexconv.build.rendering import rendered
from hexconv.run.simulator.toolchain import ZIG_TARGET
from hexconv.run.tensors import Tensors
from hexconv.spec import Case, Target
from hexconv.spec.choices import Project
from hexconv.whitelist import Code, apart, identifier
from hexconv.working import each
from hexconv.written import write_folder

DEFAULT_ISA = "v68"
ARCHIVE = "libchains.a"
NEVER_RUN = ("v75", "v79", "v81")
"""Instruction sets for which code is compiled and linked here, and never run."""
SHARED = ("Makefile", "CMakeLists.txt", "README.md")
MACHINE = "machine.mk"
_PLAIN_PATH = re.compile(r"[\w./+@ -]+", re.ASCII)
"""What a Makefile and a shell, between quotes, take as it is."""


def machine_makefile(target: Target, isa: str) -> bytes:
    """Return the part of a Makefile that says how this machine compiles and runs examples."""
    python = sys.executable if _PLAIN_PATH.fullmatch(sys.executable or "") else "python3"
    words = {"hexagon": target == "hexagon", "isa": isa, "python": Code(python), "zig_target": ZIG_TARGET}  # noqa: S704
    return rendered(MACHINE, words).encode()


def build(
    cases: Sequence[tuple[Case, Tensors]],
    folder: Path,
    target: Target = "hexagon",
    isa: str = DEFAULT_ISA,
    project: Project | None = None,
) -> tuple[Built, ...]:
    """Write a folder with which a C compiler makes programs that compute these chains.

    Args:
        cases: the cases, each with its weights and the image of its example. In C they are called by their names as
            identifiers; of two that are alike in C, or but for case, the later one gets a number.
        folder: the folder to write into; it is made if need be.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.
        project: what to write around the library: a FastRPC project, or nothing.

    Raises:
        InputError: a project for another target than Hexagon.
        NotWritten: the folder can't be written.
        Unsupported: a case can't be lowered, or not be called from C; the message names it.
        ToolMissing: zig isn't installed.
    """
    if project:
        check_project(target)
    names = apart(identifier(case.name) for case, _ in cases)
    words = {
        "names": names,
        "isa": isa,
        "hexagon": target == "hexagon",
        "machine": f"Hexagon {isa}" if target == "hexagon" else "this machine",
        "version": version("hexconv"),
        "never_run": NEVER_RUN,
    }
    contents = {file: rendered(file, words).encode() for file in SHARED} | platform_files()
    contents[MACHINE] = machine_makefile(target, isa)
    built = []
    for (case, tensors), name in each(list(zip(cases, names, strict=True)), "building", lambda one: one[0][0].name):
        chain = built_chain(case, tensors, name, target, isa)
        built.append(chain)
        contents |= chain.files
    contents[ARCHIVE] = archived({f"{name}.o": contents[f"{name}.o"] for name in names})
    if project:
        engine = any(case.settled.kernel == "hmx" for case, _ in cases)
        contents |= project_files(names[0] if len(names) == 1 else "chains", list(map(of_chain, built)), isa, engine)
    write_folder(folder, contents)
    return tuple(chain.built for chain in built)
