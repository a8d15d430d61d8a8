"""An executor on other machines: workers of dask.distributed, each of which does jobs in separate processes."""

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from hexconv.apart.parallel import close_all
from hexconv.errors import InputError, ToolMissing

CONNECT_SECONDS = 5
INSTALL = 'pip install "hexconv[cluster]"'


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
