"""What `hexconv run` does: every case built and run, and its result compared with numpy's."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from hexconv.analyze import Fit, vtcm_fit
from hexconv.cli.cases import Batch, print_json, write_text
from hexconv.cli.progress import counted
from hexconv.cli.show import show
from hexconv.errors import InputError
from hexconv.lower import lower_case
from hexconv.report import causes, run_csv, run_row
from hexconv.run.copies import Copies, Moment
from hexconv.run.fills import fills_of, fills_of_run
from hexconv.run.given import DRAWN, bounded, given, weights_beside
from hexconv.run.measure import run_case, runner_of
from hexconv.spec import Case, Target

Row = dict[str, Any]

FIRST = ("passed", "case", "target", "kernel")
SPARE = (
    "instructions",
    "scalar_loads",
    "vector_loads",
    "vtcm_scalar_loads",
    "stalls",
    "issue_slots",
    "stall_share",
    "copy_bytes",
    "copies",
    "hvx_instructions",
    "needed_macs",
    "vtcm_bytes",
    "max_rel_error",
    "fill",
    "fringe_is_zero",
    "seconds",
    "target",
    "max_abs_error",
)
"""What a table in 80 columns does without, the first one first."""


@dataclass(frozen=True)
class Given:
    """What the tensors of a case are made of.

    Attributes:
        fill: in all runs, as `fills_of` reads it; without one, those of `fills_of_run`.
        weights: a file of them; without one, `NAME.npz` beside the case.
        image: a file with the input.
        random: draw the weights, whatever lies beside the case.
    """

    fill: str | None
    weights: Path | None
    image: Path | None
    random: bool

    def files(self, case: Path) -> tuple[Path | None, Path | None]:
        """The files of weights and of the input of a case."""
        return self.weights or (None if self.random else weights_beside(case)), self.image

    def check(self, cases: int) -> None:
        """Refuse what doesn't go together.

        Raises:
            InputError: one file for several cases, or weights that are drawn and given.
        """
        for option, path in (("--weights", self.weights), ("--input", self.image)):
            if path and cases > 1:
                raise InputError(option, f"{cases} cases", "one case at a time, since the file is for one chain")
        if self.random and self.weights:
            allowed = "one of them: drawn weights, or those of the file"
            raise InputError("--random", f"--weights {self.weights} too", allowed)


@dataclass(frozen=True)
class Asked:
    """How to run a case.

    Attributes:
        target: where.
        seeds: of the runs.
        given: what its tensors are made of.
        copies: when asynchronous copies are performed.
        seconds: the time that one run on the simulator has.
        slots: whether the simulator counts issue slots.
        save: where tensors are kept.
    """

    target: Target
    seeds: range
    given: Given
    copies: Moment
    seconds: float
    slots: bool
    save: Path | None


def run_cases(paths: Sequence[Path], asked: Asked, csv: Path | None, is_wide: bool, json: bool) -> int:
    """Run cases, and show what came of it; returns 0 if all are right, 1 if one isn't, 2 if one could not be run."""
    if asked.save and len(asked.seeds) > 1:
        raise InputError("--save", f"{len(asked.seeds)} seeds", "one seed at a time, since one file holds one run")
    batch = Batch.of(paths, asked.target)
    batch.say_fallbacks()
    if asked.save and len(batch.cases) > 1:
        raise InputError("--save", f"{len(batch.cases)} cases", "one case at a time, since one file holds one run")
    asked.given.check(len(batch.cases))
    named = counted(batch.sources, "running", lambda source: source[1].name)
    rows = [row for path, case in named for row in _rows(path, case, asked, batch)]
    if csv and rows:
        write_text(csv, run_csv(rows))
    if json and rows:
        print_json(rows)
    elif rows:
        show(_table(rows), is_wide, SPARE)
    return batch.code(all(row["passed"] for row in rows))


def _rows(path: Path, case: Case, asked: Asked, batch: Batch) -> list[Row]:
    """One case's results by seed; a case that gives no answer says why and leaves the others alone."""
    kernels = [asdict(choice) for choice in case.kernels]
    refused: Row = {"case": case.name, "target": asked.target, "passed": False, "kernels": kernels}
    rows: list[Row] = []
    with batch.telling(case.name, lambda reason: rows.append({**refused, "error": reason})):
        tensors = given(case.chain, *asked.given.files(path))
        fills = fills_of(case.chain, asked.given.fill) if asked.given.fill else None
        case = replace(case, chain=bounded(case.chain, tensors.weights))
        fit = vtcm_fit(case.chain, case.settled) if case.settled.storage == "vtcm" else None
        if fit and not fit.fits:
            batch.tell(f"{case.name}: {fit}")
            return [{**refused, "vtcm": _as_result(fit)}]
        lowered = lower_case(case)
        for number, seed in enumerate(asked.seeds):
            runner = runner_of(case, asked.target, asked.seconds, Copies(asked.copies, seed), asked.slots)
            filled = fills or fills_of_run(case.chain, number, seed)
            row = run_row(case, run_case(case, lowered, runner, seed, asked.save, filled, tensors))
            rows.append({**row, "seed": seed} if len(asked.seeds) > 1 else row)
    return rows


def _as_result(fit: Fit) -> Row:
    """A plan that does not fit, in full."""
    return {**asdict(fit), "gap_bytes": fit.gap_bytes}


def _table(rows: list[Row]) -> Table:
    """Results to read, the verdict first; what went wrong is told apart."""
    drawn = [name for name in ("fill", "weights", "input") if all(row.get(name, DRAWN) == DRAWN for row in rows)]
    hidden = ["error", "vtcm", "kernels", *drawn]
    told = dict.fromkeys(name for row in rows for name in row if name not in hidden)
    table = Table(*(headings := list(dict.fromkeys([*FIRST, *told]))))
    for row in rows:
        told = {**row, "kernel": _kernel_word(row)}
        table.add_row(*(_cell(told.get(name)) for name in headings))
    return table


def _kernel_word(row: Row) -> str:
    """The kernel that computed a case; where its convs had several, all of them."""
    return ", ".join(dict.fromkeys(choice["used"] for choice in row["kernels"]))


def _cell(value: object) -> str:
    """A value as text, floats short."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return causes(value)
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
