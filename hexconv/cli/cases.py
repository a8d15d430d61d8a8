"""Case files on a command line, and what every command does with them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from hexconv.errors import InputError
from hexconv.spec import Case, Target


def load_cases(paths: Sequence[Path], target: Target | None = None) -> list[Case]:
    """Read all case files before anything is done with one.

    Args:
        paths: of the files.
        target: where files that state no plan get the fastest kernel that serves them.

    Raises:
        InputError: no file was named, one can't be used, or two have the same name.
    """
    if not paths:
        raise InputError("CASE", "nothing", "one or more case files, such as schedules/baseline-1x1.toml")
    cases = [Case.load(path, target) for path in paths]
    names = [case.name for case in cases]
    for case in cases:
        if names.count(case.name) > 1:
            raise InputError("CASE", f"two files named {case.name}.toml", "files of different names")
    return cases


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
