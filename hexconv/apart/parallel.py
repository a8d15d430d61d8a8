"""Do jobs in parallel, each in a separate process: on this machine's cores, or by workers of dask.distributed."""

import asyncio
import contextlib
import importlib
import logging
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread, local
from typing import Any

from hexconv.apart.process import LOOK_SECONDS, TRIES, Apart, Ending, Limits, Task
from hexconv.errors import HexconvError, InputError, RunFailed, ToolMissing

CONNECT_SECONDS = 5
INSTALL = 'pip install "hexconv[cluster]"'

_here = local()
_all: list[Apart] = []


def do_apart(job: str, limits: Limits, task: Task) -> Ending:
    """Do a job in the separate process that belongs to this thread; every executor runs this function.

    Raises:
        RunFailed: no process can be started.
    """
    mine: Apart | None = getattr(_here, "apart", None)
    if mine is None or mine not in _all or (mine.job, mine.limits) != (job, limits):
        if mine in _all:
            mine.close()
        mine = _here.apart = Apart(job, limits)
        _all.append(mine)
    return mine.do(task)


def close_all() -> None:
    """End the processes of all threads, even in the middle of a job."""
    while _all:
        _all.pop().close()


def _release_all() -> None:
    while _all:
        _all.pop().release()


@contextmanager
def cores(workers: int) -> Iterator[Executor]:
    """Make an executor for this machine: each of its threads waits for a process of its own."""
    executor = ThreadPoolExecutor(workers)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        ending = Thread(target=executor.shutdown)
        ending.start()
        while ending.is_alive():  # a thread may be about to start a process: the next round ends that one
            _release_all()
            ending.join(LOOK_SECONDS)
        _release_all()


def do_all(job: str, limits: Limits, tasks: Sequence[Task], executor: Executor) -> Iterator[tuple[int, Ending]]:
    """Do the job for every task; yields each task's index and how it ended, in the order in which tasks end.

    If the executor itself gives no answer, since a machine of a cluster is gone, the task is handed in again.

    Raises:
        RunFailed: the executor gave no answer for one task several times.
    """
    ended: SimpleQueue[tuple[int, Future[Ending]]] = SimpleQueue()
    tries = [0] * len(tasks)

    def hand_in(place: int) -> None:
        tries[place] += 1
        future = executor.submit(do_apart, job, limits, tasks[place])
        future.add_done_callback(lambda done: ended.put((place, done)))

    for place in range(len(tasks)):
        hand_in(place)
    left = len(tasks)
    while left:
        place, future = ended.get()
        if (ending := _ending(future, tries[place])) is None:
            hand_in(place)
            continue
        left -= 1
        yield place, ending


def _ending(future: Future[Ending], tries: int) -> Ending | None:
    """How a future's task ended; None if the task has to be handed in again."""
    try:
        return future.result()
    except HexconvError:
        raise
    except (Exception, CancelledError) as error:  # a cluster's machines fail in many ways
        if tries < TRIES:
            return None
        raise RunFailed(f"the cluster gave no answer {tries} times: {type(error).__name__}: {error}") from None


@contextmanager
def cluster(address: str, code: Callable[[], str]) -> Iterator[Executor]:
    """Make an executor for the workers of a scheduler that runs already.

    Args:
        address: the address of the scheduler, `tcp://host:8786`.
        code: a function that says which code a machine has; its answer has to be the same on all machines.

    Raises:
        ToolMissing: dask.distributed is not installed.
        InputError: no scheduler answers, it has no workers, or a worker has other code than this machine.
    """
    client = _client(address)
    try:
        _check(client, address, code)
        yield client.get_executor(pure=False)
    finally:
        with contextlib.suppress(Exception):  # closing fails if the scheduler is gone already
            client.run(close_all)
        client.close(timeout=CONNECT_SECONDS)


def _client(address: str) -> Any:
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise ToolMissing(f"--scheduler needs dask.distributed, which is not installed: {INSTALL}") from None
    # The sweep itself reports a lost worker. The client's logger has a level of its own.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # A client that can't connect leaves threads behind, whose errors are printed at the end: try the address first.
    try:
        asyncio.run(_knock(distributed, address))
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except Exception as error:  # addresses are of many kinds, and their libraries raise errors of any class
        given = f"no scheduler that answers there ({error})"
        raise InputError("--scheduler", address, f"the address of a running one, tcp://host:8786; {given}") from None


async def _knock(distributed: Any, address: str) -> None:
    """Connect to a scheduler as a client does, and close the connection."""
    settings = distributed.Security().get_connection_args("client")
    connection = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **settings)
    await connection.close()


def _check(client: Any, address: str, code: Callable[[], str]) -> None:
    """Refuse a cluster without workers, or with a worker whose code is not this machine's: its rows would differ."""
    answers: dict[str, str] = client.run(code)
    if not answers:
        raise InputError.because(f"--scheduler: {address} has no workers", f"start some: dask worker {address}")
    others = [worker for worker, answer in answers.items() if answer != code()]
    if others:
        raise InputError("--scheduler", f"other code on {', '.join(others)}", "the same hexconv and TVM everywhere")
