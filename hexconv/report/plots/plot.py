"""A plot: a chart, words that describe it, a table of its numbers; its style, light and dark."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from hexconv.layout.picture import COLOURS, PADDING

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
        return in_both_schemes(self.svg()).encode() if kind == "svg" else self.png()

    def _save(self, out: Any, kind: Format, **options: Any) -> None:
        """Draw with vl-convert: no browser, and no network."""
        self.chart.save(out, format=kind, engine="vl-convert", **options)


def data(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Rows for a chart, kept inside of it."""
    return alt.InlineData(values=rows)


INK = "#1b2330"
FAINT = "#5d6878"
GRID = "#dde3ea"
PAPER = "#ffffff"
MARK = "#b3261e"
REFUSED = "#ece7e1"

ROLE_COLOURS = {
    "input": "#9cc3f0",
    "filter": "#f5c07a",
    "intermediate": "#93d6b3",
    "accumulator": "#f0a5c2",
    "output": "#c3b1ee",
    "offset": "#c8ccd2",
    "window": "#d9d27c",
    "split": "#30a5a8",
    "words": "#e67e54",
    "scale": "#9b980b",
    "planes": "#668fe8",
    "kept": "#ce7cc8",
}
"""A colour for each role of a buffer; a role that is missing would be drawn in none."""
HEAT = ("#f1f6fc", "#dbe9f7", "#c3daf1", "#aacaea", "#90b9e2", "#77a8d9", "#6097cf")
BAR, PEER, OTHER = "#3f7fc1", "#b4bac3", "#0f7f80"
WIDTH = 340
FONT = "system-ui, sans-serif"
TEXT_PIXELS, CHARACTER_PIXELS = 12, 7.2
"""The height of all text in plots, 11 pixels even where a phone shrinks it a little, and the width of a letter."""


def themed(chart: alt.TopLevelMixin) -> alt.TopLevelMixin:
    """Give a chart the common style."""
    axis = alt.AxisConfig(
        labelColor=INK,
        titleColor=INK,
        domainColor=FAINT,
        tickColor=FAINT,
        gridColor=GRID,
        labelFontSize=TEXT_PIXELS,
        titleFontSize=TEXT_PIXELS,
        titleFontWeight="normal",
        labelLimit=220,
    )
    legend = alt.LegendConfig(labelColor=INK, titleColor=INK, orient="bottom", columns=3, labelFontSize=TEXT_PIXELS)
    config = alt.Config(font=FONT, background=PAPER, view=alt.ViewConfig(stroke=None), axis=axis, legend=legend)
    return chart.properties(config=config, padding=8)  # pyright: ignore[reportAttributeAccessIssue]


def role_scale(roles: Sequence[str]) -> alt.Scale:
    """Return the colour scale of the roles that a chart shows, in the order of the data flow."""
    shown = [role for role in ROLE_COLOURS if role in roles]
    return alt.Scale(domain=shown, range=[ROLE_COLOURS[role] for role in shown])


ROLES = (
    *("#2f5f94", "#8a5a1c", "#2a6e4c", "#8a3f5f", "#5b4a94", "#565d68", "#6b6524"),
    *("#0b6a6e", "#512500", "#1a4901", "#023559", "#50174d"),
)
DARK_HEAT = ("#1d2937", "#1f3145", "#233b56", "#264668", "#2a517b", "#2d5d8e", "#3169a2")
LAYOUT = ("#27486b", "#6b4a1d", "#2b5a3b", "#6b3540", "#4b3d6b", "#5a4a2c", "#5c5620", "#245a59")

DARK = {
    INK: "#e8ecf2",
    FAINT: "#a3adbb",
    GRID: "#2c3541",
    PAPER: "#141a22",
    MARK: "#ff8a7a",
    REFUSED: "#2a2724",
    PEER: "#5a6472",
    BAR: "#77a8d9",
    OTHER: "#4cc9c4",
    **dict(zip(ROLE_COLOURS.values(), ROLES, strict=True)),
    **dict(zip(HEAT, DARK_HEAT, strict=True)),
    **dict(zip(COLOURS, LAYOUT, strict=True)),
    PADDING: "#20262f",
}
"""For each colour of a plot the one that stands in its place on dark paper."""


def dark_rules(within: str = "svg") -> str:
    """Return the rules of a style sheet that exchange the colours of all drawings in elements of one kind."""
    painted = [(name, light, dark) for light, dark in DARK.items() for name in ("fill", "stroke")]
    return "\n".join(f'{within} [{name}="{light}"] {{ {name}: {dark} }}' for name, light, dark in painted)


def in_both_schemes(svg: str) -> str:
    """Return a drawing that goes dark where its reader does: with a style sheet of the colours that it has."""
    used = [rule for rule in dark_rules().splitlines() if rule.partition("[")[2].partition("]")[0] in svg]
    sheet = "\n".join(("<style>@media (prefers-color-scheme: dark) {", *used, "}</style>"))
    start = svg.index(">", svg.index("<svg")) + 1
    return svg[:start] + sheet + svg[start:]
