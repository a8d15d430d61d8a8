"""Give a command's answer: JSON or tables on standard output, or a file.

Tables take the terminal's columns, 80 where there is none, where whole words fit; `--wide` shows all.
"""

import json
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from hexconv.errors import one_line, visible
from hexconv.written import write_file

LINE = 80
WIDER_THAN_ANY_TABLE = 1000


VERSION = 1
"""Of the keys of all rows: it rises when a key goes, or changes what it says."""


def print_json(rows: Any) -> None:
    """Write a row of JSON, or a list of rows, each with its version, and nothing else to standard output."""
    many = isinstance(rows, (list, tuple))
    found = [row if isinstance(row, dict) else _values(row) for row in (rows if many else [rows])]
    told = [{"version": VERSION, **row} for row in found]
    print_text(json.dumps(told if many else told[0], indent=2, default=_values) + "\n")


def print_text(text: str) -> None:
    """Write text that is no prose, such as JSON or a case file: a terminal gets its lines whole."""
    write = getattr(sys.stdout, "write_as_it_is", sys.stdout.write)
    write(visible(text, kept="\n\t"))


def _values(row: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, and those that it computes, by name."""
    return _adapter(type(row)).dump_python(row, mode="json")


@lru_cache
def _adapter(kind: type) -> Any:
    from pydantic import TypeAdapter  # imported here, so that `hexconv layout` doesn't wait for it

    return TypeAdapter(kind)


def write_text(path: Path, text: str) -> None:
    """Write a file whole; its folder is made if need be.

    Raises:
        NotWritten: the file can't be written to this path.
    """
    write_file(path, utf8(text))


def utf8(text: str) -> bytes:
    """Encode text that may hold what a file name has and UTF-8 hasn't."""
    return text.encode("utf-8", "backslashreplace")


def show(table: Table, is_wide: bool = False, spare: Sequence[str] = ()) -> None:
    """Print a table.

    To fit the line, empty columns are left out first, then those that can be spared. If the table is still too wide,
    lines are wrapped between words: no word, no name and no number is ever parted, though the table gets wider.

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
    line = get_terminal_size((LINE, 1)).columns
    empty = [_heading(column) for column in table.columns if not any(map(str, column.cells))]
    for heading in (*empty, *spare):
        if console.measure(table).maximum > line and heading in map(_heading, table.columns):
            table = _with(table, [column for column in table.columns if _heading(column) != heading])
            left_out += [heading] if heading not in empty else []
    _share_out(console, table, line)
    console.print(table)
    if left_out:
        print(f"--wide shows {len(left_out)} more column{'s' * (len(left_out) > 1)}")


def _share_out(console: Console, table: Table, line: int) -> None:
    """Give columns their widths: the widest are narrowed until the table fits the line, none below its longest word."""
    measures = [
        [console.measure(cell) for cell in (Text(_heading(column)), *map(_plain, column.cells))]
        for column in table.columns
    ]
    widths = [max(measure.maximum for measure in column) for column in measures]
    least = [
        width if column.no_wrap else max(measure.minimum for measure in cells)
        for column, cells, width in zip(table.columns, measures, widths, strict=True)
    ]
    room = line - (console.measure(table).maximum - sum(widths))
    while sum(widths) > room and widths != least:
        slack = [(width, place) for place, width in enumerate(widths) if width > least[place]]
        widths[max(slack)[1]] -= 1
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width


def _heading(column: Column) -> str:
    return str(column.header)


def _with(table: Table, columns: Sequence[Column]) -> Table:
    """Return a table of some columns of another table, drawn with as few lines as possible."""
    lines = {"box": box.SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 1, 0, 0)}
    slim = Table(**lines)
    for column in columns:
        slim.add_column(column.header, justify=column.justify, no_wrap=column.justify == "right")
    cells = zip(*(column.cells for column in columns), strict=True)
    for row, words in zip(table.rows, cells, strict=True):
        slim.add_row(*map(_plain, words), end_section=row.end_section)
    return slim


def _plain(cell: RenderableType) -> RenderableType:
    """Return the text of a cell as it is: its brackets are no markup, and it has no control characters."""
    return Text(one_line(cell)) if isinstance(cell, str) else cell
