"""A cluster: a real scheduler and two workers in processes of their own, one of which is killed in the middle."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.deep import DEEP
from tests.sweep.sweeping import ROOT, Sweeping, alive, descendants, grid_text, kill, wait_until

ROWS = 60


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def started(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:], "--no-dashboard"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
def scheduler() -> Iterator[str]:
    port = free_port()
    process = started("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))
    try:
        wait_until(lambda: answers(port))
        yield f"tcp://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def working(scheduler: str, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two workers, each with the nanny that dask gives it by default and a thread."""
    options = ("--nthreads", "1", "--local-directory", str(tmp_path / "dask"))
    processes = [started("dask_worker", scheduler, *options) for _ in range(2)]
    try:
        wait_until(lambda: all(descendants(process.pid) for process in processes))
        yield processes
    finally:
        ours = [pid for process in processes for pid in (*descendants(process.pid), process.pid)]
        for process in processes:
            process.kill()
            process.wait()
        for pid in ours:
            with contextlib.suppress(ProcessLookupError):
                kill(pid)


@DEEP
def test_a_cluster_does_the_same_rows_and_outlives_a_worker(scheduler: str, tmp_path: Path) -> None:
    here, there = (Sweeping(tmp_path / name) for name in ("here", "there"))
    for sweeping in (here, there):
        sweeping.folder.mkdir()
        (sweeping.folder / "grid.toml").write_text(grid_text(ROWS))
    assert here.ran()[0] == 0
    code, _, err = there.ran(scheduler=scheduler)
    assert (code, err.count("\n")) == (2, 1)
    assert "has no workers" in err
    with working(scheduler, tmp_path) as workers, there.started(scheduler=scheduler) as driver:
        wait_until(lambda: len(there.keys()) >= 5)
        assert len(descendants(driver.pid)) == 0  # the rows are done elsewhere
        doomed = [workers[0].pid, *descendants(workers[0].pid)]
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                kill(pid)
        out, err = driver.communicate(timeout=120)
    assert (driver.returncode, out, err) == (0, f'{{"holds": {ROWS}}}\n', "")
    assert set(there.keys().values()) == {1}
    assert not any(map(alive, doomed[1:]))
    pd.testing.assert_frame_equal(there.table(), here.table())


def test_no_scheduler_is_one_line(tmp_path: Path) -> None:
    sweeping = Sweeping(tmp_path)
    (tmp_path / "grid.toml").write_text(grid_text(2))
    code, out, err = sweeping.ran(scheduler=f"tcp://127.0.0.1:{free_port()}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no scheduler that answers" in err
