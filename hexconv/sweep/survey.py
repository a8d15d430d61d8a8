"""Run a sweep from its grid to its table; an interrupted sweep writes a table of the rows that are done."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from hexconv.apart import Executor, Limits, cores
from hexconv.apart.cluster import cluster
from hexconv.errors import Interrupted, NotWritten
from hexconv.sweep.grid import Grid
from hexconv.sweep.journal import Journal
from hexconv.sweep.provenance import provenance
from hexconv.sweep.request import Row, requests
from hexconv.sweep.rows import MEASURE, add_rows, table_rows
from hexconv.sweep.table import csv_of, sweep_table
from hexconv.written import whole_file

Shown = Callable[[Iterator[Row], Sequence[Row], int], Iterator[Row]]
"""What passes new rows on and shows them: the new rows, those that are there, and how many there will be."""


@dataclass(frozen=True)
class Settings:
    """How a grid is swept.

    Attributes:
        limits: the limits of every row.
        seed: the seed of the random tensors.
        workers: the number of processes at a time, on this machine.
        scheduler: the address of a cluster's scheduler; None for this machine.
        is_fresh: whether rows of earlier runs are computed again.
        job: the function that computes a row, `module:function`.
    """

    limits: Limits
    seed: int = 0
    workers: int = 1
    scheduler: str | None = None
    is_fresh: bool = False
    job: str = MEASURE

    def executor(self) -> AbstractContextManager[Executor]:
        """Return the executor that computes the rows."""
        return cluster(self.scheduler, provenance) if self.scheduler is not None else cores(self.workers)


def survey(grid: Grid, out: Path, settings: Settings, shown: Shown) -> list[Row]:
    """Do the rows of a grid that are not in the journal beside the table yet, and write the table.

    Args:
        grid: what is asked for.
        out: the table, `.csv`.
        settings: how.
        shown: passes the new rows on.

    Raises:
        Interrupted: by Ctrl-C; the table has the rows that are done.
        NotWritten: a disk is full; all finished rows are in the journal.
        InputError: another sweep for the same table, no such scheduler.
        ToolMissing: a target can't be served here.
    """
    asked = requests(grid, settings.seed)
    with Journal.opened(out.with_name(f"{out.name}.journal"), settings.limits, settings.is_fresh) as journal:

        def write() -> list[Row]:
            rows = table_rows(asked, journal)
            _write_whole(out, csv_of(sweep_table(rows)))
            return rows

        try:
            there = table_rows(asked, journal)
            if len(there) < len(asked):
                with settings.executor() as executor:
                    new = add_rows(asked, journal, settings.limits, executor, settings.job)
                    for _ in shown(new, there, len(asked)):
                        pass  # it is on disk
        except KeyboardInterrupt:
            journal.read()
            done = f"{out} has {len(write())} of {len(asked)} rows; the same command goes on from there"
            raise Interrupted(f"interrupted: {done}") from None
        return write()


def _write_whole(path: Path, content: bytes) -> None:
    """Write the table, on disk before it takes its place.

    Raises:
        NotWritten: the file can't be written; the old one is as it was.
    """
    try:
        with whole_file(path) as made, made.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except NotWritten as error:
        raise NotWritten(f"{error}; all rows are in the journal beside it, and the same command goes on") from None
