"""The journal of a sweep: an append-only file beside the table, to which each row is written as soon as it is done.

A row is one line of JSON, written with one call and synced. Whatever ends the program, all rows before are there; a
line that was cut off is dropped when the file is opened again, and its row is done again.
"""

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hexconv.apart import Limits
from hexconv.errors import InputError, NotWritten
from hexconv.sweep.request import Row

LIMITED = ("overran", "out_of_memory")
"""Statuses that depend on the limits of the row: under other limits the row is done again."""


class Journal:
    """The rows that are there.

    Attributes:
        path: the file.
        rows: the rows by key.
    """

    def __init__(self, path: Path, file: int, limits: Limits) -> None:
        self.path, self._file, self._limits = path, file, asdict(limits)
        self.rows: dict[str, Row] = {}
        self.read()

    @classmethod
    @contextmanager
    def opened(cls, path: Path, limits: Limits, is_fresh: bool = False) -> Iterator["Journal"]:
        """Open or make a journal, for this process alone.

        Args:
            path: the file; its folder is made where it is missing.
            limits: the limits of the rows to come.
            is_fresh: whether to begin again without the rows that are there.

        Raises:
            NotWritten: it can't be opened.
            InputError: another sweep is writing it.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise NotWritten(f"{path}: {error.strerror}; give a path that can be written") from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise NotWritten(f"{path}: no regular file, which a journal has to be; give another path")
            _lock(file, path)
            if is_fresh:
                os.ftruncate(file, 0)
            yield cls(path, file, limits)
        finally:
            os.close(file)

    def add(self, key: str, row: Row) -> None:
        """Write a row to disk.

        Raises:
            NotWritten: there is no room on the disk; the file is as it was before.
        """
        line = json.dumps({"key": key, "limits": self._limits, "row": row}).encode() + b"\n"
        before = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            kept = f"its {len(self.rows)} rows are kept; make room, and the same command goes on from there"
            raise NotWritten(f"{self.path}: {error.strerror}; {kept}") from None
        self.rows[key] = row

    def read(self) -> None:
        """Read the rows from the file, which after an interruption alone has them all."""
        self.rows = dict(self._read())

    def _read(self) -> Iterator[tuple[str, Row]]:
        """Return the rows of the file, without rows that other limits ended; a line that was cut off is dropped."""
        with os.fdopen(os.dup(self._file), "rb") as file:
            file.seek(0)
            content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)
        for line in content[:whole].splitlines():
            record = _record(line)
            if record and (record["row"].get("status") not in LIMITED or record["limits"] == self._limits):
                yield record["key"], record["row"]


def _record(line: bytes) -> dict[str, Any] | None:
    """Parse one line; None where it is no row, as after a loss of power."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # the latter of lists that nest as deep as the line is long
        return None
    whole = isinstance(record, dict) and record.keys() >= {"key", "limits", "row"} and isinstance(record["row"], dict)
    return record if whole else None


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(str(path), "a sweep that is still running", "one sweep at a time for one table") from None
