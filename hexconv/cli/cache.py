"""`hexconv cache`: compares the closed form with TVM's allocations, and with the traffic and MACs that are counted."""

from pathlib import Path

from hexconv.cli.options import check_file
from hexconv.spec.choices import Target


def cache(
    *cases: Path, target: Target = "hexagon", csv: Path | None = None, wide: bool = False, json: bool = False
) -> int:
    """Show what caches take, tensors move and convs compute: as formulas predict it, and as TVM has it.

    It exits with 1 if the prediction, TVM or a figure that the case documents differ anywhere, and with 2 if a case
    can't be used; the others are shown all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: choose kernels for Hexagon, or for this machine (llvm).
        csv: also write the table into this file.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    # Imported here, so that `--help` doesn't wait the seconds that importing TVM takes.
    from hexconv.cli.progress import starting

    with starting():
        from hexconv.cli.cache_cases import cache_cases

    check_file("--csv", csv)
    return cache_cases(cases, target, csv, wide, json)
