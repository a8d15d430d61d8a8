"""`hexconv tir`: lower, annotate, write."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_folder
from hexconv.spec import Target


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    target: Target = "hexagon",
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir.

    Exits 1 if the closed form, what TVM made of a case, or a figure that the case documents differ anywhere, 2 if a
    case could not be lowered; the others are written all the same.

    Args:
        cases: case files (TOML), folders of them, or patterns.
        target: where they are to run, which says what kernels they get.
        output: folder for the .tir files; by default each is written beside its case file.
        json: print what was written as JSON.
    """
    from hexconv.cli.tir_cases import tir_cases  # TVM takes seconds that `--help` doesn't have to wait for

    check_folder("--output", output)
    return tir_cases(cases, target, output, json)
