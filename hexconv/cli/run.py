"""`hexconv run`: builds and runs cases, and compares their results with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.table import Table

from hexconv.cli.options import Count, Seconds, Seed, check_file
from hexconv.cli.progress import counted, starting
from hexconv.errors import InputError
from hexconv.spec.choices import RunTarget

if TYPE_CHECKING:
    from hexconv.analyze import Fit
    from hexconv.cli.cases import Batch, Sources
    from hexconv.run.copy_engine import Moment
    from hexconv.run.measurement import Runner
    from hexconv.spec import Case

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
WHERE = {"llvm": "this machine", "hexagon": "the Hexagon simulator", "mlir": "this machine, through MLIR"}
PASSED = {True: "yes", False: "NO", None: "not run"}
HEADINGS = {"macs_per_packet": "MACs/packet", "macs_per_slot": "MACs/slot", "max_abs_error": "error"}
"""The headings of columns on the terminal, if they differ from the names in JSON and CSV."""


def run(
    *cases: Path,
    target: RunTarget = "llvm",
    seed: Seed = 0,
    seeds: Count = 1,
    fill: str | None = None,
    weights: Path | None = None,
    image: Annotated[Path | None, Parameter(name="--input")] = None,
    random: Annotated[bool, Parameter(negative=())] = False,
    copies: Literal["early", "late", "random"] = "random",
    save: Path | None = None,
    csv: Path | None = None,
    trace: Path | None = None,
    seconds: Seconds = 1800.0,
    slots: bool = True,
    isa: str | None = None,
    engine_words: Annotated[bool, Parameter(negative=())] = False,
    wide: bool = False,
    json: bool = False,
) -> int:
    """Run cases on seeded or given tensors and compare the results with numpy.

    It takes the weights from NAME.npz beside NAME.toml, if that is there, and draws all else.

    The first run of a case takes random tensors, whose sums stay far from the largest possible. --seeds 5 adds four
    runs on extremes: the input and the filters have their largest or smallest values, in all four combinations.
    Further runs mix them.

    It exits with 1 if a result is wrong or a plan does not fit VTCM, and with 2 if a case could not be run; the other
    cases run all the same.

    Args:
        cases: name case files (TOML), folders of them, or patterns.
        target: run on this machine (llvm), on the Hexagon simulator, or on this machine as MLIR's tools compile the
            chain's linalg (mlir).
        seed: start the random generator here; tensors and the moments of copies come from it.
        seeds: run this many times, each with the next seed and other values.
        fill: fill all tensors, in all runs, with random, least, most, alternating or one_hot values; or state one of
            these for each of input, filter1, .., bias1, .., with commas between them.
        weights: take filters and biases (filter1, bias1, ..) from this .npz file (for one case).
        image: take the input (NHWC) from this .npz file (for one case).
        random: draw the weights, even if some lie beside the case.
        copies: perform each asynchronous copy as early as it may be, as late as it may be, or at a random moment.
        save: keep what went in and came out in this .npz file, in logical layouts (for one case).
        csv: also write the counts into this file; they are the same in every run.
        trace: write what the kernel and the copy engine do, over issue slots, into this .json file, which
            https://ui.perfetto.dev opens (for one case, on the simulator). It takes a second run.
        seconds: stop a run on the simulator after this time.
        slots: count issue slots on the simulator: packets, and the stalls that public rules state. It takes up to twice
            the time.
        isa: compile for this version of Hexagon, and count by its rules; the default is the newest that the simulator
            runs. A case for a newer version is not run.
        engine_words: issue packets of the matrix engine by its own words, as on a device, not by calls of the model.
            Each traps, and the model performs it; that takes QEMU 11.
        wide: show all columns of tables.
        json: print JSON instead.
    """
    with starting():
        from hexconv.cli.answers import print_json, show, write_text
        from hexconv.cli.cases import Batch, Sources
        from hexconv.report import run_csv

    check_file("--save", save, ".npz")
    check_file("--csv", csv)
    if isa and target != "hexagon":
        raise InputError.because(f"--isa {isa} is for --target hexagon", f"leave it out with --target {target}")
    if engine_words and target != "hexagon":
        what = f"--engine-words is for --target hexagon, and the target is {target}"
        raise InputError.because(what, "give --target hexagon, or leave it out")
    check_file("--trace", trace, ".json")
    sources = Sources(fill, weights, image, random)
    asked = Asked(target, range(seed, seed + seeds), sources, copies, seconds, slots, isa, engine_words, save, trace)
    batch = Batch.of(cases, "llvm" if target == "mlir" else target)
    if target != "mlir":
        batch.say_fallbacks()
    asked.check(len(batch.cases))
    named = counted(batch.sources, "running", lambda source: source[1].name)
    rows = [row for path, case in named for row in _rows(path, case, asked, batch)]
    if csv and rows:
        write_text(csv, run_csv(rows))
    if json and rows:
        print_json(rows)
    elif rows:
        show(_table(rows), wide, SPARE)
    return batch.code(all(row["passed"] for row in rows))


@dataclass(frozen=True)
class Asked:
    """How to run a case.

    Attributes:
        target: where the case runs.
        seeds: the seed of each run.
        sources: where the values of its tensors come from.
        copies: when asynchronous copies are performed.
        seconds: the time that one run on the simulator may take.
        slots: whether the simulator counts issue slots.
        isa: the instruction set of the code on the simulator; None for the newest that the simulator runs.
        engine_words: whether packets of the matrix engine are its own words.
        save: the file to keep tensors in.
        trace: the file for a trace of what runs when.
    """

    target: RunTarget
    seeds: range
    sources: Sources
    copies: Moment
    seconds: float
    slots: bool
    isa: str | None
    engine_words: bool
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
        self.sources.check(cases)

    def runner(self, case: Case, seed: int) -> Runner:
        """Return where a case runs."""
        from hexconv.run.copy_engine import Copies
        from hexconv.run.measure import runner_of

        copies = Copies(self.copies, seed)
        return runner_of(case, self.target, self.seconds, copies, self.slots, self.isa, self.engine_words)


def _rows(path: Path, case: Case, asked: Asked, batch: Batch) -> list[Row]:
    """One case's results by seed; a case that gives no answer says why and leaves the others alone."""
    from hexconv.analyze import misfit
    from hexconv.checked import Trial, check
    from hexconv.cli.answers import write_text
    from hexconv.cli.cases import with_weights
    from hexconv.report import perfetto_json, run_row
    from hexconv.run.copy_engine import Copies
    from hexconv.run.fills import fills_of, fills_of_run
    from hexconv.run.given import given
    from hexconv.run.profile import profile

    refused: Row = {"case": case.name, "target": asked.target, "passed": False, "kernels": case.kernels}
    rows: list[Row] = []
    with batch.telling(case.name, lambda reason: rows.append({**refused, "error": reason})):
        tensors = given(case.chain, *asked.sources.files(path))
        fills = fills_of(case.chain, asked.sources.fill) if asked.sources.fill else None
        case = with_weights(case, tensors.weights)
        if fit := misfit(case):
            batch.tell(f"{case.name}: {fit}")
            return [{**refused, "vtcm": _as_result(fit)}]
        trials = [
            Trial(
                asked.runner(case, seed),
                fills or fills_of_run(case.chain, number, seed),
                seed,
                tensors,
                asked.save,
            )
            for number, seed in enumerate(asked.seeds)
        ]
        checked = check(case, trials)
        for tried in checked.runs:
            refused["passed"] = tried.passed
            row = run_row(case, tried.answer()) | ({"isa": asked.isa} if asked.isa else {})
            row |= {"engine_words": True} if asked.engine_words else {}
            rows.append({**row, "seed": tried.trial.seed} if len(trials) > 1 else row)
        if asked.trace:
            profiled = profile(case, checked.lowered, Copies(asked.copies, asked.seeds[0]), asked.seconds, tensors)
            write_text(asked.trace, perfetto_json(profiled))
    return rows


def _as_result(fit: Fit) -> Row:
    """Return the result of a case whose plan does not fit VTCM."""
    return {**asdict(fit), "gap_bytes": fit.gap_bytes}


def _table(rows: list[Row]) -> Table:
    """Return the table of results for people, the verdict first; errors are not in it, and are printed apart."""
    from hexconv.run.given import DRAWN

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
    return ", ".join(dict.fromkeys(choice.used for choice in row["kernels"]))


def _cell(value: object) -> str:
    """Return a value as text, floats short."""
    from hexconv.report import causes

    if value is None:
        return ""
    if isinstance(value, dict):
        return causes(value)
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
