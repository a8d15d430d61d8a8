"""A sweep as a process, and what it leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[2]
SECONDS = ["seconds", "elapsed_seconds"]
"""The only columns that are other every time."""


def grid_text(rows: int, targets: str = '["cache"]') -> str:
    """A grid of so many small cases: rows of images, one after the other."""
    return (
        f"targets = {targets}\n[chain]\n[[chain.conv]]\nout_channels = 8\n"
        f"[grid]\ninput = {[[1, 1 + row, 1, 4] for row in range(rows)]}\n"
    )


@dataclass
class Sweeping:
    """A grid and its table; the sweep may be started again and again."""

    folder: Path
    job: str = "quick"
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str = ".csv"

    @property
    def out(self) -> Path:
        return self.folder / f"table{self.suffix}"

    @property
    def journal(self) -> Path:
        return self.folder / f"table{self.suffix}.journal"

    def started(self, **options: Any) -> subprocess.Popen[str]:
        arguments = {"grid": str(self.folder / "grid.toml"), "out": str(self.out), "job": self.job}
        command = [sys.executable, "-m", "tests.sweep.driver", json.dumps({**arguments, **self.options, **options})]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ran(self, **options: Any) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a sweep that nobody disturbs."""
        with self.started(**options) as process:
            out, err = process.communicate(timeout=300)
            return process.returncode, out, err

    def keys(self) -> Counter[str]:
        """The rows in the journal: those of whole lines."""
        if not self.journal.exists():
            return Counter()
        lines = self.journal.read_bytes().split(b"\n")[:-1]
        return Counter(json.loads(line)["key"] for line in lines)

    def table(self) -> pd.DataFrame:
        frame = pd.read_csv(self.out)
        return frame.drop(columns=SECONDS)


def wait_until(holds: Callable[[], Any], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == pid and words[0] != "Z":
            child = int(entry.parent.name)
            found += [child, *descendants(child)]
    return found


def kill(pid: int) -> None:
    """As nobody can refuse."""
    os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
