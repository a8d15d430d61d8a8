"""How far long work has come: loops of any package tell it, and who shows it to a user listens.

Nobody listens unless a command does (`hexconv.cli.progress`), and then telling does nothing.
"""

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[str, int, int], None]
"""Is called with what is done now, how many parts of it are done, and how many there are: 0 where that isn't known."""

_listeners: list[Listener] = []


def is_heard() -> bool:
    """Whether anyone listens."""
    return bool(_listeners)


def tell(doing: str, done: int = 0, of: int = 0) -> None:
    """Tell what is done now, how many parts of it are done, and how many there are."""
    if _listeners:
        _listeners[-1](doing, done, of)


def each(items: Collection[Item], doing: str, named: Callable[[Item], str] = lambda _: "") -> Iterator[Item]:
    """Yield the same items, and tell of each before it is worked on, and of the end.

    Args:
        items: the items of the work.
        doing: a word that says what is done with them.
        named: a function that gives the name of an item.
    """
    for number, item in enumerate(items):
        tell(f"{doing} {named(item)}".rstrip(), number, len(items))
        yield item
    tell(doing, len(items), len(items))


@contextmanager
def heard(listener: Listener) -> Generator[None, None, None]:
    """Call a listener with all that is told meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
