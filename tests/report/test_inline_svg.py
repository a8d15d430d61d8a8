"""A drawing in the page: what it shows is what the plot shows, in less than half of its bytes."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import vl_convert
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from hexconv.report.page.case_view import Measured, case_view
from hexconv.report.plots.plot import FONT, INK, TEXT_PIXELS, inline_svg
from hexconv.spec import Case

SCHEDULES = Path(__file__).parents[2] / "schedules"
STYLED = f'<text font-family="{FONT}" font-size="{TEXT_PIXELS}px"'
"""What the page's style sheet says of the labels of a plot, and of those without a colour that it is the ink's."""
BEFORE, BEHIND = '<svg xmlns="http://www.w3.org/2000/svg" width="340" height="300">', "</svg>"
PAPER = '<rect width="340" height="300" fill="#ffffff"/>'


def pixels(svg: str) -> np.ndarray:
    """The drawing on white paper."""
    drawn = Image.open(io.BytesIO(vl_convert.svg_to_png(svg))).convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", drawn.size, "white"), drawn), dtype=np.int16)


def inlined(svg: str) -> str:
    styled = str(inline_svg(svg, "words", "plot")).replace("<text", STYLED)
    return re.sub(r"<text(?![^>]*fill=)", f'<text fill="{INK}"', styled)


def differing(svg: str) -> float:
    """The share of the pixels that are visibly others in the page: more than a quarter of white to black."""
    return float((abs(pixels(svg) - pixels(inlined(svg))).max(axis=2) > 64).mean())


@pytest.mark.parametrize("name", ["bottleneck", "split-3x3", "float16-1x1"])
def test_a_plot_shows_the_same_in_half_of_its_bytes(name: str) -> None:
    plots = case_view(Case.load(SCHEDULES / f"{name}.toml"), Measured(None, {}, None, ())).plots
    drawings = [plot.svg() for plot in plots]
    assert [differing(svg) for svg in drawings] == pytest.approx([0] * len(drawings), abs=0.002)
    assert sum(len(inline_svg(svg, "", "")) for svg in drawings) < 0.5 * sum(map(len, drawings))


COLOURS = st.sampled_from(["#b4bac3", "#3f7fc1", "none", None])
RADII = st.sampled_from(["2.34", "5", "9.123456"])
AT = st.integers(10, 290)


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> str:
    """Some dots, boxes and labels, in groups that name a colour or name none."""
    made = []
    for kind in draw(st.lists(st.sampled_from(["dot", "dot", "box", "text", "group"]), max_size=8)):
        fill, stroke = draw(COLOURS), draw(COLOURS)
        paint = "".join(f' {name}="{colour}"' for name, colour in (("fill", fill), ("stroke", stroke)) if colour)
        place = f' transform="translate({draw(AT)},{draw(AT)})"'
        if kind == "dot":
            r = draw(RADII)
            made.append(f'<path{place} d="M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0"{paint}/>')
        elif kind == "box":
            made.append(f'<path{place} d="M0,0h12v9h-12Z"{paint}/>')
        elif kind == "text":
            made.append(f'{STYLED} fill="{INK}"{place}>x</text>')
        elif depth:
            made.append(f"<g{paint if draw(st.booleans()) else ''}>{draw(shapes(depth - 1))}</g>")
    return "".join(made)


RINGED = "".join(
    f'<path transform="translate({at},99)" d="M9,0A9,9,0,1,1,-9,0A9,9,0,1,1,9,0" fill="#b4bac3"/>' for at in (50, 99)
)


@settings(max_examples=25)
@example(f'<g stroke="#3f7fc1">{RINGED}</g>')
@given(shapes())
def test_any_drawing_shows_the_same(inside: str) -> None:
    assert differing(f"{BEFORE}{PAPER}{inside}{BEHIND}") <= 0.0005


def test_dots_of_one_kind_are_one_path_and_their_bytes_are_their_places() -> None:
    dot = '<path transform="translate({},{})" d="M2,0A2,2,0,1,1,-2,0A2,2,0,1,1,2,0" fill="#b4bac3"/>'
    drawing = BEFORE + PAPER + "".join(dot.format(at, 2 * at) for at in range(500)) + BEHIND
    html = inline_svg(drawing, "", "")
    (path,) = ElementTree.fromstring(html)
    assert path.get("d", "").startswith("M0,0h0M1,2h0M2,4h0")
    assert len(html) < 500 * 12
