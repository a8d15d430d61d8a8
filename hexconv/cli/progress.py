"""A bar on standard error while somebody looks, for whatever takes more than a moment."""

import sys
from collections.abc import Callable, Iterator, Sequence
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

Item = TypeVar("Item")


def bar(*columns: ProgressColumn, is_kept: bool = False) -> Progress:
    """A bar; standard output stays apart from it, unless both are one terminal.

    Args:
        columns: what it shows.
        is_kept: whether it stays on the screen when it is done.
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
    """The same items, counted on a bar that names the one that is being done.

    Args:
        items: what there is to do.
        doing: in a word.
        named: the name of an item.
    """
    text = TextColumn("{task.description}")
    with bar(SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), text) as progress:
        task = progress.add_task(doing, total=len(items))
        for item in items:
            progress.update(task, description=escape(f"{doing} {named(item)}"))
            yield item
            progress.advance(task)


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Say what takes its time, and how much it has taken, until it is done."""
    with bar(SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}")) as progress:
        progress.add_task(escape(doing), total=None)
        yield


def starting() -> AbstractContextManager[None]:
    """Say so while TVM is imported, which takes seconds."""
    return waiting("starting")
