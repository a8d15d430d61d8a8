"""Watches standard output and standard error for closed pipes, full disks and characters that can't be encoded.

If the reader of a pipe has closed it, the rest of the output is dropped, and the exit code is still that of the check.
If a disk is full, the result is missing: that is an error, printed in a line, and the exit code is 2. Characters that
the encoding doesn't have are escaped, and so is what a terminal would obey, since names come from files. Only what rich
writes has control characters, and it is given no text that has some.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from hexconv.errors import NotWritten, visible


class Standard:
    """Standard output or standard error.

    Attributes:
        stream: the stream that is written to.
        is_told: whether a failed write is an error; for standard error it isn't, since the line could not be printed.
    """

    def __init__(self, stream: TextIO, is_told: bool) -> None:
        self.stream, self.is_told, self._is_open = stream, is_told, True

    def __getattr__(self, name: str) -> Any:
        """Look up every other attribute in the stream."""
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write what can be printed, or do nothing if the reader has closed the pipe.

        Raises:
            NotWritten: the disk is full, or the write fails in a similar way.
        """
        self.write_as_it_is(visible(text, kept="\n\t"))
        return len(text)

    def write_as_it_is(self, text: str) -> None:
        """Write control characters too; the rest is as in `write`."""
        with self._watched():
            if self._is_open:
                self.stream.write(text)

    @property
    def rich_proxied_file(self) -> "Styled":
        """The stream that every console of rich writes to in place of this one; rich looks for this name."""
        return Styled(self)

    def flush(self) -> None:
        """Write out everything that is buffered.

        Raises:
            NotWritten: the disk is full, or the write fails in a similar way.
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
        """Drop the rest of the output, and what Python still writes when it ends."""
        self._is_open = False
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


class Styled:
    """A standard stream for text that brings the control characters of its colours and bars."""

    def __init__(self, standard: Standard) -> None:
        self._standard = standard

    def __getattr__(self, name: str) -> Any:
        """Look up every other attribute in the stream."""
        return getattr(self._standard, name)

    def write(self, text: str) -> int:
        """Write as `Standard.write_as_it_is` does."""
        self._standard.write_as_it_is(text)
        return len(text)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Watch both streams for a while; callers write to `sys.stdout` and `sys.stderr` as usual."""
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
