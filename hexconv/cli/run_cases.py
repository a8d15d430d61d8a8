"""What `hexconv run` does: it builds and runs every case, and compares its result with numpy's."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from hexconv.analyze import Fit, vtcm_fit
from hexconv.cli.answers import print_json, write_text
from hexconv.cli.cases import Batch, with_weights
from hexconv.cli.progress import counted
from hexconv.cli.show import show
from hexconv.errors import InputError, ToolMissing
from hexconv.lower import lower_case
from hexconv.report import causes, perfetto_json, run_csv, run_row
from hexconv.run.copy_engine import Copies, Moment
from hexconv.run.fills import fills_of, fills_of_run
from hexconv.run.given import DRAWN, given, weights_beside
from hexconv.run.measure import run_case, runner_of
from hexconv.run.profile import profile
from hexconv.spec import Case, Target

Row = dict[str, Any]

FIRST = ("passed", "case", "target", "kernel")
SPARE = (
    "thread_waits",
    "thread_slots",
    "threads",
    "instructions",
    "scalar_loads",
    "vector_loads",
    "vtcm_scalar_loads",
    "stalls",
    "issue_slots",
    "stall_share",
    "copy_bytes",
    "copies_2d",
    "copies",
    "hvx_instructions",
    "needed_macs",
    "vtcm_bytes",
    "max_rel_error",
    "fill",
    "fringe_is_zero",
    "seconds",
    "target",
    "error",
)
"""The columns that a table leaves out to fit 80 columns, the first of them first."""
WHERE = {"llvm": "this machine", "hexagon": "the Hexagon simulator"}
PASSED = {True: "yes", False: "NO", None: "not run"}
HEADINGS = {"macs_per_packet": "MACs/packet", "macs_per_slot": "MACs/slot", "max_abs_error": "error"}
"""The headings of columns on the terminal, if they differ from the names in JSON and CSV."""


@dataclass(frozen=True)
class Given:
    """Where the values of a case's tensors come from.

    Attributes:
        fill: the values of all runs, as `fills_of` reads them; if None, each run takes those of `fills_of_run`.
        weights: a file with filters and biases; if None, `NAME.npz` beside the case.
        image: a file with the input.
        random: whether to draw the weights even if some lie beside the case.
    """

    fill: str | None
    weights: Path | None
    image: Path | None
    random: bool

    def files(self, case: Path) -> tuple[Path | None, Path | None]:
        """Return the files of weights and of the input of a case."""
        return self.weights or (None if self.random else weights_beside(case)), self.image

    def check(self, cases: int) -> None:
        """Refuse what doesn't go together.

        Raises:
            InputError: a file was given for several cases, or weights are both drawn and given.
        """
        for option, path in (("--weights", self.weights), ("--input", self.image)):
            if path and cases > 1:
                raise InputError.because(
                    f"{option} is for one chain, and {cases} cases were given", "run them one at a time"
                )
        if self.random and self.weights:
            what = f"--random draws weights, and --weights {self.weights} gives them"
            raise InputError.because(what, "leave one of them out")


@dataclass(frozen=True)
class Asked:
    """How to run a case.

    Attributes:
        target: where the case runs.
        seeds: the seed of each run.
        given: where the values of its tensors come from.
        copies: when asynchronous copies are performed.
        seconds: the time that one run on the simulator may take.
        slots: whether the simulator counts issue slots.
        isa: the instruction set of the code on the simulator; None for the newest that the simulator runs.
        save: the file to keep tensors in.
        trace: the file for a trace of what runs when.
    """

    target: Target
    seeds: range
    given: Given
    copies: Moment
    seconds: float
    slots: bool
    isa: str | None
    save: Path | None
    trace: Path | None

    def check(self, cases: int) -> None:
        """Refuse what doesn't go together.

        Raises:
            InputError: a file was given for several runs, or a trace of a run that isn't on the simulator.
        """
        for option, path in (("--save", self.save), ("--trace", self.trace)):
            for amount, what in ((len(self.seeds), "seeds"), (cases, "cases")):
                if path and amount > 1:
                    one = what.removesuffix("s")
                    raise InputError.because(
                        f"{option} writes one run, and there are {amount} {what}", f"take one {one}"
                    )
        if self.trace and self.target != "hexagon":
            what = f"--trace writes the simulator's issue slots, and the target is {self.target}"
            raise InputError.because(what, "give --target hexagon")
        self.given.check(cases)


def run_cases(paths: Sequence[Path], asked: Asked, csv: Path | None, is_wide: bool, json: bool) -> int:
    """Run cases, and print the results; returns 0 if all are right, 1 if one isn't, 2 if one could not be run."""
    batch = Batch.of(paths, asked.target)
    batch.say_fallbacks()
    asked.check(len(batch.cases))
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
        case = with_weights(case, tensors.weights)
        fit = vtcm_fit(case.chain, case.settled) if case.settled.uses_vtcm else None
        if fit and not fit.fits:
            batch.tell(f"{case.name}: {fit}")
            return [{**refused, "vtcm": _as_result(fit)}]
        lowered = lower_case(case)
        for number, seed in enumerate(asked.seeds):
            runner = runner_of(case, asked.target, asked.seconds, Copies(asked.copies, seed), asked.slots, asked.isa)
            filled = fills or fills_of_run(case.chain, number, seed)
            try:
                row = run_row(case, run_case(case, lowered, runner, seed, asked.save, filled, tensors))
            except ToolMissing:
                refused["passed"] = None  # a tool is missing, so the case was not run
                raise
            row |= {"isa": asked.isa} if asked.isa else {}
            rows.append({**row, "seed": seed} if len(asked.seeds) > 1 else row)
        if asked.trace:
            profiled = profile(case, lowered, Copies(asked.copies, asked.seeds[0]), asked.seconds, tensors)
            write_text(asked.trace, perfetto_json(profiled))
    return rows


def _as_result(fit: Fit) -> Row:
    """Return the result of a case whose plan does not fit VTCM."""
    return {**asdict(fit), "gap_bytes": fit.gap_bytes}


def _table(rows: list[Row]) -> Table:
    """Return the table of results for people, the verdict first; errors are not in it, and are printed apart."""
    drawn = [name for name in ("fill", "weights", "input") if all(row.get(name, DRAWN) == DRAWN for row in rows)]
    alone = [] if any("thread_waits" in row for row in rows) else ["threads"]
    still = [] if any(row.get("copies") for row in rows) else ["copies", "copies_2d", "copy_bytes"]
    hidden = ["error", "vtcm", "kernels", *drawn, *still, *alone]
    told = dict.fromkeys(name for row in rows for name in row if name not in hidden)
    names = list(dict.fromkeys([*FIRST, *told]))
    table = Table(*(HEADINGS.get(name, name) for name in names), title=_verdict(rows))
    for row in rows:
        told = {**row, "passed": PASSED[row["passed"]], "kernel": _kernel_word(row)}
        told |= {name: Path(str(row[name])).name for name in ("weights", "input") if row.get(name)}
        table.add_row(*(_cell(told.get(name)) for name in names))
    return table


def _verdict(rows: Sequence[Row]) -> str:
    """Return how many runs gave numpy's answer, in a line."""
    passed, target = sum(bool(row["passed"]) for row in rows), WHERE[rows[0]["target"]]
    return f"{passed} of {len(rows)} right on {target}, compared with numpy"


def _kernel_word(row: Row) -> str:
    """Return the kernel that computed a case; where its convs had several, all of them."""
    return ", ".join(dict.fromkeys(choice["used"] for choice in row["kernels"]))


def _cell(value: object) -> str:
    """Return a value as text, floats short."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return causes(value)
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
