"""A TOML file as a table, before anything is known about its keys."""

import stat
import sys
from pathlib import Path
from typing import Any

from hexconv.errors import InputError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
LARGEST_FILE_BYTES = 1 << 20
MOST_DOTS = 1000
"""The most dots in a line: the time to parse a dotted key grows with the square of its length."""
DEEPEST_NESTING = 16
"""The deepest nesting of tables and lists, since libraries recurse over them. No file of hexconv needs more than 5."""


def read_text(path: Path) -> str:
    """Read a file's text.

    Raises:
        InputError: the file is missing, no regular file, too large, unreadable or not UTF-8.
    """
    try:
        check_regular(path)
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise InputError(str(path), f"{path.stat().st_size} bytes", f"a case file of at most {LARGEST_FILE_BYTES}")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError.because(f"{path}: no such file", f"{_beside(path)}name a TOML case file that exists") from None
    except OSError as error:
        raise InputError.because(
            f"{path}: {error.strerror or 'not readable'}", "name a TOML case file that can be read"
        ) from None
    except (UnicodeDecodeError, ValueError):
        raise InputError.because(f"{path} has bytes that are not UTF-8", "save it as TOML in UTF-8") from None


def check_regular(path: Path) -> None:
    """Refuse a path that exists and is no regular file: reading a pipe or a device might never end.

    Raises:
        InputError: the path is no regular file.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in KINDS if test(mode)), "something else")
        raise InputError(str(path), kind, "a regular file")


def _beside(path: Path) -> str:
    """Name the TOML file of the same folder with the nearest name, as a question; empty where there is none."""
    beside = (str(other) for other in path.parent.glob("*.toml")) if path.parent.is_dir() else ()
    return did_you_mean(str(path), beside)


def parse_table(text: str, where: str) -> dict[str, Any]:
    """Parse TOML text to a table; `where` names its source in errors.

    Raises:
        InputError: the text is no TOML, or its keys are too long or nested deeper than `DEEPEST_NESTING`.
    """
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise InputError(where, f"a line of more than {MOST_DOTS} dots", "the keys of a case file")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # A number of thousands of digits raises a plain ValueError.
        raise InputError(where, f"text that is not TOML ({error})", "a TOML case file") from None
    if _is_deeper(table, DEEPEST_NESTING):
        raise InputError(where, f"tables more than {DEEPEST_NESTING} deep", "the tables of a case file")
    return table


def _is_deeper(table: dict[str, Any], levels: int) -> bool:
    """Whether tables and lists nest deeper; without recursion, since dotted keys nest as deep as a file is long."""
    level: list[Any] = [table]
    for _ in range(levels):
        inside = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in inside for value in values if isinstance(value, (dict, list))]
        if not level:
            return False
    return True
