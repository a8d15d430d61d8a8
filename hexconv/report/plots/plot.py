"""A plot: a chart, words that describe it, a table of its numbers; its style, light and dark."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal
from xml.etree import ElementTree

import altair as alt
from markupsafe import Markup

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


SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)
GROUP, PATH, RECT, TEXT = (f"{{{SVG}}}{tag}" for tag in ("g", "path", "rect", "text"))
DROPPED = ("role", "class", "id", "aria-")
ORIGIN = "translate(0,0)"
PLAIN = {
    **{"opacity": "1", "pointer-events": "none", "stroke-width": "1", "stroke-miterlimit": "10"},
    **{"font-weight": "normal", "font-family": FONT, "font-size": f"{TEXT_PIXELS}px", "text-anchor": "start"},
    "transform": ORIGIN,
}
"""Attributes that say what holds without them: the style sheet has the font, and a picture takes no clicks."""
GEOMETRY = {"d", "transform", "x", "x1", "x2", "y", "y1", "y2", "width", "height"}
"""Attributes whose numbers are rounded to a hundredth of a pixel."""
CIRCLE = re.compile(r"M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0")
PLACE = re.compile(r"translate\(-?[\d.]+,-?[\d.]+\)")


def inline_svg(drawing: str, words: str, css_class: str) -> Markup:
    """Inline a drawing with words that describe it; labels of its parts and its background are left out.

    Of a plot's markup half says what holds without it: groups around one group, frames that are painted in no colour,
    the style of every label. A thousand dots of one size become one path: each dot is a stroke without length.
    Its colours stay: the page's style sheet gives each of them a dark twin. Everything is parsed and written again, so
    that no text of it can be markup.
    """
    root = ElementTree.fromstring(drawing)
    sheet = next((child for child in root if child.tag == RECT), None)
    if sheet is not None:
        root.remove(sheet)
    for element in root.iter():
        _leave_plain(element)
    root[:] = _dots_joined(_pared(list(root), fill="black", stroke="none"))
    root.attrib |= {"class": css_class, "role": "img", "aria-label": words}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 (a tree escapes all of its text)


def _leave_plain(element: ElementTree.Element) -> None:
    """Take off the attributes that say what holds without them, and round the others."""
    for name, value in list(element.attrib.items()):
        if name.startswith(DROPPED) or PLAIN.get(name) == value:
            del element.attrib[name]
    for name in GEOMETRY & element.attrib.keys():
        element.attrib[name] = re.sub(r"(\.\d\d)\d+", r"\1", element.attrib[name])
    if element.tag == TEXT and element.get("fill") == INK:
        del element.attrib["fill"]


def _pared(elements: Iterable[ElementTree.Element], fill: str, stroke: str) -> Iterator[ElementTree.Element]:
    """Yield what shows of elements beneath each other: no shape in no colour, no group that says nothing of its own.

    Args:
        elements: elements, their attributes pared.
        fill: the colour of those that name none.
        stroke: the colour of the outlines of those that name none.
    """
    for element in elements:
        paint = element.get("fill", fill), element.get("stroke", stroke)
        if element.get("display") == "none" or (element.tag in (PATH, RECT) and paint == ("none", "none")):
            continue
        inside = list(_pared(element, *paint))
        element[:] = _dots_joined(inside) if paint[1] == "none" else inside
        if element.tag == GROUP and not element.attrib:
            yield from element
        elif element.tag != GROUP or len(element):
            yield element


def _dots_joined(elements: Iterable[ElementTree.Element]) -> Iterator[ElementTree.Element]:
    """Yield elements that follow each other, dots of the same size and colour as one path."""
    for kind, run in groupby(elements, key=_kind_of_dot):
        same = list(run)
        if kind is None or len(same) == 1:
            yield from same
            continue
        radius, colour = kind
        places = dict.fromkeys(
            dot.get("transform", ORIGIN).removeprefix("translate(").removesuffix(")") for dot in same
        )
        path = "".join(f"M{place}h0" for place in places)
        width = f"{2 * float(radius):g}"
        yield ElementTree.Element(PATH, {"d": path, "stroke": colour, "stroke-width": width, "stroke-linecap": "round"})


def _kind_of_dot(element: ElementTree.Element) -> tuple[str, str] | None:
    """The radius and the colour of a dot; None of what is no dot, or has an outline."""
    circle = CIRCLE.fullmatch(element.get("d", ""))
    is_dot = element.attrib.keys() - {"stroke-width", "transform"} == {"d", "fill"}
    if not circle or not is_dot or not PLACE.fullmatch(element.get("transform", ORIGIN)):
        return None
    return circle[1], element.attrib["fill"]
