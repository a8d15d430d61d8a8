"""Run a sweep from its grid to its table, row by row; an interrupted sweep writes the rows that are done."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hexconv.apart import Ending, Limits, cores, do_all
from hexconv.apart.parallel import cluster
from hexconv.errors import Interrupted, NotWritten, ToolMissing
from hexconv.run.simulator.made_files import provenance
from hexconv.spec import Plan
from hexconv.sweep.grid_file import plan_columns
from hexconv.sweep.journal import Journal, Request, Row
from hexconv.written import whole_file

MEASURE, JUDGE = "hexconv.sweep.row_measures:measure", "hexconv.sweep.judging:judged_row"
"""The jobs of a row: of a grid, measured; of a case that was drawn, judged."""
GOOD = ("holds", "infeasible", "refused")
"""The other statuses mean that something is wrong: differs, failed, crashed, overran, out_of_memory."""


def missing(requests: Sequence[Request], journal: Journal) -> list[Request]:
    """Return the requests that have no row yet."""
    return [request for request in requests if request.key not in journal.rows]


def add_rows(
    requests: Sequence[Request], journal: Journal, limits: Limits, executor: Executor, job: str = MEASURE
) -> Iterator[Row]:
    """Compute the missing rows and journal them; yield every new row once it is on disk, in the order of their ends.

    Raises:
        NotWritten: the journal's disk is full.
        ToolMissing: a target can't be served at all, or another version of the code was to serve it.
        RunFailed: no processes can be started, or the cluster is gone.
    """
    waiting = missing(requests, journal)
    for request in (request for request in waiting if request.refusal):
        yield _added(journal, request, {"status": "refused", "reason": request.refusal})
    waiting = [request for request in waiting if not request.refusal]
    tasks = [{**_task(request), "seconds": limits.seconds} for request in waiting]
    for place, ending in do_all(job, limits, tasks, executor):
        if "missing" in ending.answer:
            raise ToolMissing(ending.answer["missing"])
        yield _added(journal, waiting[place], _measured(ending))


def table_rows(requests: Sequence[Request], journal: Journal) -> list[Row]:
    """Return the rows that are done, in the order of the grid, each with the columns of its case."""
    there = [request for request in requests if request.key in journal.rows]
    return [{**_known(request), **journal.rows[request.key]} for request in there]


def _added(journal: Journal, request: Request, row: Row) -> Row:
    journal.add(request.key, row)
    return row


def _task(request: Request) -> Row:
    case = {"case": request.case, "toml": request.toml, "target": request.target, "seed": request.seed}
    return {**case, "code": provenance()}


def _known(request: Request) -> Row:
    return {"case": request.case, "target": request.target, **request.known}


def _measured(ending: Ending) -> Row:
    """Return the row that a process made of a request."""
    row = ending.answer if ending.how == "answered" else {"status": ending.how, "reason": ending.reason}
    return {**row, "elapsed_seconds": ending.seconds}


WHAT = ("case", "target", "status", "reason")
CHAIN = ("chain", "input", "dtype", "filter_dtype", "zero_point", "input_layout", "output_layout", "convs")
PLAN = tuple(plan_columns(Plan()))
KERNELS = ("kernel_asked", "kernel_used", "kernel_why")
SIZES = ("predicted_bytes", "peak_bytes", "agrees", "demand_bytes", "capacity_bytes", "fits")
WORK = (
    "predicted_traffic_bytes",
    "traffic_bytes",
    "needed_traffic_bytes",
    "predicted_macs",
    "macs",
    "needed_macs",
    "recompute",  # MACs done over MACs needed, of the closed form
)
RUN = ("passed", "max_abs_error", "max_rel_error", "fringe_is_zero")
COUNTS = (
    *("packets", "instructions", "hvx_instructions", "macs_per_packet", "vtcm_bytes"),
    *("issue_slots", "stalls", "macs_per_slot", "vector_loads"),  # stalls: slots that are lost
)
SECONDS = ("seconds", "elapsed_seconds")  # seconds of the kernel, and of all work for the row

COLUMNS = (*WHAT, *CHAIN, *PLAN, *KERNELS, *SIZES, *WORK, *RUN, *COUNTS, *SECONDS)
WHOLE = (
    *("zero_point", "rows", "w_split"),
    *(knob for knob, value in plan_columns(Plan()).items() if isinstance(value, int)),
    *(name for name in COLUMNS if name.endswith(("_bytes", "macs", "packets", "instructions")) and "per" not in name),
    *("issue_slots", "stalls", "vector_loads"),
)
FLAGS = ("agrees", "fits", "passed", "fringe_is_zero")


def sweep_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the table, with one row per case and target; a column that a row doesn't have is left empty."""
    frame = pd.DataFrame(rows).reindex(columns=list(COLUMNS)).replace("", pd.NA)
    dtypes = {**dict.fromkeys(COLUMNS, "string"), **dict.fromkeys(WHOLE, "Int64"), **dict.fromkeys(FLAGS, "boolean")}
    floats = ("recompute", "max_abs_error", "max_rel_error", "macs_per_packet", "macs_per_slot", *SECONDS)
    return frame.astype({**dtypes, **dict.fromkeys(floats, "Float64")})


def csv_of(frame: pd.DataFrame) -> bytes:
    """Return a table as CSV."""
    return frame.to_csv(index=False, lineterminator="\n").encode()


Shown = Callable[[Iterator[Row], Sequence[Row], int], Iterator[Row]]
"""What passes new rows on and shows them: the new rows, those that are there, and how many there will be."""


@dataclass(frozen=True)
class Settings:
    """How rows are swept.

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


def survey(asked: Sequence[Request], out: Path, settings: Settings, shown: Shown) -> list[Row]:
    """Do the rows that are asked for and are not in the journal beside the table yet, and write the table.

    Args:
        asked: what is asked for, in the order of the table.
        out: the table, `.csv`.
        settings: how.
        shown: passes the new rows on.

    Raises:
        Interrupted: by Ctrl-C; the table has the rows that are done.
        NotWritten: a disk is full; all finished rows are in the journal.
        InputError: another sweep for the same table, no such scheduler.
        ToolMissing: a target can't be served here.
    """
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
