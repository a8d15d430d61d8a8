"""Case files on a command line, and what every command does with them."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from hexconv.errors import InputError, one_line
from hexconv.spec import Case, KernelChoice, Target
from hexconv.spec.kernel import kernel_words


def load_cases(paths: Sequence[Path], target: Target) -> list[Case]:
    """Read all case files before anything is done with one.

    Args:
        paths: of the files.
        target: where they are to run, which says what kernels they get.

    Raises:
        InputError: no file was named, one can't be used, or two have the same name.
    """
    if not paths:
        raise InputError("CASE", "nothing", "one or more case files, such as schedules/baseline-1x1.toml")
    cases = [Case.load(path, target, os.cpu_count() or 1) for path in paths]
    names = [case.name for case in cases]
    for case in cases:
        if names.count(case.name) > 1:
            raise InputError("CASE", f"two files named {case.name}.toml", "files of different names")
    return cases


def say_fallbacks(cases: Iterable[Case]) -> None:
    """Tell, in a line each, which cases get another kernel than they ask for."""
    for case in cases:
        say_fallback(case.name, case.kernels)


def say_fallback(name: str, kernels: Sequence[KernelChoice]) -> None:
    """Tell in a line if a chain gets another kernel than was asked for."""
    if any(choice.is_fallback for choice in kernels):
        print(f"hexconv: {one_line(name)}: kernel {kernel_words(kernels)}", file=sys.stderr)


def print_json(value: Any) -> None:
    """Write JSON and nothing else to standard output."""
    print(json.dumps(value, indent=2, default=_plain))


def _plain(value: object) -> object:
    """Result dataclasses as dictionaries."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is no part of any result")


def write_text(path: Path, text: str) -> None:
    """Write a file, its folder made if need be.

    Raises:
        InputError: it can't be written there.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, its folder made if need be.

    Raises:
        InputError: it can't be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise InputError(str(path), error.strerror or "an unwritable place", "a path that can be written") from None
