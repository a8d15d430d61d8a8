"""Gives a command's answer: JSON on standard output, or a file. What only calculates waits for no TVM."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hexconv.written import write_file


def print_json(value: Any) -> None:
    """Write JSON, in which dataclasses are objects, and nothing else to standard output."""
    print(json.dumps(value, indent=2, default=asdict))


def write_text(path: Path, text: str) -> None:
    """Write a file whole; its folder is made if need be.

    Raises:
        NotWritten: the file can't be written to this path.
    """
    write_file(path, utf8(text))


def utf8(text: str) -> bytes:
    """Encode text that may hold what a file name has and UTF-8 hasn't."""
    return text.encode("utf-8", "backslashreplace")
