"""Builds a folder of C for several chains: an object, a header and an example for each, and the files they share."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from hexconv.build.chain import Built, built_chain, c_name
from hexconv.build.linked import archived, platform_files
from hexconv.build.rendering import rendered
from hexconv.errors import InputError
from hexconv.run.tensors import Tensors
from hexconv.spec import Case, Target
from hexconv.written import write_folder

DEFAULT_ISA = "v68"
ARCHIVE = "libchains.a"
NEVER_RUN = ("v75", "v79", "v81")
"""Instruction sets for which code is compiled and linked here, and never run."""
SHARED = ("Makefile", "CMakeLists.txt", "README.md")


def build(
    cases: Sequence[tuple[Case, Tensors]], folder: Path, target: Target = "hexagon", isa: str = DEFAULT_ISA
) -> tuple[Built, ...]:
    """Write a folder with which a C compiler makes programs that compute these chains.

    Args:
        cases: the cases, each with its weights and the image of its example.
        folder: the folder to write into; it is made if need be.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.

    Raises:
        InputError: two cases have the same name in C.
        NotWritten: the folder can't be written.
        Unsupported: a case can't be lowered, or not be called from C; the message names it.
        ToolMissing: zig isn't installed.
    """
    names = [c_name(case.name) for case, _ in cases]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                "CASE", f"two cases that are called {name} in C", "cases whose names differ in a letter or digit"
            )
    words = {
        "names": names,
        "isa": isa,
        "hexagon": target == "hexagon",
        "version": version("hexconv"),
        "never_run": NEVER_RUN,
    }
    contents = {file: rendered(file, words).encode() for file in SHARED} | platform_files()
    built = []
    for case, tensors in cases:
        chain, files = built_chain(case, tensors, target, isa)
        built.append(chain)
        contents |= files
    contents[ARCHIVE] = archived({f"{name}.o": contents[f"{name}.o"] for name in names})
    write_folder(folder, contents)
    return tuple(built)
