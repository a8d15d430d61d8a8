"""Standard output and standard error, whatever is at their other end.

A pipe that its reader has closed takes no more, which says nothing of what was checked: the rest goes nowhere, and the
exit code is that of the check. A full disk is different: what was asked for isn't there, which is told, with 2.
What an encoding doesn't have is escaped.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from hexconv.errors import NotWritten


class Standard:
    """One of the two streams.

    Attributes:
        stream: what is written to.
        is_told: whether a failed write is an error: of standard error nobody could be told.
    """

    def __init__(self, stream: TextIO, is_told: bool) -> None:
        self.stream, self.is_told, self._is_open = stream, is_told, True

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's own."""
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write, or do nothing where nothing is taken any more.

        Raises:
            NotWritten: the disk is full, or the like.
        """
        with self._watched():
            if self._is_open:
                self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand everything on.

        Raises:
            NotWritten: as `write`.
        """
        with self._watched():
            if self._is_open:
                self.stream.flush()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self._close()
        except OSError as error:
            self._close()
            if self.is_told:
                what = f"standard output: {error.strerror}; write to a place that has room"
                raise NotWritten(what) from None

    def _close(self) -> None:
        """Let what is left, and what Python still writes when it ends, go nowhere."""
        self._is_open = False
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Both streams, watched; whoever calls writes to `sys.stdout` and `sys.stderr` as ever."""
    out, err = sys.stdout, sys.stderr
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if out is not None:
            sys.stdout = cast(TextIO, Standard(out, is_told=True))
        if err is not None:
            sys.stderr = cast(TextIO, Standard(err, is_told=False))
        yield
    finally:
        if sys.stderr is not None:
            sys.stderr.flush()
        sys.stdout, sys.stderr = out, err
