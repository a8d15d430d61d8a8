"""Plot issue slots: a run's thread, matrix engine and copies over slots, MACs per packet, roofline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from hexconv.report.plots.plot import (
    BAR,
    CHARACTER_PIXELS,
    FAINT,
    INK,
    MARK,
    PAPER,
    PEER,
    ROLE_COLOURS,
    TEXT_PIXELS,
    WIDTH,
    Numbers,
    Plot,
    data,
    themed,
)
from hexconv.report.tables import LIMIT, Rate
from hexconv.report.words import counted, in_bytes, share, unit_for
from hexconv.run.profile import Multiplied, Profile, Span, Transfer, words_of
from hexconv.tir.parts import Does, Part

ACROSS = 860
PADDING = {"left": 24, "top": 8, "right": 8, "bottom": 8}
"""Pixels around the chart; they leave room at the left for fonts in which the names of lines are wider."""
MOST_SPANS = 240
"""The most bars of the thread that are drawn; later ones look the same."""
MOST_ROWS = 60
COLOURS = {
    "set up": ROLE_COLOURS["offset"],
    "read": ROLE_COLOURS["input"],
    "conv, odd": ROLE_COLOURS["intermediate"],
    "conv, even": ROLE_COLOURS["accumulator"],
    "write": ROLE_COLOURS["output"],
    "copy": ROLE_COLOURS["filter"],
}
MATRIX = "matrix engine"
KINDS = {Does.READ_INPUT: "read", Does.READ_FILTER: "read", Does.WRITE_OUTPUT: "write"}
"""What the thread does that is neither a conv nor set-up."""


def timeline_plot(profile: Profile) -> Plot:
    """Plot a run: lines for the thread, the matrix engine and the copies of each tensor, and VTCM beneath."""
    end = _drawn_to(profile)
    rows = [*_thread(profile.spans, end), *_matrix(profile.multiplied, end), *_copies(profile.transfers, end)]
    numbers = Numbers(
        f"{profile.case}: what runs from which slot to which",
        (
            "what",
            "from slot",
            "to slot",
            "bytes",
            "bytes per slot",
            *(("MACs", "MACs per slot") if profile.multiplied else ()),
        ),
        tuple(_rows(profile))[:MOST_ROWS],
    )
    name = f"{profile.case}-timeline"
    return Plot(name, "Over issue slots", _words(profile, end), _chart(profile, rows, end), numbers, is_wide=True)


def _drawn_to(profile: Profile) -> int:
    """Return the slot at which the drawing ends."""
    spans = profile.spans
    return profile.marked_slots if len(spans) <= MOST_SPANS else spans[MOST_SPANS - 1].end


def _words(profile: Profile, end: int) -> str:
    """Describe the run: how many slots it takes, and how many bytes a slot the copies must move to keep up."""
    slots, marked = profile.slots.issue_slots, profile.marked_slots
    other = "more" if marked > slots else "fewer"
    marks = f"with the marks that tell its parts apart {abs(marked - slots):,} {other}"
    whole = f"The run takes {slots:,} issue slots, {marks}." + (
        "" if end == marked else f" The first {end:,} are drawn."
    )
    if profile.multiplied:
        busiest = max(profile.multiplied, key=lambda each: each.macs_per_slot)
        whole += (
            " The matrix engine's packets take no slots: a bar lasts from the first one of a part to the part's end. "
            f"The engine has to do {busiest.macs_per_slot:,.0f} MACs a slot at most, so that the thread never waits: "
            f"{busiest.macs:,} of {words_of(busiest.part)} in {busiest.end - busiest.start:,} slots."
        )
    if not profile.transfers:
        return f"{whole} The kernel copies by itself (buffering = single): copies and convs alternate."
    tight = max(_later(profile), key=lambda each: each.bytes_per_slot)
    return (
        f"{whole} Copies run beside the convs, each drawn from its start to the wait for it. "
        f"The copy engine has to move {tight.bytes_per_slot:.3g} bytes a slot at most once the first have arrived: "
        f"{in_bytes(tight.bytes)} of {tight.tensor} in {tight.end - tight.start:,} slots."
    )


def _later(profile: Profile) -> Sequence[Transfer]:
    """Return the copies that overlap with a conv: not those that the first conv waits for, nor the last copies out."""
    convs = [span for span in profile.spans if span.part.does == Does.CONV]
    first, last = (convs[0].start, convs[-1].end) if convs else (0, 0)
    return [each for each in profile.transfers if each.end > first and each.start < last] or profile.transfers


def _thread(spans: Sequence[Span], end: int) -> Iterator[dict[str, Any]]:
    """Yield the bars of the thread."""
    for span in spans:
        if span.start < end:
            yield _bar("thread 0", span.start, span.end, _kind(span.part), span.what, end)


def _matrix(multiplied: Sequence[Multiplied], end: int) -> Iterator[dict[str, Any]]:
    """Yield the bars of the matrix engine."""
    for each in multiplied:
        if each.start < end:
            text = f"{each.macs_per_slot:,.0f} MACs a slot"
            yield _bar(MATRIX, each.start, min(each.end, end), _kind(each.part), text, end)


def _copies(transfers: Sequence[Transfer], end: int) -> Iterator[dict[str, Any]]:
    """Yield the bars of the copies; a tensor with two copies under way at once has two lines."""
    ends: dict[str, list[int]] = {}
    for each in transfers:
        if each.start >= end:
            continue
        free = ends.setdefault(each.tensor, [])
        line = next((number for number, until in enumerate(free) if until <= each.start), len(free))
        free[line : line + 1] = [each.end]
        name = f"copy {each.tensor}" + (f" ({line + 1})" if line else "")
        yield _bar(name, each.start, min(each.end, end), "copy", in_bytes(each.bytes), end)


def _bar(line: str, start: int, end: int, kind: str, text: str, drawn_to: int) -> dict[str, Any]:
    fits = (end - start) / drawn_to * ACROSS >= CHARACTER_PIXELS * len(text)
    return {"line": line, "from": start, "to": end, "kind": kind, "text": text if fits else ""}


def _kind(part: Part) -> str:
    """Return the kind of work that a thread does, which chooses the colour."""
    if part.does == Does.CONV:
        return "conv, odd" if part.conv % 2 else "conv, even"
    return KINDS.get(part.does, "set up")


def _rows(profile: Profile) -> Iterator[tuple[str, ...]]:
    """Yield all bars as rows of text, sorted by their starts."""
    empty = ("", "") if profile.multiplied else ()
    bars = [(each.start, each.end, each.what, "", "", *empty) for each in profile.spans]
    bars += [
        (each.start, each.end, f"copy {each.tensor}", f"{each.bytes:,}", f"{each.bytes_per_slot:.3g}", *empty)
        for each in profile.transfers
    ]
    bars += [
        (
            each.start,
            each.end,
            f"{MATRIX}, {words_of(each.part)}",
            "",
            "",
            f"{each.macs:,}",
            f"{each.macs_per_slot:,.0f}",
        )
        for each in profile.multiplied
    ]
    for start, end, what, *rest in sorted(bars):
        yield what, f"{start:,}", f"{end:,}", *rest


def _chart(profile: Profile, rows: list[dict[str, Any]], end: int) -> alt.TopLevelMixin:
    """Return the chart: bars above, VTCM in use beneath, on one axis."""
    kinds = [kind for kind in COLOURS if any(row["kind"] == kind for row in rows)]
    colour = alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds])
    across = alt.Scale(domain=[0, end], nice=False)
    x = alt.X(
        "from:Q",
        scale=across,
        title="issue slots",
        axis=alt.Axis(grid=False, format=",d" if end < 10_000 else "~s", tickCount=8),
    )
    lines = sorted({row["line"] for row in rows}, key=lambda line: (line != "thread 0", line != MATRIX, line))
    y = alt.Y("line:N", sort=lines, title=None, axis=alt.Axis(ticks=False, domain=False))
    base = alt.Chart(data(rows))
    bars = base.mark_bar(stroke=PAPER, strokeWidth=0.5, height=22).encode(
        x=x, x2="to:Q", y=y, color=alt.Color("kind:N", scale=colour, title=None)
    )
    labelled = alt.Chart(data([row | {"middle": (row["from"] + row["to"]) / 2} for row in rows if row["text"]]))
    texts = labelled.mark_text(color=INK, fontSize=TEXT_PIXELS).encode(
        x=alt.X("middle:Q", scale=across), y=y, text="text:N"
    )
    above = (bars + texts).properties(width=ACROSS, height=alt.Step(28))
    whole = themed(alt.vconcat(above, _rooms(profile, across, end), spacing=6) if profile.rooms else above)
    return whole.properties(padding=PADDING)  # pyright: ignore[reportAttributeAccessIssue]


def _rooms(profile: Profile, across: alt.Scale, end: int) -> alt.Chart:
    """Return the chart of the VTCM in use, as stairs."""
    unit = unit_for(max(room.bytes for room in profile.rooms))
    points = [{"slot": min(room.slot, end), "size": room.bytes / unit.bytes} for room in profile.rooms]
    points.append({"slot": end, "size": points[-1]["size"] if end < profile.marked_slots else 0})
    return (
        alt.Chart(data(points))
        .mark_area(interpolate="step-after", color=ROLE_COLOURS["window"])
        .encode(
            x=alt.X("slot:Q", scale=across, title=None, axis=alt.Axis(labels=False, ticks=False, grid=False)),
            y=alt.Y("size:Q", title=f"VTCM, {unit.name}", axis=alt.Axis(tickCount=3)),
        )
        .properties(width=ACROSS, height=54)
    )


MEMORY = (1, 4, 16, 64)
"""Bytes per slot of the memories that are drawn for comparison, since no figure for a phone is published."""
LOWEST = 1.0


@dataclass(frozen=True)
class Reached:
    """A case on the simulator.

    Attributes:
        case: its name.
        macs: the needed MACs.
        moved_bytes: the bytes moved between memory and caches.
        slots: the issue slots of its run.
        limit: the MACs per slot that two multiplications in every slot would do.
    """

    case: str
    macs: int
    moved_bytes: int
    slots: int
    limit: float

    @property
    def macs_per_slot(self) -> float:
        """The MACs per issue slot that the kernel reaches."""
        return self.macs / self.slots

    @property
    def macs_per_byte(self) -> float:
        """The MACs that each moved byte serves."""
        return self.macs / self.moved_bytes

    @property
    def bytes_per_slot(self) -> float:
        """The bytes per slot that memory must move so that the kernel never waits."""
        return self.moved_bytes / self.slots


def roofline_plot(own: Reached, others: Sequence[Reached]) -> Plot:
    """Plot one case among the others that were run."""
    words = (
        f"{own.macs_per_slot:.4g} of {own.limit:g} MACs per slot. Each byte moved serves {own.macs_per_byte:.3g} MACs: "
        f"a memory that moves {own.bytes_per_slot:.3g} bytes a slot keeps up. With a slower one, memory is the limit."
    )
    everyone = sorted({own, *others}, key=lambda each: -each.macs_per_slot)
    numbers = Numbers(
        f"{own.case}: cases that were run on the simulator",
        ("case", "MACs per slot", "MACs per byte", "bytes per slot"),
        tuple(
            (each.case, f"{each.macs_per_slot:.4g}", f"{each.macs_per_byte:.3g}", f"{each.bytes_per_slot:.3g}")
            for each in everyone
        ),
    )
    return Plot(f"{own.case}-roofline", "Roofline, by slots", words, _roofline_chart(own, everyone), numbers)


def _roofline_chart(own: Reached, everyone: Sequence[Reached]) -> alt.TopLevelMixin:
    """Return the chart: the roofs of some memories under the roof of the multiplier, and a dot for each case."""
    left = min(own.limit / MEMORY[-1], *(each.macs_per_byte for each in everyone)) / 2
    right = max(own.limit / MEMORY[0], *(each.macs_per_byte for each in everyone)) * 2
    low = min(LOWEST, *(each.macs_per_slot for each in everyone)) / 2
    x_scale = alt.Scale(type="log", domain=[left, right], nice=False)
    y_scale = alt.Scale(type="log", domain=[low, own.limit * 1.8], nice=False)
    x = alt.X(
        "x:Q",
        scale=x_scale,
        title="MACs per byte moved, logarithmic",
        axis=alt.Axis(tickCount=5, format=",~g", grid=False),
    )
    y = alt.Y(
        "y:Q",
        scale=y_scale,
        title="MACs per issue slot, logarithmic",
        axis=alt.Axis(tickCount=4, format="~g", grid=False),
    )
    roofs = [
        {"roof": f"{rate} B", "x": at, "y": min(own.limit, rate * at), "at": number}
        for rate in MEMORY
        for number, at in enumerate((max(left, low / rate), own.limit / rate))
    ]
    flat = [{"x": own.limit / MEMORY[-1], "y": own.limit}, {"x": right, "y": own.limit}]
    lines = alt.Chart(data(roofs)).mark_line(color=FAINT, strokeWidth=1, strokeDash=[4, 3])
    lines = lines.encode(x=x, y=y, detail="roof:N", order="at:O")
    names = [row | {"text": f"{row['roof']}/slot"} for row in roofs if row["at"] == 0]
    labels = alt.Chart(data(names)).mark_text(
        color=FAINT, fontSize=TEXT_PIXELS, align="left", dx=14, dy=6, baseline="top"
    )
    top = alt.Chart(data(flat)).mark_line(color=MARK, strokeWidth=2).encode(x="x:Q", y="y:Q")
    dots = _dots([each for each in everyone if each != own]).mark_circle(color=PEER, size=36, opacity=1)
    mine = _dots([own])
    ring = mine.mark_point(color=MARK, size=110, strokeWidth=2).encode(x="x:Q", y="y:Q")
    name = mine.mark_text(color=INK, dy=16, fontSize=TEXT_PIXELS).encode(x="x:Q", y="y:Q", text=alt.value("this case"))
    layers = [lines, labels.encode(x="x:Q", y="y:Q", text="text:N"), top]
    layers += [dots.encode(x="x:Q", y="y:Q")] if len(everyone) > 1 else []
    return themed(alt.layer(*layers, ring, name).properties(width=WIDTH - 60, height=220))


def _dots(cases: Sequence[Reached]) -> alt.Chart:
    return alt.Chart(data([{"x": each.macs_per_byte, "y": each.macs_per_slot} for each in cases]))


OWN = "hexconv"
SIDES = 155
"""The pixels left free at both sides, for the names of runs and for their figures."""


def packets_plot(rates: Sequence[Rate]) -> Plot | None:
    """Plot a dot for each run, the best on top; None without runs."""
    if not rates:
        return None
    ordered = sorted(rates, key=lambda rate: (-rate.macs_per_packet, rate.case, rate.tool))
    best = next((rate for rate in ordered if rate.tool == OWN), ordered[0])
    words = (
        f"Needed MACs per packet of {counted(len(ordered), 'run')} on the simulator; two vrmpy each would be {LIMIT}. "
        f"{best.case} comes closest with {best.macs_per_packet:.4g}, {share(best.macs_per_packet, LIMIT)} of that."
    )
    numbers = Numbers(
        "Needed MACs per packet, of the whole kernel",
        ("case", "tool", "MACs per packet", "of two vrmpy a packet", "packets"),
        tuple(
            (
                rate.case,
                rate.tool,
                f"{rate.macs_per_packet:.4g}",
                share(rate.macs_per_packet, LIMIT),
                "" if rate.packets is None else f"{rate.packets:,}",
            )
            for rate in ordered
        ),
    )
    return Plot("packets", "Runs on the simulator", words, _packets_chart(ordered), numbers)


def _packets_chart(rates: Sequence[Rate]) -> alt.TopLevelMixin:
    """Return the chart: dots on an axis from zero, and the limit as a line."""
    rows = [
        {
            "low": 0,
            "name": rate.case if rate.tool == OWN else f"{rate.case}, {rate.tool}",
            "rate": rate.macs_per_packet,
            "text": f"{rate.macs_per_packet:.3g}",
            "colour": BAR if rate.tool == OWN else PEER,
        }
        for rate in rates
    ]
    scale = alt.Scale(domain=[0, LIMIT * 1.05], nice=False)
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    ticks = alt.Axis(values=[LIMIT * quarter // 4 for quarter in range(5)], format="d", grid=False)
    x = alt.X("rate:Q", scale=scale, title="needed MACs per packet", axis=ticks)
    lines = base.mark_rule(color=PEER).encode(x=alt.X("low:Q", scale=scale), x2="rate:Q")
    dots = base.mark_circle(size=70, opacity=1).encode(x=x, color=alt.Color("colour:N", scale=None))
    # Behind the limit, where no line crosses them.
    behind = alt.value(WIDTH - SIDES + 4)
    texts = base.mark_text(color=INK, align="left", fontSize=TEXT_PIXELS).encode(x=behind, text="text:N")
    limit = alt.Chart(data([{"limit": LIMIT}])).mark_rule(color=MARK, strokeWidth=2).encode(x="limit:Q")
    return themed((lines + dots + texts + limit).properties(width=WIDTH - SIDES, height=alt.Step(22)))
