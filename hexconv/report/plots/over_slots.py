"""Plot a run over its issue slots: what the thread does, the copies beside it, and the VTCM in use."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import CHARACTER_PIXELS, INK, PAPER, ROLE_COLOURS, TEXT_PIXELS, themed
from hexconv.report.units import in_bytes, unit_for
from hexconv.run.profile import Profile, Span, Transfer
from hexconv.schedule.parts import Does, Part

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
KINDS = {Does.READ_INPUT: "read", Does.READ_FILTER: "read", Does.WRITE_OUTPUT: "write"}
"""What the thread does that is neither a conv nor set-up."""


def timeline_plot(profile: Profile) -> Plot:
    """Plot a run: a line for the thread, a line for the copies of each tensor, and VTCM beneath."""
    end = _drawn_to(profile)
    rows = [*_thread(profile.spans, end), *_engine(profile.transfers, end)]
    numbers = Numbers(
        f"{profile.case}: what runs from which slot to which",
        ("what", "from slot", "to slot", "bytes", "bytes per slot"),
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
    if not profile.transfers:
        return f"{whole} The kernel copies by itself (buffering = single): copies and convs take turns."
    tight = max(_later(profile), key=lambda each: each.bytes_per_slot)
    return (
        f"{whole} Copies run beside the convs, each drawn from its start to the wait for it. "
        f"The engine has to move {tight.bytes_per_slot:.3g} bytes a slot at most once the first have arrived: "
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


def _engine(transfers: Sequence[Transfer], end: int) -> Iterator[dict[str, Any]]:
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
    bars = [(each.start, each.end, each.what, "", "") for each in profile.spans]
    bars += [
        (each.start, each.end, f"copy {each.tensor}", f"{each.bytes:,}", f"{each.bytes_per_slot:.3g}")
        for each in profile.transfers
    ]
    for start, end, what, size, rate in sorted(bars):
        yield what, f"{start:,}", f"{end:,}", size, rate


def _chart(profile: Profile, rows: list[dict[str, Any]], end: int) -> alt.TopLevelMixin:
    """Return the chart: bars above, VTCM in use beneath, on one axis."""
    kinds = [kind for kind in COLOURS if any(row["kind"] == kind for row in rows)]
    colour = alt.Scale(domain=kinds, range=[COLOURS[kind] for kind in kinds])
    across = alt.Scale(domain=[0, end], nice=False)
    x = alt.X(
        "from:Q",
        scale=across,
        title="issue slots",
        axis=alt.Axis(grid=False, format="," if end < 10_000 else "~s", tickCount=8),
    )
    lines = sorted({row["line"] for row in rows}, key=lambda line: (line != "thread 0", line))
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
