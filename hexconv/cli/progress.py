"""Shows the progress of long work on standard error: by a bar on a terminal, else by a line each ten seconds."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Task as BarTask
from rich.progress_bar import ProgressBar

from hexconv.errors import ToolMissing, one_line
from hexconv.run.simulator.needs import MORE_ADDRESSES, TVM_ADDRESS_BYTES, short_of_addresses
from hexconv.working import each, heard, is_heard, tell

Item = TypeVar("Item")

EVERY_SECONDS = 10.0
"""How often a line says how far work has come, where standard error is no terminal."""


def bar(*columns: ProgressColumn, is_kept: bool = False) -> Progress:
    """Make a bar on standard error; it leaves standard output alone, unless both are one terminal.

    Args:
        columns: the columns that the bar shows.
        is_kept: whether the bar stays on the screen when the work is done.
    """
    console, out = Console(stderr=True), sys.stdout
    is_one = out is not None and out.isatty()
    return Progress(
        *columns,
        console=console,
        transient=not is_kept,
        redirect_stdout=is_one,
        disable=not console.is_terminal,
    )


class _BarOfParts(ProgressColumn):
    """A bar, where it is known of how many parts some are done."""

    def render(self, task: BarTask) -> RenderableType:
        """Return what the column shows, as rich asks for it."""
        return ProgressBar(task.total, task.completed, 20) if task.total else ""


@contextmanager
def log(state: Callable[[], str]) -> Iterator[None]:
    """Where standard error is no terminal, and shows no bar, print there each ten seconds how far work has come.

    Args:
        state: a function that says what is done now, and how much of it is done.
    """
    begun, err, ended = monotonic(), sys.stderr, Event()

    def write() -> None:
        while not ended.wait(EVERY_SECONDS):
            print(f"hexconv: {one_line(state())}, {monotonic() - begun:.0f} s", file=err, flush=True)

    if err is None or Console(stderr=True).is_terminal:
        yield
        return
    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Show what is being done, how much of it is done, and since when, until it is done (`hexconv.working`)."""
    if is_heard():  # by the bar or the log of the work that this is a part of
        tell(doing)
        yield
        return
    now = counts_said(doing, 0, 0)
    columns = SpinnerColumn(), _BarOfParts(), TimeElapsedColumn(), TextColumn("{task.description}")
    with bar(*columns) as progress:
        task = progress.add_task(escape(now), total=None)

        def show(what: str, done: int, of: int) -> None:
            nonlocal now
            now = counts_said(what, done, of)
            progress.update(task, description=escape(now), completed=done, total=of or None)

        with heard(show), log(lambda: now):
            yield


def counts_said(doing: str, done: int, of: int) -> str:
    r"""Return a line on work that has come so far; it has no control characters, since names come from files.

    >>> counts_said("lowering a\nb", 2, 5), counts_said("starting", 0, 0)
    ('lowering a b, 2 of 5 done', 'starting')
    """
    return one_line(f"{doing}, {done} of {of} done" if of else doing)


def counted(items: Collection[Item], doing: str, named: Callable[[Item], str]) -> Iterator[Item]:
    """Yield the same items, and show which one is worked on, as `waiting` does.

    Args:
        items: the items of the work.
        doing: a word that says what is done with them.
        named: a function that gives the name of an item.
    """
    with waiting(doing):
        yield from each(items, doing, named)


def starting() -> AbstractContextManager[None]:
    """Show that hexconv starts while TVM is imported, which takes seconds.

    Raises:
        ToolMissing: the shell allows less address space than TVM and LLVM take; they would crash on it.
    """
    if short := short_of_addresses(TVM_ADDRESS_BYTES):
        raise ToolMissing(f"TVM and LLVM would crash here: {short}; {MORE_ADDRESSES}")
    return waiting("starting")
