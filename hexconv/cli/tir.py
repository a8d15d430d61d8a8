"""`hexconv tir`: lower, annotate, write."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.analyze import cache_usage
from hexconv.cli.cases import load_cases, print_json, write_text
from hexconv.lower import annotated_tir, lower_case


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir.

    Args:
        cases: case files (TOML).
        output: folder for the .tir files; by default each is written beside its case file.
        json: print what was written as JSON.
    """
    written = []
    for path, case in zip(cases, load_cases(cases, "hexagon"), strict=True):
        lowered = lower_case(case)
        agrees = cache_usage(case, lowered).agrees
        agreement = "as the closed form predicts" if agrees else "NOT as the closed form predicts"
        target = (output or path.parent) / f"{case.name}.tir"
        write_text(target, annotated_tir(case, lowered, agreement))
        written.append({"case": case.name, "file": str(target), "agrees": agrees})
        if not json:
            print(target)
    if json:
        print_json(written)
    return 0 if all(entry["agrees"] for entry in written) else 1
