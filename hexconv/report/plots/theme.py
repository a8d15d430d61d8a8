"""The style of all plots. The page's style sheet finds the dark twin of each colour by its value here."""

from collections.abc import Sequence

import altair as alt

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
BAR, PEER = "#3f7fc1", "#b4bac3"
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
