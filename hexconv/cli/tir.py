"""`hexconv tir`: lower, annotate, write."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_folder


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir.

    Exits 1 if the closed form and what TVM made of a case differ, 2 if a case could not be lowered; the others are
    written all the same.

    Args:
        cases: case files (TOML), folders of them, or patterns.
        output: folder for the .tir files; by default each is written beside its case file.
        json: print what was written as JSON.
    """
    from hexconv.cli.tir_cases import tir_cases  # TVM takes seconds that `--help` doesn't have to wait for

    check_folder("--output", output)
    return tir_cases(cases, output, json)
