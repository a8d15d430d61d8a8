"""What a case can do to its process, for real. Runs in processes apart."""

import ctypes
import os
import signal
import sys
import time
from typing import Any

Task = dict[str, Any]


def crash() -> None:
    ctypes.string_at(0)


def abort() -> None:
    print("first words\nlast words\n", file=sys.stderr, flush=True)
    os.abort()


def hang() -> None:
    while True:
        pass


def hog() -> None:
    """Memory by and by, every page of it touched."""
    hoard = []
    while True:
        hoard.append(b"x" * (1 << 24))
        time.sleep(0.002)


def ask_for_too_much() -> None:
    bytearray(1 << 60)


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    sys.exit(3)


def fail() -> None:
    raise ValueError("line one\nline two")


FAULTS = {
    "crashes": crash,
    "aborts": abort,
    "hangs": hang,
    "hogs": hog,
    "asks for too much": ask_for_too_much,
    "is killed": be_killed,
    "leaves": leave,
    "raises": fail,
}


def judged(task: Task) -> Task:
    """A verdict by the name of the case."""
    FAULTS.get(task["name"], bool)()
    return {"outcome": "refused" if task["name"] == "refused" else "agrees", "reasons": []}


def done_here(task: Task) -> Task:
    """The process that does it, or the fault that the case's name stands for."""
    FAULTS.get(task["name"], bool)()
    return {"process": os.getpid()}


FIRST_BATCH = 101
"""Fault i belongs to cases of this many images, and i more."""


def quick(task: Task) -> Task:
    """A row that takes no time to speak of and hangs on its case alone."""
    time.sleep(0.01)
    return {"status": "holds", "reason": "", "peak_bytes": sum(map(ord, task["toml"]))}


def row(task: Task) -> Task:
    """A quick row, or the fault that its batch stands for."""
    batch = int(task["case"].split("h")[0].removeprefix("n"))
    faults = list(FAULTS.values())
    if FIRST_BATCH <= batch < FIRST_BATCH + len(faults):
        faults[batch - FIRST_BATCH]()
    return quick(task)
