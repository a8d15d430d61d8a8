"""`hexconv cache`: the closed form beside TVM's allocations, and beside the traffic and MACs that are counted."""

from pathlib import Path

from hexconv.cli.options import check_file
from hexconv.spec import Target


def cache(
    *cases: Path, target: Target = "hexagon", csv: Path | None = None, wide: bool = False, json: bool = False
) -> int:
    """Show what every cache takes, what is copied and what is computed: closed form, TVM and the documents' figures.

    Exits 1 if the closed form, what TVM made of a case, or a figure that the case documents differ anywhere, 2 if a
    case could not be looked at; the others are shown all the same.

    Args:
        cases: case files (TOML), folders of them, or patterns.
        target: where they are to run, which says what kernels they get.
        csv: also write the table there.
        wide: show all columns of tables, however wide they become.
        json: print JSON instead of a table.
    """
    from hexconv.cli.cache_cases import cache_cases  # TVM takes seconds that `--help` doesn't have to wait for

    check_file("--csv", csv)
    return cache_cases(cases, target, csv, wide, json)
