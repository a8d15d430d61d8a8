"""Tables in 80 columns: numbers are whole, the verdict stays, and how much is left out is told."""

import contextlib
import io
import re

from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from hexconv.cli.answers import LINE, show
from hexconv.errors import one_line

WORDS = st.text("abcdefgh [/]\x1b", max_size=50)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A verdict, words, and numbers of up to 12 digits."""
    table = Table("agrees", title="a table")
    names = [f"words{index}" for index in range(draw(st.integers(0, 3)))]
    numbers = [f"number{index}" for index in range(draw(st.integers(0, 3)))]
    for name in names:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    for _ in range(draw(st.integers(1, 4))):
        words = [draw(WORDS) for _ in names]
        table.add_row("yes", *words, *(str(draw(st.integers(0, 10**12))) for _ in numbers))
    return table


@given(table=tables(), is_wide=st.booleans())
def test_a_table_fits_its_line_and_keeps_its_numbers(table: Table, is_wide: bool) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        show(table, is_wide, ("words2", "words1"))
    text = out.getvalue()
    assert text.startswith("a table\nagrees")
    assert "\x1b" not in text
    words = {
        str(column.header): " ".join([str(column.header), *map(one_line, map(str, column.cells))]).split()
        for column in table.columns
    }
    least = sum(max(map(len, words[heading])) + 1 for heading in text.splitlines()[1].split())
    assert is_wide or max(map(len, text.splitlines())) <= max(LINE, least)
    shown = text.split()
    for column in table.columns:
        if column.justify == "right":
            assert all(str(cell) in shown for cell in column.cells)
    headings = text.splitlines()[1].split()
    assert all(set(words[heading]) <= set(shown) for heading in headings)
    missing = sum(any(column.cells) and str(column.header) not in headings for column in table.columns)
    told = re.findall(r"^--wide shows (\d+) more columns?$", text, re.M)
    assert [int(number) for number in told] == ([missing] if missing else [])
    assert not (is_wide and missing)
