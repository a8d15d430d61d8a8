"""Turn an SVG into a part of the page: one image to a screen reader, without a background or a size of its own."""

import re
from xml.etree import ElementTree

from markupsafe import Markup

SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)
DROPPED = ("role", "class", "id", "aria-")
GEOMETRY = {"d", "transform", "x", "x1", "x2", "y", "y1", "y2", "width", "height"}
"""Attributes whose numbers are rounded to a hundredth of a pixel."""


def inline_svg(drawing: str, words: str, css_class: str) -> Markup:
    """Inline a drawing with words that describe it; labels of its parts and its background are left out.

    Its colours stay: the page's style sheet gives each of them a dark twin. Everything is parsed and written again, so
    that no text of it can be markup.
    """
    root = ElementTree.fromstring(drawing)
    sheet = next((child for child in root if child.tag == f"{{{SVG}}}rect"), None)
    if sheet is not None:
        root.remove(sheet)
    for element in root.iter():
        for name in [name for name in element.attrib if name.startswith(DROPPED)]:
            del element.attrib[name]
        for name in GEOMETRY & element.attrib.keys():
            element.attrib[name] = re.sub(r"(\.\d\d)\d+", r"\1", element.attrib[name])
    root.attrib |= {"class": css_class, "role": "img", "aria-label": words}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 (a tree escapes all of its text)
