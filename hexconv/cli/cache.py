"""`hexconv cache`: the closed form beside TVM's allocations."""

from pathlib import Path

from hexconv.analyze import cache_usage
from hexconv.cli.app import app
from hexconv.cli.cases import load_cases, print_json, write_text
from hexconv.cli.show import show
from hexconv.lower import lower_case
from hexconv.report import cache_csv, cache_table


@app.command
def cache(*cases: Path, csv: Path | None = None, json: bool = False) -> int:
    """Show what every cache takes: closed form, TVM and, for the documented cases, the document.

    Exits 1 if the closed form and TVM differ anywhere.

    Args:
        cases: case files (TOML).
        csv: also write the table there.
        json: print JSON instead of a table.
    """
    usages = [cache_usage(case, lower_case(case)) for case in load_cases(cases)]
    if csv:
        write_text(csv, cache_csv(usages))
    if json:
        print_json(usages)
    else:
        show(cache_table(usages))
    return 0 if all(usage.agrees for usage in usages) else 1
