"""The page: everything in one HTML file that loads nothing, runs without a server and says the same each time."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hexconv.errors import visible
from hexconv.report.costs import Row, measured_splits
from hexconv.report.page.case_view import HEADINGS, CaseView, Measured, case_view
from hexconv.report.page.limit import reached
from hexconv.report.page.network_view import NetworkView
from hexconv.report.page.worst_cases import Answer
from hexconv.report.plots import Plot, packets_plot
from hexconv.report.plots.plot import FONT, dark_rules
from hexconv.report.plots.slot_plots import OWN
from hexconv.report.tables import Rate
from hexconv.run.profile import Profile
from hexconv.spec import Case
from hexconv.working import tell

SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)
DROPPED = ("role", "class", "id", "aria-")
PLAIN = {"opacity": "1", "pointer-events": "none", "stroke-width": "1", "font-weight": "normal", "font-family": FONT}
"""Attributes that say what holds without them: the style sheet has the font, and a picture takes no clicks."""
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
    for parent in list(root.iter()):
        for child in [child for child in parent if child.get("display") == "none"]:
            parent.remove(child)
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name.startswith(DROPPED) or PLAIN.get(name) == value:
                del element.attrib[name]
        for name in GEOMETRY & element.attrib.keys():
            element.attrib[name] = re.sub(r"(\.\d\d)\d+", r"\1", element.attrib[name])
    root.attrib |= {"class": css_class, "role": "img", "aria-label": words}
    return Markup(ElementTree.tostring(root, encoding="unicode"))  # noqa: S704 (a tree escapes all of its text)


LONGEST_ANCHOR = 100
MOST_NAMED = 3
"""Cases that the title of a page names."""


@dataclass(frozen=True)
class Page:
    """Everything that the page shows.

    Attributes:
        network: the head of the page where the cases are one network, else None.
        answer: the head of the page where the cases are no network.
        cases: its cases, in the order in which they were named.
        packets: the plot of MACs per packet of all runs, if there were any.
    """

    network: NetworkView | None
    answer: Answer
    cases: tuple[CaseView, ...]
    packets: Plot | None

    @classmethod
    def of(
        cls,
        cases: Sequence[Case],
        rates: Sequence[Rate],
        sweeps: Sequence[Row] = (),
        profiles: Mapping[str, Profile] | None = None,
        network: NetworkView | None = None,
    ) -> "Page":
        """Put together what the page shows.

        Args:
            cases: the cases that the page is about.
            rates: the rates of runs on the simulator, out of tables.
            sweeps: what sweeps measured of plans with other splits.
            profiles: the profiles of the cases that were run for the page, by name.
            network: the view of all cases as one network.
        """
        own, run = {rate.case: rate for rate in rates if rate.tool == OWN}, profiles or {}
        others = [reached(case, run[case.name]) for case in cases if case.name in run]
        views = tuple(
            case_view(case, Measured(own.get(case.name), measured_splits(case, sweeps), run.get(case.name), others))
            for case in cases
        )
        answer, asked = Answer.of([view.known for view in views]), {case.name for case in cases}
        shown = [rate for rate in rates if rate.case in asked]
        return cls(network, answer, views, None if network else packets_plot(shown))

    @property
    def title(self) -> str:
        """What the page is about: a network, or its cases."""
        if self.network:
            return self.network.name
        names = [case.name for case in self.cases]
        return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} cases"

    @property
    def plots(self) -> tuple[Plot, ...]:
        """All plots of the page, so that they can be written as files."""
        shared = () if self.packets is None else (self.packets,)
        return (*shared, *(plot for case in self.cases for plot in case.plots))

    def html(self) -> str:
        """Return the HTML of the page."""
        environment = Environment(
            loader=PackageLoader("hexconv.report.page"),
            autoescape=True,
            finalize=_visible,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {"anchor": anchor, "draw": _draw}
        script, style = (_source(environment, name) for name in ("script.js", "style.css"))
        dark = Markup(dark_rules())  # noqa: S704 (names and colours of this package)
        html = environment.get_template("index.html.j2").render(
            page=self, headings=HEADINGS, dark=dark, script=script, style=style, script_hash=_hash(script)
        )
        return html.rstrip() + "\n"


def anchor(name: str) -> str:
    """Turn a name into a part of an id or of a file name; different names give different parts, none of them long.

    >>> anchor("split-3x3"), anchor("../x y"), len(anchor("日" * 85))
    ('split-3x3', '.2e..2e..2f.x.20.y', 117)
    """
    found = re.sub(r"[^A-Za-z0-9_-]", lambda found: f".{ord(found[0]):x}.", name)
    if len(found) <= LONGEST_ANCHOR:
        return found
    return f"{found[:LONGEST_ANCHOR]}.{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _visible(value: object) -> object:
    """Return text with what can't be printed escaped; it is escaped for HTML behind that."""
    return visible(value, kept="\n") if isinstance(value, str) and not isinstance(value, Markup) else value


def _draw(plot: Plot) -> Markup:
    tell(f"drawing {plot.name}")
    return inline_svg(plot.svg(), f"{plot.title}. {plot.words}", "plot")


def _source(environment: Environment, name: str) -> Markup:
    """Return the contents of a file of the package, not escaped."""
    assert environment.loader
    return Markup(environment.loader.get_source(environment, name)[0])  # noqa: S704 (a file of the package)


def _hash(script: str) -> str:
    """Return the hash of a script, so that the content security policy lets this script run and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
