"""What limits a kernel: where the issue slots of its run go, and what would save some of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from markupsafe import Markup

from hexconv.analyze import needed_macs
from hexconv.analyze.planned import planned_work
from hexconv.errors import visible
from hexconv.report.plots import Reached
from hexconv.report.plots.plot import FAINT, FONT, INK, TEXT_PIXELS
from hexconv.report.tables import limit
from hexconv.run.profile import Profile
from hexconv.spec import Case
from hexconv.tir.parts import Does

WORTH_SAYING = 0.05
"""The share of all slots that a use must take to get a line of its own."""


@dataclass(frozen=True)
class Share:
    """A share of a run's slots: what the slots do, their part of all slots, and what would help."""

    what: str
    part: float
    help: str = ""


def reached(case: Case, profile: Profile) -> Reached:
    """Return the point of a run in the roofline plot."""
    moved = sum(planned_work(case.chain, case.settled).traffic_bytes.values())
    return Reached(case.name, needed_macs(case.chain), moved, profile.slots.issue_slots, limit(case.chain))


def shares(case: Case, profile: Profile) -> tuple[Share, ...]:
    """Return the shares of a run's slots, the largest first; together they are all slots.

    Multiplications count the slots that they would take at two in each slot. The other slots of convs are what loads,
    starts and ends of tiles, scaling and stalls cost. The plain kernel multiplies without vectors: all slots of its
    convs are one share.
    """
    slots = profile.marked_slots
    copying = profile.slots_of(Does.READ_INPUT, Does.READ_FILTER, Does.WRITE_OUTPUT)
    convs = profile.slots_of(Does.CONV)
    set_up = slots - copying - convs
    found = [
        Share("copy, or start copies and wait for them", copying / slots, _copies_help(case)),
        Share("set up the kernel", set_up / slots),
    ]
    if case.settled.kernel != "hvx":
        return _sorted([*found, Share("compute convs without vector instructions", convs / slots, _vector_help(case))])
    needed = needed_macs(case.chain) / limit(case.chain)
    done = sum(planned_work(case.chain, case.settled).macs.values()) / limit(case.chain)
    stalls = profile.slots.stall_slots
    found += [
        Share("multiply what the result needs", needed / slots),
        Share("wasted multiplies", max(done - needed, 0) / slots, " ".join(_wasted(case))),
        Share("are stalls", stalls / slots),
        Share("load, start and end sums, and scale", max(convs - done - stalls, 0) / slots),
    ]
    return _sorted(found)


def limit_words(case: Case, profile: Profile) -> str:
    """Return the verdict in a few sentences."""
    every = shares(case, profile)
    told = [f"{share.part:.0%} {share.what}" for share in every if share.part >= WORTH_SAYING]
    first = told[0].replace("% ", "% of the issue slots ", 1)
    helps = [share.help for share in every if share.help and share.part >= WORTH_SAYING]
    return f"{'; '.join([first, *told[1:]])}. {' '.join(helps)}".strip()


def _sorted(found: list[Share]) -> tuple[Share, ...]:
    return tuple(sorted(found, key=lambda share: -share.part))


def _copies_help(case: Case) -> str:
    """Return a sentence on what would take the copies off the thread."""
    if case.settled.buffering == "single":
        return 'buffering = "double" leaves the copies to the engine, and takes more VTCM.'
    return ""


def _vector_help(case: Case) -> str:
    """Return a sentence on why the kernel has no vector instructions."""
    why = next((choice.why for choice in case.kernels if choice.why), "")
    return f"The kernel has no vector instructions{f' ({why})' if why else ''}."


def _wasted(case: Case) -> Iterator[str]:
    """Yield sentences on which multiplications are wasted, and what would avoid them."""
    if case.settled.halo == "recompute" and any(conv.kernel[0] > 1 for conv in case.chain.conv[1:]):
        yield 'halo = "roll" computes no row twice.'
    ragged = [conv.out_channels for conv in case.chain.conv if conv.out_channels % 32 and conv.groups == 1]
    if ragged:
        channels = " and ".join(map(str, dict.fromkeys(ragged)))
        yield f"Lanes stay empty: {channels} channels are no multiple of 32."


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
