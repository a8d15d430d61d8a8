"""`hexconv run`: build, run, compare with numpy."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from hexconv.analyze import Fit, needed_macs, vtcm_fit
from hexconv.cli.app import app
from hexconv.cli.cases import load_cases, print_json, write_text
from hexconv.cli.show import show
from hexconv.errors import HexconvError, InputError
from hexconv.lower import lower_case
from hexconv.report import run_csv
from hexconv.run.copies import Copies, Moment
from hexconv.run.host import Host
from hexconv.run.measure import Run, run_case
from hexconv.run.runner import Runner
from hexconv.run.simulator.needs import DEFAULT_SECONDS
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case

Row = dict[str, Any]


@app.command
def run(
    *cases: Path,
    target: Literal["llvm", "hexagon"] = "llvm",
    seed: int = 0,
    seeds: int = 1,
    copies: Moment = "random",
    save: Path | None = None,
    csv: Path | None = None,
    seconds: float = DEFAULT_SECONDS,
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
        json: print JSON instead of a table.
    """
    loaded = load_cases(cases)
    if save and len(loaded) > 1:
        raise InputError("--save", f"{len(loaded)} cases", "one case at a time, since one file holds one run")
    if seeds < 1:
        raise InputError("--seeds", str(seeds), "1 or more")
    if not seconds > 0:
        raise InputError("--seconds", f"{seconds:g}", "a positive number of seconds")
    if save and seeds > 1:
        raise InputError("--save", f"{seeds} seeds", "one seed at a time, since one file holds one run")
    drawn = range(seed, seed + seeds)
    rows = [
        row for case in loaded for row in _rows(case, [_run_of(case, target, seconds, copies, s) for s in drawn], save)
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


@dataclass(frozen=True)
class _Drawn:
    """One run: where, and the seed of all that is random in it."""

    runner: Runner
    seed: int


def _run_of(case: Case, target: str, seconds: float, copies: Moment, seed: int) -> _Drawn:
    """Where a case runs: the simulator has the VTCM of the case's architecture."""
    moments = Copies(copies, seed)
    if target == "llvm":
        return _Drawn(Host(moments), seed)
    return _Drawn(Simulator(arch=case.plan.arch, seconds=seconds, copies=moments), seed)


def _rows(case: Case, runs: Sequence[_Drawn], save: Path | None) -> Iterator[Row]:
    """One case's results; a case that gives no answer says why and leaves the others alone."""
    refused: Row = {"case": case.name, "target": runs[0].runner.target, "passed": False}
    try:
        fit = vtcm_fit(case.chain, case.plan) if case.plan.storage == "vtcm" else None
        if fit and not fit.fits:
            print(f"hexconv: {case.name}: {fit}", file=sys.stderr)
            yield {**refused, "vtcm": _as_result(fit)}
            return
        lowered = lower_case(case)
        for run in runs:
            row = _as_row(run_case(case, lowered, run.runner, run.seed, save), needed_macs(case.chain))
            yield {**row, "seed": run.seed} if len(runs) > 1 else row
    except HexconvError as error:
        print(f"hexconv: {case.name}: {error}", file=sys.stderr)
        yield {**refused, "error": str(error)}


def _as_result(fit: Fit) -> Row:
    """A plan that does not fit, in full."""
    return {**asdict(fit), "gap_bytes": fit.gap_bytes}


def _as_row(result: Run, macs: int) -> Row:
    """A result in the words of the contract."""
    row = {"case": result.case, "target": result.target, **asdict(result.check), "seconds": result.seconds}
    if result.counts is None:
        return row
    rate = {"needed_macs": macs, "macs_per_packet": macs / result.counts.packets}
    vtcm = {} if result.vtcm_bytes is None else {"vtcm_bytes": result.vtcm_bytes}
    return {**row, **asdict(result.counts), **rate, **vtcm}


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
    return f"{value:.3g}" if isinstance(value, float) else str(value)
