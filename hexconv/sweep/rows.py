"""The rows of a sweep: each row that its journal doesn't have is computed, and journaled as soon as it ends."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

from hexconv.apart import Ending, Limits, do_all
from hexconv.errors import ToolMissing
from hexconv.sweep.journal import Journal
from hexconv.sweep.provenance import provenance
from hexconv.sweep.request import Request, Row

MEASURE = "hexconv.sweep.measure:measure"
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
