"""`hexconv tir`: lowers cases, annotates their TIR, and writes it."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.cli.options import check_folder
from hexconv.spec.choices import Target


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    target: Target = "hexagon",
    digest: bool = False,
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir.

    It exits with 1 if the prediction, TVM or a figure that the case documents differ anywhere, and with 2 if a case
    can't be lowered; the others are written all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: choose kernels for Hexagon, or for this machine (llvm).
        digest: write NAME.tir.sha256 in place of NAME.tir: its SHA-256 sum and, in comments, caches, loops and copies.
        output: write the files into this folder; the default is beside each case file.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting

    with starting():
        from hexconv.cli.tir_cases import tir_cases

    check_folder("--output", output)
    return tir_cases(cases, target, output, digest, json)
