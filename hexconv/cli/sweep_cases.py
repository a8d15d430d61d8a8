"""What `hexconv sweep` does: it checks every case of a grid, or random ones."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as BarTask
from rich.text import Text

from hexconv.cli.answers import print_json
from hexconv.cli.progress import bar, tenths
from hexconv.sweep.grid_file import Grid
from hexconv.sweep.journal import Row
from hexconv.sweep.judging import Sweep, Verdict, case_file, judge_all
from hexconv.sweep.random_case import random_case
from hexconv.sweep.survey import GOOD, Settings, survey


def sweep_grid(grid: Path, out: Path, settings: Settings, json: bool) -> int:
    """Sweep a grid file.

    Args:
        grid: the grid file.
        out: the table to write; its journal lies beside it.
        settings: limits, executor and the like of the sweep.
        json: print JSON instead of a summary.

    Returns:
        0 if every row holds, or says why there is nothing to check; 1 if something is wrong with a row.
    """
    rows = survey(Grid.load(grid), out, settings, _with_progress)
    statuses = Counter(row["status"] for row in rows)
    if json:
        print_json({"file": str(out), "rows": len(rows), "statuses": statuses})
    else:
        print(f"{out}: {len(rows)} rows: " + ", ".join(f"{count} {status}" for status, count in statuses.items()))
    return 1 if any(status not in GOOD for status in statuses) else 0


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
    columns = (BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with bar(*columns, is_kept=True) as progress:
        count = sum(row["status"] not in GOOD for row in there)
        task = progress.add_task(f"{count} failures", total=total, completed=len(there))
        for row in rows:
            count += row["status"] not in GOOD
            progress.update(task, advance=1, description=f"{count} failures")
            yield row


def sweep_random(count: int, seed: int, workers: int, json: bool) -> int:
    """Check random cases: cache sizes and sharing against TVM, results against numpy.

    Args:
        count: how many cases to draw.
        seed: the seed of the draw.
        workers: how many processes run at a time.
        json: print JSON instead.

    Returns:
        1 if a case disagrees, else 0.
    """
    cases = [random_case(seed, index) for index in range(count)]
    verdicts = judge_all(cases, workers)
    shown = _random_with_progress(verdicts, len(cases))
    result = Sweep.of(shown if json else _printed(shown))
    if json:
        print_json(result)
    else:
        print(f"{result.checked} checked, {result.disagree} disagree")
    return 1 if result.disagree else 0


def _random_with_progress(verdicts: Iterable[Verdict], total: int) -> Iterator[Verdict]:
    """Yield the same verdicts, and count them on standard error."""
    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with bar(*columns, is_kept=True) as progress:
        yield from progress.track(tenths(verdicts, "checking", total), total)


def _printed(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Yield the same verdicts, and print each case that does not agree as soon as it is known."""
    for verdict in verdicts:
        if verdict.outcome != "agrees":
            print(f"# {verdict.outcome}", case_file(verdict), sep="\n", flush=True)
        yield verdict
