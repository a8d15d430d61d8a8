"""A plot: a chart, words that describe it, and a table of its numbers."""

import io
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

Format = Literal["svg", "png"]

PNG_SCALE = 2


@dataclass(frozen=True)
class Numbers:
    """A data table.

    Attributes:
        caption: what the table shows, in one line.
        headings: the headings of the columns; the first column names the row.
        rows: the rows, with as many cells as there are headings, as text.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plot:
    """One plot of the page.

    Attributes:
        name: the name of its file and of its place in the page, such as `split-3x3-footprint`.
        title: its title, one line.
        words: a description for those who can't see it.
        chart: the drawing.
        numbers: the data that is drawn, as a table.
        is_wide: whether it takes the whole width of the page.
    """

    name: str
    title: str
    words: str
    chart: alt.TopLevelMixin
    numbers: Numbers
    is_wide: bool = False

    def svg(self) -> str:
        """Return the plot as an SVG document."""
        out = io.StringIO()
        self._save(out, "svg")
        return out.getvalue()

    def png(self) -> bytes:
        """Return the plot as a PNG image."""
        out = io.BytesIO()
        self._save(out, "png", scale_factor=PNG_SCALE)
        return out.getvalue()

    def file(self, kind: Format) -> bytes:
        """Return the plot as a file's content."""
        return self.svg().encode() if kind == "svg" else self.png()

    def _save(self, out: Any, kind: Format, **options: Any) -> None:
        """Draw with vl-convert: no browser, and no network."""
        self.chart.save(out, format=kind, engine="vl-convert", **options)


def data(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Rows for a chart, kept inside of it."""
    return alt.InlineData(values=rows)
