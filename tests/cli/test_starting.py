"""Somebody who looks sees at once that a command has begun, before TVM is there."""

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deep import one_in


@pytest.mark.parametrize(
    "command", one_in(7, ["best", "build -o made", "cache", "report", "run", "tir", "layout compare"])
)
def test_a_terminal_shows_that_a_command_starts(command: str, tmp_path: Path) -> None:
    ours, terminal = pty.openpty()
    program = [sys.executable, "-m", "hexconv", *command.split(), "missing.toml"]
    done = subprocess.run(program, stderr=terminal, cwd=tmp_path, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # a terminal that nobody writes to any more
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    assert done.returncode == 2
    assert b"starting" in shown
    assert shown.index(b"starting") < shown.index(b"no such file")
