"""`hexconv tir`: lower, annotate, write."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hexconv.analyze import cache_usage
from hexconv.cli.cases import load_cases, print_json, say_fallbacks, write_text
from hexconv.lower import annotated_tir, lower_case
from hexconv.spec import Target
from hexconv.spec.kernel import kernel_words


def tir(
    *cases: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    target: Target = "hexagon",
    json: bool = False,
) -> int:
    """Lower cases and write each one's annotated TIR as NAME.tir.

    Exits 1 if the closed form, TVM's allocations, or a figure that the case documents differ anywhere.

    Args:
        cases: case files (TOML).
        target: where they are to run, which says what kernels they get.
        output: folder for the .tir files; by default each is written beside its case file.
        json: print what was written as JSON.
    """
    written = []
    loaded = load_cases(cases, target)
    say_fallbacks(loaded)
    for path, case in zip(cases, loaded, strict=True):
        lowered = lower_case(case)
        usage = cache_usage(case, lowered)
        listing = (output or path.parent) / f"{case.name}.tir"
        write_text(listing, annotated_tir(case, lowered, usage.verdict))
        kernels = [asdict(choice) for choice in case.kernels]
        written.append({"case": case.name, "file": str(listing), "kernels": kernels, "agrees": usage.agrees})
        if not json:
            print(f"{listing} (kernel {kernel_words(case.kernels)})")
    if json:
        print_json(written)
    return 0 if all(entry["agrees"] for entry in written) else 1
