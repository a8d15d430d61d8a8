"""Prints tables on the terminal, within 80 columns if possible; `--wide` shows all columns."""

from collections.abc import Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from hexconv.errors import one_line

LINE = 80
WIDER_THAN_ANY_TABLE = 1000


def show(table: Table, is_wide: bool = False, spare: Sequence[str] = ()) -> None:
    """Print a table.

    To fit 80 columns, empty columns are left out first, then those that can be spared. If the table is still too wide,
    words are wrapped, and numbers never are.

    Args:
        table: the table with all of its columns.
        is_wide: print all columns, however wide they become.
        spare: headings of columns that can be spared, the first one first.
    """
    console, left_out = Console(width=WIDER_THAN_ANY_TABLE), []
    if table.title:
        print(table.title)
    table = _with(table, table.columns)
    if is_wide:
        console.print(table)
        return
    empty = [_heading(column) for column in table.columns if not any(map(str, column.cells))]
    for heading in (*empty, *spare):
        if console.measure(table).maximum > LINE and heading in map(_heading, table.columns):
            table = _with(table, [column for column in table.columns if _heading(column) != heading])
            left_out += [heading] if heading not in empty else []
    Console(width=min(LINE, console.measure(table).maximum)).print(table)
    if left_out:
        print(f"--wide shows {len(left_out)} more column{'s' * (len(left_out) > 1)}")


def _heading(column: Column) -> str:
    return str(column.header)


def _with(table: Table, columns: Sequence[Column]) -> Table:
    """Return a table of some columns of another table, drawn with as few lines as possible."""
    lines = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    slim = Table(**lines)
    for column in columns:
        slim.add_column(column.header, justify=column.justify, no_wrap=column.justify == "right", overflow="fold")
    cells = zip(*(column.cells for column in columns), strict=True)
    for row, words in zip(table.rows, cells, strict=True):
        slim.add_row(*map(_plain, words), end_section=row.end_section)
    return slim


def _plain(cell: RenderableType) -> RenderableType:
    """Return the text of a cell as it is: its brackets are no markup, and it has no control characters."""
    return Text(one_line(cell)) if isinstance(cell, str) else cell
