"""`hexconv run`: build, run, compare with numpy."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from hexconv.cli.app import app
from hexconv.cli.cases import load_cases, print_json
from hexconv.cli.show import show
from hexconv.errors import HexconvError, InputError
from hexconv.lower import lower_case
from hexconv.run.host import Host
from hexconv.run.measure import Run, run_case
from hexconv.run.runner import Runner
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case

Row = dict[str, Any]


@app.command
def run(
    *cases: Path,
    target: Literal["llvm", "hexagon"] = "llvm",
    seed: int = 0,
    save: Path | None = None,
    json: bool = False,
) -> int:
    """Run cases on seeded random tensors and compare the results with numpy.

    Exits 1 if a result is wrong, 2 if a case could not be run; the other cases run all the same.

    Args:
        cases: case files (TOML).
        target: where: this machine through LLVM, or the Hexagon simulator.
        seed: of the random tensors.
        save: keep what went in and came out, logical, in this .npz file (for one case).
        json: print JSON instead of a table.
    """
    loaded = load_cases(cases)
    if save and len(loaded) > 1:
        raise InputError("--save", f"{len(loaded)} cases", "one case at a time, since one file holds one run")
    runner: Runner = Host() if target == "llvm" else Simulator()
    rows = [_row(case, runner, seed, save) for case in loaded]
    if json:
        print_json(rows)
    else:
        show(_table(rows))
    if any("error" in row for row in rows):
        return 2
    return 0 if all(row["passed"] for row in rows) else 1


def _row(case: Case, runner: Runner, seed: int, save: Path | None) -> Row:
    """One case's result; a case that gives no answer says why and leaves the others alone."""
    try:
        return _as_row(run_case(case, lower_case(case), runner, seed, save))
    except HexconvError as error:
        print(f"hexconv: {case.name}: {error}", file=sys.stderr)
        return {"case": case.name, "target": runner.target, "passed": False, "error": str(error)}


def _as_row(result: Run) -> Row:
    """A result in the words of the contract."""
    counts = asdict(result.counts) if result.counts else {}
    return {"case": result.case, "target": result.target, **asdict(result.check), "seconds": result.seconds, **counts}


def _table(rows: list[Row]) -> Table:
    """Results to read."""
    headings = [name for name in rows[0] if name != "error"]
    table = Table(*headings)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in headings))
    return table


def _cell(value: object) -> str:
    """A value as text, floats short."""
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
