"""Builds a folder of C for several chains: an object, a header and an example for each, and the files they share."""

import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from hexconv.build.built_chain import Built, archived, built_chain, platform_files
from hexconv.build.rendering import rendered
from hexconv.run.simulator.toolchain import ZIG_TARGET
from hexconv.run.tensors import Tensors
from hexconv.spec import Case, Target
from hexconv.whitelist import Code, apart, identifier
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
    cases: Sequence[tuple[Case, Tensors]], folder: Path, target: Target = "hexagon", isa: str = DEFAULT_ISA
) -> tuple[Built, ...]:
    """Write a folder with which a C compiler makes programs that compute these chains.

    Args:
        cases: the cases, each with its weights and the image of its example. In C they are called by their names as
            identifiers; of two that are alike in C, or but for case, the later one gets a number.
        folder: the folder to write into; it is made if need be.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.

    Raises:
        NotWritten: the folder can't be written.
        Unsupported: a case can't be lowered, or not be called from C; the message names it.
        ToolMissing: zig isn't installed.
    """
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
    for (case, tensors), name in zip(cases, names, strict=True):
        chain, files = built_chain(case, tensors, name, target, isa)
        built.append(chain)
        contents |= files
    contents[ARCHIVE] = archived({f"{name}.o": contents[f"{name}.o"] for name in names})
    write_folder(folder, contents)
    return tuple(built)
