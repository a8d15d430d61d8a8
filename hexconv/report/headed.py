"""Make the tables that are shown on the terminal."""

from collections.abc import Sequence

from rich.table import Table


def headed(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Make a table without rows: first columns of words, then columns of numbers, which stand at the right."""
    table = Table(*words, title=title)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def cell(value: object) -> str:
    """Write a value as a cell, which is empty if there is none."""
    return "" if value is None else str(value)
