"""What `hexconv doctor` does: it prints a table of the parts that hexconv needs, and how to install missing ones."""

from dataclasses import asdict

from rich.table import Table

from hexconv.cli.answers import print_json
from hexconv.cli.progress import waiting
from hexconv.cli.show import show
from hexconv.run.machine_parts import Part, complete, examine


def show_parts(is_wide: bool, json: bool) -> int:
    """Look at every part and print what is found; returns 0 when everything needed is there, else 1."""
    with waiting("looking"):
        parts = examine()
    if json:
        print_json([{**asdict(part), "present": part.present} for part in parts])
    else:
        show(_table(parts), is_wide, ("serves",))
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
