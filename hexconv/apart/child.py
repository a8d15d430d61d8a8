"""The child process of `hexconv.apart.process`: it reads tasks, one a line, does them, and writes one answer a line."""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hexconv.apart.process import NEW_OBJECTS
from hexconv.homes import defer_unused

PR_SET_PDEATHSIG = 1
FIRST_TO_GO = 1000
"""The largest `oom_score_adj`: a system short of memory ends this process before any other."""

Function = Callable[[dict[str, Any]], dict[str, Any]]


def main(job: str, parent: int) -> None:
    """Do tasks until there is nothing more to read, or until the parent is gone.

    Args:
        job: the function that does a task, as `module:function`.
        parent: the id of the process that started this one.
    """
    _end_with(parent)
    gc.set_threshold(NEW_OBJECTS)
    defer_unused()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # standard output carries answers alone: what a library prints goes to standard error
    module, _, name = job.partition(":")
    function = getattr(importlib.import_module(module), name)
    _answer(answers, "ready")
    for line in sys.stdin:
        _answer(answers, json.dumps(_done(function, json.loads(line))))


def _done(function: Function, task: dict[str, Any]) -> dict[str, Any]:
    """Do one task; returns how it ended, with the fields of `hexconv.apart.process.Ending`."""
    try:
        return {"how": "answered", "answer": function(task)}
    except MemoryError:
        return {"how": "out_of_memory", "reason": "it asked for more memory than there is"}
    except Exception as error:  # an error of any kind fails this task alone, not the process
        if "bad_alloc" in str(error):
            return {"how": "out_of_memory", "reason": "TVM asked for more memory than there is"}
        first_line = next(iter(str(error).splitlines()), "")[:200]
        return {"how": "failed", "reason": f"{type(error).__name__}: {first_line}"}


def _answer(answers: Any, line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, even in the middle of a loop of compiled code."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_GO))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
