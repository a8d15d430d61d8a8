"""A plot: a chart, the words that stand for it, and the numbers that it shows."""

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
        caption: what it shows, one line.
        headings: of the columns; the first names the row.
        rows: cells as text, as many as there are headings.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        name: of its file, and of its place in the page: `split-3x3-footprint`.
        title: one line.
        words: what there is to see, for those who don't.
        chart: how it is drawn.
        numbers: what is drawn.
        is_wide: whether it takes a line of its own.
    """

    name: str
    title: str
    words: str
    chart: alt.TopLevelMixin
    numbers: Numbers
    is_wide: bool = False

    def svg(self) -> str:
        """The plot as an SVG document."""
        out = io.StringIO()
        self._save(out, "svg")
        return out.getvalue()

    def png(self) -> bytes:
        """The plot as a PNG image."""
        out = io.BytesIO()
        self._save(out, "png", scale_factor=PNG_SCALE)
        return out.getvalue()

    def file(self, kind: Format) -> bytes:
        """The plot as a file's content."""
        return self.svg().encode() if kind == "svg" else self.png()

    def _save(self, out: Any, kind: Format, **options: Any) -> None:
        """Draw with vl-convert: no browser, and no network."""
        self.chart.save(out, format=kind, engine="vl-convert", **options)


def data(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Rows for a chart, kept inside of it."""
    return alt.InlineData(values=rows)
