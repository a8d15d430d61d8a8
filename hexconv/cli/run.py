"""`hexconv run`: build, run, compare with numpy."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from hexconv.analyze import Fit, vtcm_fit
from hexconv.cli.cases import load_cases, print_json, write_text
from hexconv.cli.show import show
from hexconv.errors import HexconvError, InputError
from hexconv.lower import lower_case
from hexconv.report import causes, run_csv, run_row
from hexconv.run.copies import Copies, Moment
from hexconv.run.measure import run_case, runner_of
from hexconv.run.runner import Runner
from hexconv.run.simulator.needs import DEFAULT_SECONDS
from hexconv.spec import Case, Target

Row = dict[str, Any]


def run(
    *cases: Path,
    target: Target = "llvm",
    seed: int = 0,
    seeds: int = 1,
    copies: Moment = "random",
    save: Path | None = None,
    csv: Path | None = None,
    seconds: float = DEFAULT_SECONDS,
    slots: bool = True,
    json: bool = False,
) -> int:
    """Run cases on seeded random tensors and compare the results with numpy.

    Exits 1 if a result is wrong or a plan does not fit VTCM, 2 if a case could not be run; the other cases run all the
    same.

    Args:
        cases: case files (TOML).
        target: where: this machine through LLVM, or the Hexagon simulator.
        seed: of the random tensors, and of the moments of asynchronous copies.
        seeds: how many runs, each with the next seed.
        copies: when asynchronous copies are performed between their start and the wait for them: as early as possible,
            as late as possible, or at random.
        save: keep what went in and came out, logical, in this .npz file (for one case).
        csv: also write what was counted there: the same in every run.
        seconds: the time that one run on the simulator has.
        slots: count issue slots on the simulator, which are packets and the stalls that public rules say; the run takes
            up to twice the time.
        json: print JSON instead of a table.
    """
    loaded = load_cases(cases, target)
    if save and len(loaded) > 1:
        raise InputError("--save", f"{len(loaded)} cases", "one case at a time, since one file holds one run")
    if save and seeds > 1:
        raise InputError("--save", f"{seeds} seeds", "one seed at a time, since one file holds one run")
    if seeds < 1:
        raise InputError("--seeds", str(seeds), "1 or more")
    if not seconds > 0:
        raise InputError("--seconds", f"{seconds:g}", "a positive number of seconds")
    drawn = range(seed, seed + seeds)
    rows = [
        row
        for case in loaded
        for row in _rows(case, {s: runner_of(case, target, seconds, Copies(copies, s), slots) for s in drawn}, save)
    ]
    if csv:
        write_text(csv, run_csv(rows))
    if json:
        print_json(rows)
    else:
        show(_table(rows))
    if any("error" in row for row in rows):
        return 2
    return 0 if all(row["passed"] for row in rows) else 1


def _rows(case: Case, runners: dict[int, Runner], save: Path | None) -> Iterator[Row]:
    """One case's results by seed; a case that gives no answer says why and leaves the others alone."""
    refused: Row = {"case": case.name, "target": next(iter(runners.values())).target, "passed": False}
    try:
        fit = vtcm_fit(case.chain, case.plan) if case.plan.storage == "vtcm" else None
        if fit and not fit.fits:
            print(f"hexconv: {case.name}: {fit}", file=sys.stderr)
            yield {**refused, "vtcm": _as_result(fit)}
            return
        lowered = lower_case(case)
        for seed, runner in runners.items():
            row = run_row(case, run_case(case, lowered, runner, seed, save))
            yield {**row, "seed": seed} if len(runners) > 1 else row
    except HexconvError as error:
        print(f"hexconv: {case.name}: {error}", file=sys.stderr)
        yield {**refused, "error": str(error)}


def _as_result(fit: Fit) -> Row:
    """A plan that does not fit, in full."""
    return {**asdict(fit), "gap_bytes": fit.gap_bytes}


def _table(rows: list[Row]) -> Table:
    """Results to read; what went wrong is told apart."""
    headings = list(dict.fromkeys(name for row in rows for name in row if name not in ("error", "vtcm")))
    table = Table(*headings)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in headings))
    return table


def _cell(value: object) -> str:
    """A value as text, floats short."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return causes(value)
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
