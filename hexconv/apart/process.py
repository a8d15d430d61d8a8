"""A separate process that does one job after another, so that a job which fails harms no other job.

A job may crash the process, never return, or use up the machine's memory. The process is watched from here, ended when
it exceeds a limit, and replaced. If the process is killed from outside (SIGKILL: by an operator, or by a system short
of memory), that says nothing about its job, and the next process does the job again.

It uses plain pipes and JSON, not the process pool of a library: the pools of multiprocessing and pebble give up as a
whole when an idle process is killed, can't run inside of a dask worker (whose process may have no children of that
kind), and don't know how much memory a job takes.
"""

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from hexconv.errors import RunFailed
from hexconv.written import temporary_folder

LOOK_SECONDS = 0.05
START_SECONDS = 300.0
LAST_SECONDS = 10.0
TRIES = 3
JOBS_PER_PROCESS = 200
"""After so many jobs a fresh process takes over: every compiled case leaves its code in its process."""
NEW_OBJECTS = 100_000
"""How many objects are made before Python looks for circles of them; its own default makes imports a fifth longer."""

ONE_BLAS_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""Threads of OpenBLAS spin while they wait for each other: a network's products take tens of times as much CPU time."""
ONE_THREAD = dict([ONE_BLAS_THREAD, *((f"{name}_NUM_THREADS", "1") for name in ("OMP", "MKL", "TVM"))])
"""Processes run one on each core already; more threads in each would only compete for the cores."""
PASSING = ("PYTEST_CURRENT_TEST",)
"""Variables of the environment that say what is going on, and that no job reads."""
PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from hexconv.apart.child import main
main(sys.argv[2], int(sys.argv[3]))
"""

Task = dict[str, Any]
How = Literal["answered", "failed", "crashed", "overran", "out_of_memory", "killed", "stopped"]


@dataclass(frozen=True)
class Limits:
    """What one job may take.

    Attributes:
        seconds: the most wall time.
        memory_bytes: the most resident memory of its process.
    """

    seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Ending:
    """How a job ended.

    Attributes:
        how: `answered`; `failed`: it raised; `crashed`: its process ended; `overran`: it exceeded its time;
            `out_of_memory`; `killed`: from outside; `stopped`: nobody waits for it any more.
        answer: what the job returned.
        reason: why there is no answer, in one line.
        seconds: the wall time that the job took.
    """

    how: How
    answer: Task = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0


class Apart:
    """A separate process that does one job after another, for one thread at a time.

    Args (of the constructor):
        job: the function to call, `module:function`; it takes and returns a dictionary that JSON can hold.
        limits: the limits of every single job.
    """

    def __init__(self, job: str, limits: Limits) -> None:
        self.job, self.limits = job, limits
        self._process: _Process | None = None
        self._closed = False
        self._busy = Lock()

    def do(self, task: Task) -> Ending:
        """Do the job for one task.

        Raises:
            RunFailed: no process can be started; the message has the last line that it printed.
        """
        for _ in range(TRIES):
            started = time.monotonic()
            with self._busy:
                ending = self._attempt(task)
            if ending.how != "killed":
                return Ending(ending.how, ending.answer, ending.reason, time.monotonic() - started)
        return Ending("crashed", reason=f"its process was killed {TRIES} times, as a system short of memory does")

    def close(self) -> None:
        """End the process, even in the middle of a job; any thread may call this."""
        self._closed = True
        if process := self._process:
            process.kill()
        with self._busy:
            self._replace()

    def release(self) -> None:
        """Leave an idle process to the next `Apart` of this job, as a fresh one takes seconds; end one that is busy."""
        if not self._busy.acquire(blocking=False):
            self.close()
            return
        self._closed = True
        process, self._process = self._process, None
        self._busy.release()
        if process:
            process.rest()

    def _attempt(self, task: Task) -> Ending:
        if self._process is None or self._process.jobs >= JOBS_PER_PROCESS:
            self._replace()
            self._process = _Process.resting(self.job) or _Process.started(self.job)
        if self._closed:
            return Ending("stopped")
        ending = self._process.do(task, self.limits)
        if ending.how not in ("answered", "failed"):
            self._replace()
        return Ending("stopped") if self._closed else ending

    def _replace(self) -> None:
        process, self._process = self._process, None
        if process:
            process.end()


class _Process:
    """The child process of `Apart`, as the parent handles it."""

    def __init__(self, popen: subprocess.Popen[bytes], said: Any, folder: str, surroundings: str) -> None:
        self.popen, self.said, self.folder, self.surroundings, self.jobs = popen, said, folder, surroundings, 0
        atexit.register(self.end)
        assert popen.stdin
        assert popen.stdout
        self.stdin, self.stdout = popen.stdin, popen.stdout

    @classmethod
    def started(cls, job: str) -> "_Process":
        said = tempfile.TemporaryFile()  # noqa: SIM115, the file is open as long as the process runs
        folder = tempfile.mkdtemp(dir=temporary_folder())
        try:
            popen = _starter(os.getpid()).submit(_spawned, job, said, folder).result()
        except OSError as error:
            said.close()
            raise RunFailed(f"a process for {job} can't be started: {error.strerror}") from None
        process = cls(popen, said, folder, _surroundings(job))
        if process._answers(START_SECONDS) and process.stdout.readline() == b"ready\n":
            return process
        status = process._status()
        if status == -signal.SIGKILL:
            return process  # the next job finds this process dead, and starts another
        words = process._last_words(0)
        process.end()
        raise RunFailed(f"a process for {job} can't be started (status {status}): {words}")

    @classmethod
    def resting(cls, job: str) -> "_Process | None":
        """Return an idle process that was started for this job, in surroundings that are still the same, if any is."""
        while _resting.get(surroundings := _surroundings(job)):
            process = _resting[surroundings].pop()
            if process.popen.poll() is None and Path(process.folder).exists():
                return process
            process.end()
        return None

    def rest(self) -> None:
        """Wait for the next `Apart` of the same job, or for the end of this program."""
        _resting.setdefault(self.surroundings, []).append(self)

    def do(self, task: Task, limits: Limits) -> Ending:
        """Do a job; returns its answer, or how it failed."""
        self.jobs += 1
        heard, until = self._said_bytes(), time.monotonic() + limits.seconds
        try:
            self.stdin.write(json.dumps(task).encode() + b"\n")
            self.stdin.flush()
            while not self._answers(LOOK_SECONDS):
                if time.monotonic() > until:
                    return Ending("overran", reason=f"it took longer than {limits.seconds:g} s")
                if self._memory_bytes() > limits.memory_bytes:
                    return Ending("out_of_memory", reason=f"it took more than {limits.memory_bytes} bytes of memory")
            line = self.stdout.readline()
        except (OSError, ValueError):  # a closed pipe: the process is gone
            line = b""
        return Ending(**json.loads(line)) if line.endswith(b"\n") else self._death(heard)

    def kill(self) -> None:
        """End the process and all processes of its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def end(self) -> None:
        """End the process, close its pipes and its file, and remove its temporary files."""
        self.kill()
        self.popen.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.end)
        for pipe in (self.stdin, self.stdout, self.said):
            with contextlib.suppress(OSError):
                pipe.close()

    def _death(self, heard: int) -> Ending:
        """Say how a process ended that gave no answer."""
        status = self._status()
        if status == -signal.SIGKILL:
            return Ending("killed")
        if status != -signal.SIGABRT:
            name = signal.Signals(-status).name if status < 0 else f"exit code {status}"
            return Ending("crashed", reason=f"its process ended with {name}")
        words = self._last_words(heard)
        how = "out_of_memory" if "bad_alloc" in words or "out of memory" in words else "crashed"
        return Ending(how, reason=f"its process ended with SIGABRT: {words}")

    def _status(self) -> int:
        """Return the exit status of a process that has closed its output; if it still runs, it is ended first."""
        try:
            return self.popen.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.wait()

    def _answers(self, seconds: float) -> bool:
        """Wait for output; returns whether there is something to read, or the output is closed."""
        return bool(select.select([self.stdout], [], [], seconds)[0])

    def _memory_bytes(self) -> int:
        """Return the resident memory of the process in bytes, if the system tells it."""
        try:
            resident_pages = int(Path(f"/proc/{self.popen.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return resident_pages * os.sysconf("SC_PAGE_SIZE")

    def _said_bytes(self) -> int:
        return os.fstat(self.said.fileno()).st_size

    def _last_words(self, heard: int) -> str:
        """Return the last line that the process has printed to standard error after the first `heard` bytes."""
        start = max(heard, self._said_bytes() - 2000)
        words = os.pread(self.said.fileno(), 2000, start).decode(errors="replace").split("\n")
        return next((line.strip()[:200] for line in reversed(words) if line.strip()), "it said nothing")


_resting: dict[str, list[_Process]] = {}
"""Idle processes by what they were started in."""


def _surroundings(job: str) -> str:
    """Say what a process is started in: it keeps its folder, the environment and the path of modules."""
    environment = {name: value for name, value in os.environ.items() if name not in PASSING}
    return json.dumps([job, str(Path.cwd()), sys.path, environment])


@cache
def _starter(_process: int) -> ThreadPoolExecutor:
    """Return the thread of this process that starts others: Linux ends them with the thread that started them."""
    return ThreadPoolExecutor(1)


def _spawned(job: str, said: Any, folder: str) -> subprocess.Popen[bytes]:
    """Start a new process, which waits for tasks; its standard error goes to `said`, its temporary files to `folder`.

    It may be killed at any moment, so that it can't remove these files itself.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM, json.dumps(sys.path), job, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        env={**os.environ, **ONE_THREAD, "TMPDIR": folder},
        start_new_session=True,  # Ctrl-C reaches the parent alone; what the child starts ends with it
    )
