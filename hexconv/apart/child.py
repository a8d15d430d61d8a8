"""The other end of `hexconv.apart.process`: reads tasks, a line each, does them, and writes an answer a line."""

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
FIRST_TO_GO = 1000
"""Of `oom_score_adj`: a system short of memory ends this process before any other."""

Function = Callable[[dict[str, Any]], dict[str, Any]]


def main(job: str, parent: int) -> None:
    """Serve until there is nothing more to read, or the parent is gone.

    Args:
        job: `module:function`.
        parent: the process that has started this one.
    """
    _end_with(parent)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    module, _, name = job.partition(":")
    function = getattr(importlib.import_module(module), name)
    _answer(answers, "ready")
    for line in sys.stdin:
        _answer(answers, json.dumps(_done(function, json.loads(line))))


def _done(function: Function, task: dict[str, Any]) -> dict[str, Any]:
    """One job's ending, as `hexconv.apart.process.Ending` has it."""
    try:
        return {"how": "answered", "answer": function(task)}
    except MemoryError:
        return {"how": "out_of_memory", "reason": "it asked for more memory than there is"}
    except Exception as error:  # whatever TVM throws at this case is that case's
        if "bad_alloc" in str(error):
            return {"how": "out_of_memory", "reason": "TVM asked for more memory than there is"}
        first_line = next(iter(str(error).splitlines()), "")[:200]
        return {"how": "failed", "reason": f"{type(error).__name__}: {first_line}"}


def _answer(answers: Any, line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


def _end_with(parent: int) -> None:
    """Be gone when the parent is, even in the middle of a loop of compiled code."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(FIRST_TO_GO))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
