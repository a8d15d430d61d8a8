"""The page: everything in one HTML file that loads nothing, runs without a server and says the same each time."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hexconv.errors import visible
from hexconv.report.costs import Row, measured_splits
from hexconv.report.page.case_view import HEADINGS, CaseView, Measured, case_view
from hexconv.report.page.limit import reached
from hexconv.report.page.network_view import NetworkView
from hexconv.report.page.worst_cases import Answer
from hexconv.report.plots import Plot, packets_plot
from hexconv.report.plots.plot import dark_rules, inline_svg
from hexconv.report.plots.slot_plots import OWN
from hexconv.report.tables import Rate
from hexconv.run.profile import Profile
from hexconv.spec import Case
from hexconv.working import tell

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
        telling: Callable[[str], AbstractContextManager[None]] = nullcontext,
    ) -> "Page":
        """Put together what the page shows.

        Args:
            cases: the cases that the page is about.
            rates: the rates of runs on the simulator, out of tables.
            sweeps: what sweeps measured of plans with other splits.
            profiles: the profiles of the cases that were run for the page, by name.
            network: the view of all cases as one network.
            telling: what a case is viewed in, by its name: the page leaves out a case whose error ends there.
        """
        own, run = {rate.case: rate for rate in rates if rate.tool == OWN}, profiles or {}
        others = [reached(case, run[case.name]) for case in cases if case.name in run]
        views = list[CaseView]()
        for case in cases:
            with telling(case.name):
                measured = own.get(case.name), measured_splits(case, sweeps), run.get(case.name), others
                views.append(case_view(case, Measured(*measured)))
        answer, asked = Answer.of([view.known for view in views]), {view.name for view in views}
        shown = [rate for rate in rates if rate.case in asked]
        return cls(network, answer, tuple(views), None if network else packets_plot(shown))

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
