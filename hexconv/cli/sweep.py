"""`hexconv sweep`: checks many cases in parallel, those of a grid or random ones."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as BarTask
from rich.text import Text

from hexconv.cli.options import Count, Seconds, Seed, check_file, memory_bytes
from hexconv.cli.progress import bar, counts_said, log, starting
from hexconv.errors import InputError
from hexconv.spec.choices import Kernel

if TYPE_CHECKING:
    from hexconv.apart import Limits
    from hexconv.sweep.journal import Request, Row
    from hexconv.sweep.judging import Verdict
    from hexconv.sweep.survey import Settings


def sweep(
    grid: Path | None = None,
    *,
    out: Path | None = None,
    scheduler: str | None = None,
    seconds: Seconds = 1800,
    memory: str = "4GiB",
    fresh: bool = False,
    random: Count | None = None,
    seed: Seed = 0,
    kernel: Kernel | None = None,
    workers: Count | None = None,
    json: bool = False,
) -> int:
    """Check every case of a grid and write one table, or check random cases over the whole scope.

    A grid file is a case file in which any field of [plan] may be a list. A table [grid] lists alternatives for input,
    dtype, filter_dtype, zero_point, input_layout and output_layout of the chain, and for fields of all convs;
    [[grid.conv]] tables vary single convs. `targets = ["cache", "llvm", "hexagon"]` says what to do with each case; the
    default is cache. Each combination is a row. A row that makes no case, or does not fit, has the reason.

    Each row is kept as it finishes, in a journal beside the table. After an interruption, a crash or a full disk, give
    the same command again: it goes on where it stopped. Random cases are rows, too, where --out names a table. It exits
    with 1 if a row differs, failed, crashed, or took too much time or memory.

    Args:
        grid: name a grid file (TOML).
        out: write the table into this .csv file.
        scheduler: let the workers of this scheduler of dask.distributed do the rows, tcp://host:8786.
        seconds: stop a row after this time.
        memory: stop a row that takes more than this, such as 4GiB.
        fresh: do all rows again, even those that are done.
        random: draw this many cases instead of a grid; compare sizes with TVM and results with numpy, and print each
            case that disagrees as a case file.
        seed: start the random generator here; the n-th case of a seed is always the same.
        kernel: draw random cases for this kernel alone. Those for hmx, which no other draw has, are small: packets are
            counted too.
        workers: use this many processes; the default is one per CPU.
        json: print JSON instead.
    """
    processes = workers or os.cpu_count() or 1
    if random is not None:
        if grid:
            raise InputError.because("--random draws its cases", "leave out the grid")
        if (scheduler or fresh) and out is None:
            raise InputError.because("no --out given", "name the table that the rows go to: --out sweep.csv")
    elif kernel:
        raise InputError.because("--kernel is for random cases", "a grid names kernels in its [plan]")
    elif grid is None:
        raise InputError.because("no grid file given", "name one, or draw cases with --random 100")
    elif out is None:
        raise InputError.because("no --out given", "name the table to write: --out sweep.csv")
    with starting():
        from hexconv.apart import Limits
        from hexconv.sweep.grid_file import Grid
        from hexconv.sweep.journal import random_requests, requests
        from hexconv.sweep.random_case import random_case
        from hexconv.sweep.survey import JUDGE, MEASURE, Settings

    check_file("--out", out, ".csv")
    limits = Limits(seconds, memory_bytes(memory, "--memory"))
    if out is None:
        return sweep_random(random or 0, seed, processes, json, limits, kernel)
    settings = Settings(limits, seed, processes, scheduler, fresh, MEASURE if grid else JUDGE)
    drawn = (random_case(seed, index, kernel) for index in range(random or 0))
    asked = requests(Grid.load(grid), seed) if grid else random_requests(drawn)
    return sweep_rows(asked, out, settings, json)


def sweep_rows(asked: Sequence[Request], out: Path, settings: Settings, json: bool) -> int:
    """Sweep rows to a table.

    Args:
        asked: the rows.
        out: the table to write; its journal lies beside it.
        settings: limits, executor and the like of the sweep.
        json: print JSON instead of a summary.

    Returns:
        0 if every row holds, or says why there is nothing to check; 1 if something is wrong with a row.
    """
    from hexconv.cli.answers import print_json, print_text
    from hexconv.report.words import counted
    from hexconv.sweep.survey import GOOD, MEASURE, survey

    rows = survey(asked, out, settings, _with_progress)
    statuses = Counter(sorted(row["status"] for row in rows))
    if json:
        print_json({"file": str(out), "rows": len(rows), "statuses": statuses})
    else:
        for request, row in zip(asked, rows, strict=True):
            if row["status"] not in GOOD and settings.job != MEASURE:  # a case that was drawn stands in no file
                print_text(f"# {row['status']}\n# {request.case}: {row['reason']}\n{request.toml}\n")
        print(f"{out}: {counted(len(rows), 'row')}: {_told(statuses)}")
    return 1 if any(status not in GOOD for status in statuses) else 0


def _told(statuses: Mapping[str, int]) -> str:
    """Say how many rows have each status, as a count of them reads.

    >>> _told({"holds": 4}), _told({"holds": 2, "differs": 1, "out_of_memory": 3})
    ('all hold', '2 hold, 1 differs, 3 out_of_memory')
    """
    verbs = {"holds": "hold", "differs": "differ"}
    if set(statuses) == {"holds"} and statuses["holds"] > 1:
        return "all hold"
    return ", ".join(f"{each} {verbs.get(status, status) if each > 1 else status}" for status, each in statuses.items())


class _Rate(ProgressColumn):
    """A column of the bar that shows rows per second, or seconds per row."""

    def render(self, task: BarTask) -> Text:
        """Return the text of the column, as rich asks for it."""
        speed = task.speed or 0
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} rows/s" if speed >= 1 else f"{1 / speed:.1f} s/row")


def _with_progress(rows: Iterable[Row], there: Sequence[Row], total: int) -> Iterator[Row]:
    """Yield the same rows, and show on a bar the progress, the rate, the time left and the failures.

    Args:
        rows: the rows, as they end.
        there: the rows of earlier runs.
        total: how many rows the whole sweep has.
    """
    from hexconv.report.words import counted
    from hexconv.sweep.survey import GOOD

    columns = (BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn(), TextColumn("{task.description}"))
    count, done = sum(row["status"] not in GOOD for row in there), len(there)

    def failures() -> str:
        return counted(count, "failure")

    with bar(*columns, is_kept=True) as progress, log(lambda: f"{counts_said('sweeping', done, total)}, {failures()}"):
        task = progress.add_task(failures(), total=total, completed=done)
        for row in rows:
            count, done = count + (row["status"] not in GOOD), done + 1
            progress.update(task, advance=1, description=failures())
            yield row


def sweep_random(count: int, seed: int, workers: int, json: bool, limits: Limits, kernel: Kernel | None = None) -> int:
    """Check random cases: cache sizes and sharing against TVM, results against numpy.

    Args:
        count: how many cases to draw.
        seed: the seed of the draw.
        workers: how many processes run at a time.
        json: print JSON instead.
        limits: the time and memory of a case.
        kernel: the kernel that all cases are for; else any but the matrix engine's.

    Returns:
        1 if a case disagrees, else 0.
    """
    with starting():
        from hexconv.cli.answers import print_json
        from hexconv.report.words import counted
        from hexconv.sweep.judging import Sweep, judge_all
        from hexconv.sweep.random_case import random_case

    cases = [random_case(seed, index, kernel) for index in range(count)]
    verdicts = judge_all(cases, workers, limits)
    shown = _random_with_progress(verdicts, len(cases))
    result = Sweep.of(shown if json else _printed(shown))
    if json:
        print_json(result)
    else:
        wrong = f"{result.disagree} disagree{'s' * (result.disagree == 1)}" if result.disagree else "none disagrees"
        print(f"{counted(result.checked, 'case')} checked, {wrong}")
    return 1 if result.disagree else 0


def _random_with_progress(verdicts: Iterable[Verdict], total: int) -> Iterator[Verdict]:
    """Yield the same verdicts, and count them on standard error."""
    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with bar(*columns, is_kept=True) as progress:
        task, done = progress.add_task("", total=total), 0
        with log(lambda: counts_said("checking", done, total)):
            for verdict in verdicts:
                done += 1
                progress.advance(task)
                yield verdict


def _printed(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yield the same verdicts, and print each case that does not agree as soon as it is known."""
    from hexconv.cli.answers import print_text
    from hexconv.sweep.judging import case_file

    for verdict in verdicts:
        if verdict.outcome != "agrees":
            print_text(f"# {verdict.outcome}\n{case_file(verdict)}\n")
            sys.stdout.flush()
        yield verdict
