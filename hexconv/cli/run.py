"""`hexconv run`: build, run, compare with numpy."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from hexconv.analyze import Fit, vtcm_fit
from hexconv.cli.cases import load_cases, print_json, write_text
from hexconv.cli.show import show
from hexconv.errors import HexconvError, InputError
from hexconv.lower import lower_case
from hexconv.report import run_csv, run_row
from hexconv.run.copies import Copies, Moment
from hexconv.run.fills import Fills, fills_of, fills_of_run
from hexconv.run.given import DRAWN, bounded, given, weights_beside
from hexconv.run.measure import run_case, runner_of
from hexconv.run.runner import Runner
from hexconv.run.simulator.needs import DEFAULT_SECONDS
from hexconv.spec import Case, Target

Row = dict[str, Any]
Files = tuple[Path | None, Path | None]
"""Of weights and of the input."""


def run(
    *cases: Path,
    target: Target = "llvm",
    seed: int = 0,
    seeds: int = 1,
    fill: str | None = None,
    weights: Path | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    random: Annotated[bool, Parameter(negative=())] = False,
    copies: Moment = "random",
    save: Path | None = None,
    csv: Path | None = None,
    seconds: float = DEFAULT_SECONDS,
    json: bool = False,
) -> int:
    """Run cases on seeded or given tensors and compare the results with numpy.

    Weights are those of NAME.npz beside NAME.toml, where there is one; all else is drawn. What integer sums can come to
    is then bounded from these weights.

    The first run of a case is on random tensors, which never come near the largest sums. With --seeds 5 four more are
    on extremes: input and filters of largest or of smallest values, in all four ways; then any mix is drawn.

    Exits 1 if a result is wrong or a plan does not fit VTCM, 2 if a case could not be run; the other cases run all the
    same.

    Args:
        cases: case files (TOML).
        target: where: this machine through LLVM, or the Hexagon simulator.
        seed: of the random tensors, and of the moments of asynchronous copies.
        seeds: how many runs, each with the next seed and other fills.
        fill: of the tensors, in all runs: random, least, most, alternating or one_hot; or one of these for each of
            input, filter1, .., bias1, .., with commas between them, as results have it.
        weights: filters and biases, filter1, bias1, .., from this .npz file (for one case).
        image: the input, NHWC, from this .npz file (for one case).
        random: draw the weights, whatever lies beside the case.
        copies: when asynchronous copies are performed between their start and the wait for them: as early as possible,
            as late as possible, or at random.
        save: keep what went in and came out, logical, in this .npz file (for one case).
        csv: also write what was counted there: the same in every run.
        seconds: the time that one run on the simulator has.
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
    files = _files(cases, weights, image, random)
    filled = [(case, fills_of(case.chain, fill) if fill else None) for case in loaded]
    drawn = range(seed, seed + seeds)
    rows = [
        row
        for (case, fills), given_files in zip(filled, files, strict=True)
        for row in _rows(
            case, {s: runner_of(case, target, seconds, Copies(copies, s)) for s in drawn}, fills, given_files, save
        )
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


def _files(cases: Sequence[Path], weights: Path | None, image: Path | None, random: bool) -> list[Files]:
    """The files of weights and of the input of every case, where it has any."""
    for option, path in (("--weights", weights), ("--input", image)):
        if path and len(cases) > 1:
            raise InputError(option, f"{len(cases)} cases", "one case at a time, since the file is for one chain")
    if random and weights:
        raise InputError("--random", f"--weights {weights} too", "one of them: drawn weights, or those of the file")
    return [(weights or (None if random else weights_beside(case)), image) for case in cases]


def _rows(
    case: Case, runners: dict[int, Runner], fills: Fills | None, files: Files, save: Path | None
) -> Iterator[Row]:
    """One case's results by seed; a case that gives no answer says why and leaves the others alone."""
    refused: Row = {"case": case.name, "target": next(iter(runners.values())).target, "passed": False}
    try:
        tensors = given(case.chain, *files)
        case = replace(case, chain=bounded(case.chain, tensors.weights))
        fit = vtcm_fit(case.chain, case.plan) if case.plan.storage == "vtcm" else None
        if fit and not fit.fits:
            print(f"hexconv: {case.name}: {fit}", file=sys.stderr)
            yield {**refused, "vtcm": _as_result(fit)}
            return
        lowered = lower_case(case)
        for number, (seed, runner) in enumerate(runners.items()):
            filled = fills or fills_of_run(case.chain, number, seed)
            row = run_row(case, run_case(case, lowered, runner, seed, save, filled, tensors))
            yield {**row, "seed": seed} if len(runners) > 1 else row
    except HexconvError as error:
        print(f"hexconv: {case.name}: {error}", file=sys.stderr)
        yield {**refused, "error": str(error)}


def _as_result(fit: Fit) -> Row:
    """A plan that does not fit, in full."""
    return {**asdict(fit), "gap_bytes": fit.gap_bytes}


def _table(rows: list[Row]) -> Table:
    """Results to read; what went wrong is told apart."""
    hidden = ["error", "vtcm"] + (["input"] if all(row.get("input", DRAWN) == DRAWN for row in rows) else [])
    headings = list(dict.fromkeys(name for row in rows for name in row if name not in hidden))
    table = Table(*headings)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in headings))
    return table


def _cell(value: object) -> str:
    """A value as text, floats short."""
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
