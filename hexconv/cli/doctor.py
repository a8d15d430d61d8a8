"""`hexconv doctor`: what this machine can run, and what is missing for the rest."""

from dataclasses import asdict

from rich.table import Table

from hexconv.cli.cases import print_json
from hexconv.cli.show import show
from hexconv.run.doctor import Part, complete, examine


def doctor(*, json: bool = False) -> int:
    """Show every part that hexconv stands on, and the command that installs what is missing.

    Args:
        json: print JSON instead of a table.

    Returns:
        0 when everything needed is there, else 1.
    """
    parts = examine()
    if json:
        print_json([{**asdict(part), "present": part.present} for part in parts])
    else:
        show(_table(parts))
    return 0 if complete(parts) else 1


def _table(parts: list[Part]) -> Table:
    table = Table("part", "found", "serves", "to do")
    for part in parts:
        table.add_row(part.name, part.found or "missing", part.serves, _to_do(part))
    return table


def _to_do(part: Part) -> str:
    if part.present:
        return ""
    command = part.install if part.needed else f"optional: {part.install}"
    return f"{part.problem}; {command}" if part.problem and part.found else command
