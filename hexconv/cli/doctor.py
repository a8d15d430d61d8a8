"""`hexconv doctor`: what this machine can run, and what is missing for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from hexconv.cli.answers import print_json, show
from hexconv.cli.progress import waiting

if TYPE_CHECKING:
    from hexconv.run.machine_parts import Part


def doctor(*, wide: bool = False, json: bool = False) -> int:
    """Show every part that hexconv needs, whether it is here, and the command that installs what is missing.

    Args:
        wide: show all columns of tables.
        json: print JSON instead.

    Returns:
        0 when everything needed is there, else 1.
    """
    from hexconv.run.machine_parts import complete, examine  # here, so that `--help` doesn't wait for pydantic

    with waiting("looking"):
        parts = examine()
    if json:
        print_json(parts)
    else:
        show(_table(parts), wide, ("serves",))
        for part in parts:
            if todo := _to_do(part):
                print(f"{part.name}: {todo}")
    return 0 if complete(parts) else 1


def _table(parts: list[Part]) -> Table:
    """Return the table of all parts, with the verdict on each in the first column."""
    table = Table("fit", "part", "found", "serves")
    for part in parts:
        table.add_row("yes" if part.present else "NO" if part.needed else "no", part.name, part.found, part.serves)
    return table


def _to_do(part: Part) -> str:
    """What is wrong with a part and what to do about it, or how to get a better one; empty if nothing is to be done."""
    if part.present:
        return part.hint
    command = part.install if part.needed else f"optional: {part.install}"
    if part.install in part.problem:
        return part.problem
    return f"{part.problem or 'missing'}; {command}"
