"""A bar on standard error while somebody looks: how far, how quick, how long yet, and what went wrong."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as BarTask
from rich.text import Text

from hexconv.sweep.rows import GOOD

Row = dict[str, Any]


class Rate(ProgressColumn):
    """Rows a second, or seconds a row."""

    def render(self, task: BarTask) -> Text:
        """What rich asks for."""
        speed = task.speed or 0
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} rows/s" if speed >= 1 else f"{1 / speed:.1f} s/row")


def with_progress(rows: Iterable[Row], there: Sequence[Row], total: int) -> Iterator[Row]:
    """The same rows, counted on a bar.

    Args:
        rows: as they end.
        there: rows of earlier runs.
        total: rows of the whole sweep.
    """
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        count = sum(row["status"] not in GOOD for row in there)
        bar = progress.add_task(f"{count} failures", total=total, completed=len(there))
        for row in rows:
            count += row["status"] not in GOOD
            progress.update(bar, advance=1, description=f"{count} failures")
            yield row
