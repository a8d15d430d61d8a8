"""Inline a drawing in the page, with words that describe it and without what shows nothing.

Of a plot's markup half says what holds without it: groups around one group, frames that are painted in no colour, the
style of every label. A thousand dots of one size are one path, each dot a stroke of no length with round ends.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.etree import ElementTree

from markupsafe import Markup

from hexconv.report.plots.plot import FONT, INK, TEXT_PIXELS

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
