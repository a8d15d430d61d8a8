"""Write files that are there whole or not at all."""

import contextlib
import os
from pathlib import Path

from hexconv.errors import NotWritten


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it: a reader finds either the old or the new file.

    Raises:
        NotWritten: the file can't be written; the old one is as it was.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        reason = f"{error.strerror}; all rows are in the journal beside it: make room, and give the same command"
        raise NotWritten(f"{path}: {reason}") from None
