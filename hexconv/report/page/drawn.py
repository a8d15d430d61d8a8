"""Draw the page's small drawings: shapes and texts in the colours of the plots."""

from collections.abc import Mapping
from xml.etree import ElementTree

from markupsafe import Markup

from hexconv.errors import visible
from hexconv.report.plots.theme import FAINT, FONT, INK, TEXT_PIXELS


class Drawing:
    """An SVG image under construction."""

    def __init__(self, width: int, height: int, words: str, css_class: str) -> None:
        self._root = ElementTree.Element(
            "svg",
            {
                **{"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}", "role": "img"},
                **{
                    "aria-label": visible(words),
                    "class": css_class,
                    "font-family": FONT,
                    "font-size": str(TEXT_PIXELS),
                },
            },
        )

    def box(self, at: tuple[float, float], size: tuple[float, float], fill: str, **more: str) -> None:
        """Draw a rectangle; further attributes are written with `_` for `-`."""
        places = dict(zip(("x", "y", "width", "height"), (*at, *size), strict=True))
        self._add("rect", {name: f"{value:g}" for name, value in places.items()} | {"fill": fill}, more)

    def frame(self, at: tuple[float, float], size: tuple[float, float]) -> None:
        """Draw the outline of a rectangle."""
        self.box(at, size, "none", stroke=FAINT)

    def text(self, at: tuple[float, float], words: str, colour: str = INK, **more: str) -> None:
        """Draw a line of text; `at` is where it begins, on its baseline."""
        self._add("text", {"x": f"{at[0]:g}", "y": f"{at[1]:g}", "fill": colour}, more).text = visible(words)

    def line(self, path: str, **more: str) -> None:
        """Draw a path that is not filled."""
        self._add("path", {"d": path, "fill": "none", "stroke": FAINT, "stroke-width": "1.5"}, more)

    def markup(self) -> Markup:
        """Return the drawing as a part of the page."""
        return Markup(ElementTree.tostring(self._root, encoding="unicode"))  # noqa: S704 (a tree escapes all of its text)

    def _add(self, tag: str, attributes: Mapping[str, str], more: Mapping[str, str]) -> ElementTree.Element:
        named = {name.removesuffix("_").replace("_", "-"): value for name, value in more.items()}
        return ElementTree.SubElement(self._root, tag, {**attributes, **named})
