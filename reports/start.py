"""`python -m reports.start`: measures how long a user waits for the `--help` of the program and of each command.

It prints medians of several runs of the whole process on this machine: the seconds that pass, and the seconds that the
processor works. Other processes add to the first figure; the second is what the command itself takes.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter

PROGRAM = (sys.executable, "-m", "hexconv")
RUNS = 5


def waits(runs: int = RUNS) -> Iterator[tuple[str, float, float]]:
    """Yield each command line with its median seconds: those that pass, and those that the processor works."""
    for arguments in (["--help"], *([name, "--help"] for name in _commands())):
        passed, worked = zip(*(_seconds(arguments) for _ in range(runs)), strict=True)
        yield " ".join(["hexconv", *arguments]), median(passed), median(worked)


def _commands() -> list[str]:
    """Return the commands that the program's own help names."""
    said = subprocess.run([*PROGRAM, "--help"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^│ ([a-z]+) ", said, re.MULTILINE)


def _seconds(arguments: list[str]) -> tuple[float, float]:
    start, before = perf_counter(), os.times()
    subprocess.run([*PROGRAM, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    return perf_counter() - start, worked


if __name__ == "__main__":
    for line, passed, worked in waits():
        print(f"{passed:.2f} s, of which the processor works {worked:.2f}: {line}")
