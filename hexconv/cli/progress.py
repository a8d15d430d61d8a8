"""Shows the progress of long work on standard error: by a bar on a terminal, else by a line for each tenth."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from hexconv.errors import ToolMissing, one_line
from hexconv.run.simulator.needs import MORE_ADDRESSES, TVM_ADDRESS_BYTES, short_of_addresses

Item = TypeVar("Item")


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


def counted(items: Sequence[Item], doing: str, named: Callable[[Item], str]) -> Iterator[Item]:
    """Yield the same items, and count them on a bar that names the item in work.

    Args:
        items: the items of the work.
        doing: a word that says what is done with them.
        named: a function that gives the name of an item.
    """
    text = TextColumn("{task.description}")
    with bar(SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), text) as progress:
        task = progress.add_task(doing, total=len(items))
        for item in items:
            progress.update(task, description=_shown(f"{doing} {named(item)}"))
            yield item
            progress.advance(task)


def tenths(items: Iterable[Item], doing: str, total: int) -> Iterator[Item]:
    """Yield the same items; where standard error is no terminal, and shows no bar, a line there tells of each tenth.

    Args:
        items: the items of the work.
        doing: a word that says what is done with them.
        total: how many items there are.
    """
    is_log = not Console(stderr=True).is_terminal
    for number, item in enumerate(items, start=1):
        if is_log and 10 * number // total > 10 * (number - 1) // total:
            print(f"hexconv: {doing} {number} of {total}", file=sys.stderr, flush=True)
        yield item


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Show what is being done, and the time that it has taken so far, until it is done."""
    with bar(SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")) as progress:
        progress.add_task(_shown(doing), total=None)
        yield


def _shown(text: str) -> str:
    """Return text as a bar shows it: its brackets are no markup, and it has no control characters."""
    return escape(one_line(text))


def starting() -> AbstractContextManager[None]:
    """Show that hexconv starts while TVM is imported, which takes seconds.

    Raises:
        ToolMissing: the shell allows less address space than TVM and LLVM take; they would crash on it.
    """
    if short := short_of_addresses(TVM_ADDRESS_BYTES):
        raise ToolMissing(f"TVM and LLVM would crash here: {short}; {MORE_ADDRESSES}")
    return waiting("starting")
