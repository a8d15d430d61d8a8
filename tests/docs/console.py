"""Pages whose commands are run: every shown command, and its output compared.

A ```console block holds `$ command` lines, each with its output beneath; a line of dots stands for any number of lines,
and dots within a line for anything there. A ```toml block whose first line is `# NAME.toml` is a file, as is a ```text
block with `# NAME.txt`. Commands are `hexconv ...`, run in this process unless told how, `make ...`, and `echo $?`.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT

from hexconv.cli.app import exit_code

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
ANYTHING = "..."
PROGRESS = re.compile(r"^hexconv: .*, \d+ s\n", re.M)
"""A line of progress, which comes every ten seconds: a slow machine has more of them."""


@dataclass(frozen=True)
class Step:
    """A file to write, or a command with what it shows."""

    file: str
    text: str
    command: str = ""


def steps(page: str) -> Iterator[Step]:
    """Files and commands of a page, in order."""
    for kind, body in FENCE.findall(page):
        if kind in ("toml", "text") and (name := re.match(r"# ([\w-]+\.(?:toml|txt))\n", body)):
            yield Step(name[1], body)
        elif kind == "console":
            for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M):
                yield Step("", output, command)


def in_this_process(arguments: list[str]) -> tuple[int, str]:
    """Call hexconv; returns its exit code and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = exit_code(arguments)
    return status, PROGRESS.sub("", out.getvalue())


def play(
    page: str, folder: Path, hexconv: Callable[[list[str]], tuple[int, str]] = in_this_process
) -> Iterator[tuple[str, str, str]]:
    """Do what a page says; yields each command, what the page shows and what there was."""
    status = 0
    with inside(folder):
        for step in steps(page):
            if step.file:
                Path(step.file).write_text(step.text)
                continue
            program, *arguments = shlex.split(step.command, comments=True)
            if (program, arguments) == ("echo", ["$?"]):
                yield step.command, step.text, f"{status}\n"
                continue
            if program == "make":
                made = subprocess.run([program, *arguments], stdout=PIPE, stderr=STDOUT, text=True, check=False)
                status = made.returncode
                yield step.command, step.text, made.stdout
                continue
            assert program == "hexconv", step.command
            status, got = hexconv(arguments)
            yield step.command, step.text, got


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in another folder; Python 3.10 has no contextlib.chdir."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def matches(shown: str, got: str) -> bool:
    """Whether an output is what a page shows of it; blanks at the ends of lines don't count."""
    pattern = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == ANYTHING:
            pattern.append(r"(?:.*\n)*")
        else:
            pattern.append(".*".join(map(re.escape, line.rstrip().split(ANYTHING))) + r"[^\S\n]*\n")
    text = got if got.endswith("\n") or not got else f"{got}\n"
    return re.fullmatch("".join(pattern) if shown.strip() else "", text) is not None
