"""The program: runs a command, prints errors as one line, watches streams and signals, exits with 0, 1 or 2.

If the reader of a pipe has closed it, the rest of the output is dropped, and the exit code is still that of the check.
If a disk is full, the result is missing: that is an error, printed in a line, and the exit code is 2. Characters that
the encoding doesn't have are escaped, and so is what a terminal would obey, since names come from files. Only what rich
writes has control characters, and it is given no text that has some.

A second signal ends the process at once, its temporary files removed and its processes killed. A signal is remembered,
since TVM turns what a signal raises inside of a callback into a RuntimeError.
"""

import atexit
import contextlib
import gc
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from types import FrameType
from typing import Any, TextIO, cast

from cyclopts import App, CycloptsError, Parameter

from hexconv.apart.process import NEW_OBJECTS, ONE_BLAS_THREAD
from hexconv.cli.commands import register
from hexconv.errors import HexconvError, HexconvWarning, NotWritten, fault, flowed, one_line, short_line, visible
from hexconv.homes import defer_unused

LEAST_WIDTH = 40
"""Of a terminal, in columns: in a narrower one prose is not broken between words."""


class Standard:
    """Standard output or standard error. On a terminal, prose is broken between words; elsewhere lines are whole.

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
        text = visible(text, kept="\n\t")
        if len(text) > LEAST_WIDTH and self.stream.isatty():
            width = max(LEAST_WIDTH, get_terminal_size().columns)
            text = "\n".join(flowed(line, width) for line in text.split("\n"))
        self.write_as_it_is(text)
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


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal has come."""


class Signals:
    """The signals of one command.

    Attributes:
        received: the number of the first signal; 0 if none has come.
    """

    def __init__(self) -> None:
        self.received = 0

    @property
    def code(self) -> int:
        """The exit code of a command that a signal ended; 0 if none has come."""
        return 128 + self.received if self.received else 0

    def check(self) -> None:
        """Raise Stopped again if a signal has come."""
        if self.received:
            raise Stopped

    def come(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.received:
            atexit._run_exitfuncs()
            os._exit(128 + number)
        self.received = number
        raise Stopped

    def ignore(self) -> None:
        """Ignore these signals from now on."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle these signals for a while, but for those that the process ignores, as under nohup."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self.received = 0
        earlier = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:
            if earlier[number] is not signal.SIG_IGN:
                signal.signal(number, self.come)
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler or signal.SIG_DFL)


signals = Signals()
"""The signals of this process."""


TUTORIAL = Path(__file__).parents[1] / "docs" / "start" / "chain.md"
HELP = f"""From the shapes of a conv2d chain to a proven schedule for Qualcomm Hexagon.

Start with `hexconv example`, which writes a small network. The tutorial writes a case file by hand: {TUTORIAL}.

Every command exits with 0 (it holds), 1 (it was checked and does not hold) or 2 (bad input, or a tool is missing: one
line says what was asked, what is true and what to change).
"""

app = App(
    name="hexconv",
    help=HELP,
    help_format="markdown",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(json_list=False),  # a word that begins with "[" is a pattern
)
register(app)
app.register_install_completion_command(
    help="Install completion of commands and options for this shell (bash, zsh or fish)."
)


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit code: 0 holds, 1 does not hold, 2 bad input or a missing tool.

    A fault of hexconv itself is printed as one line as well; with HEXCONV_TRACEBACK in the environment, in full.
    """
    given = sys.argv[1:] if arguments is None else arguments
    gc.set_threshold(NEW_OBJECTS)
    defer_unused()
    os.environ.setdefault(*ONE_BLAS_THREAD)  # numpy isn't imported yet
    try:
        code = exit_code(given)
    except Exception as error:
        with standard_streams():
            code = refused(fault(error), 2)
    signals.ignore()  # what is left to do is to clean up
    sys.exit(code)


def exit_code(arguments: list[str]) -> int:
    """Run one command line; print an error as one line on standard error."""
    with standard_streams(), warnings.catch_warnings(), signals.handled():
        warnings.simplefilter("default", HexconvWarning)
        warnings.showwarning = _warned
        code = _told(lambda: app(arguments, exit_on_error=False, print_error=False) or 0)
        code = _told(sys.stdout.flush) or code if sys.stdout else code
    return signals.code or code


def _told(act: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; what is wrong is printed in one line."""
    try:
        return act() or 0
    except CycloptsError as error:
        return refused(short_line(str(error)), 2)
    except HexconvError as error:
        return refused(str(error), error.exit_code)
    except OSError as error:
        return refused(f"{error.filename or 'this machine'}: {error.strerror or error}; mend that, and try again", 2)
    except MemoryError:
        return refused("out of memory: this machine has less than the command asks for; use a smaller case", 2)
    except KeyboardInterrupt:
        return refused("interrupted", signals.code or 130)
    except Exception:
        if signals.received:
            return refused("interrupted", signals.code)
        raise


def _warned(message: Warning | str, category: type[Warning], *_where: Any) -> None:
    """Print a warning as one line on standard error; a library's may quote a file at any length."""
    told = str(message) if isinstance(message, HexconvWarning) else short_line(f"{category.__name__}: {message}")
    print(f"hexconv: {one_line(told)}", file=sys.stderr)


def refused(message: str, code: int) -> int:
    """Print one line and hand the exit code back."""
    print(f"hexconv: {one_line(message)}", file=sys.stderr)
    return code
