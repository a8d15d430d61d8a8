"""Ends a command by Ctrl-C, SIGTERM or SIGHUP: the first signal unwinds it, so that nothing half done stays behind.

A second signal ends the process at once, its temporary files removed and its processes killed. A signal is remembered,
since TVM turns what a signal raises inside of a callback into a RuntimeError.
"""

import atexit
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
