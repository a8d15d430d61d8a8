"""Plot memory over time: one walk through the loop nest, each cache at its place while it lives."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from hexconv.analyze.planned import Planned
from hexconv.analyze.timeline import Timeline, timeline_of
from hexconv.report.plots.places import Place, places
from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import CHARACTER_PIXELS, FAINT, INK, PAPER, TEXT_PIXELS, WIDTH, role_scale, themed
from hexconv.report.units import in_bytes, unit_for
from hexconv.spec import Case

ACROSS, UP = WIDTH - 60, 190
LINE = 14


def lifetimes_plot(case: Case) -> Plot:
    """Plot memory over time: one walk through the loop nest, each cache at its place while it lives."""
    planned, home = Planned.of(case), {place.cache: place for place in places(case)}
    timeline, peak = timeline_of(planned), sum(memory.bytes for memory in planned.allocations)
    unit = unit_for(peak)
    rows = list(_boxes(timeline, home, unit.bytes))
    words = _words(timeline, home, peak)
    numbers = _numbers(case.name, timeline, home)
    chart = _map(rows, timeline.statements, peak / unit.bytes, unit.name)
    return Plot(f"{case.name}-lifetimes", "Over time", words, chart, numbers)


def _words(timeline: Timeline, home: dict[str, Place], peak: int) -> str:
    """Describe the plot: how many caches there are, and when the most bytes are alive."""
    statements = timeline.statements
    if len(statements) == 1:
        return f"All {len(timeline.lives)} caches live for the whole run: {in_bytes(peak)}."
    busiest = max(range(len(statements)), key=lambda at: _alive_bytes(timeline, at, home))
    most = in_bytes(_alive_bytes(timeline, busiest, home))
    return (
        f"{len(timeline.lives)} caches over {len(statements)} statements; most is alive at "
        f"“{statements[busiest]}”: {most} of the {in_bytes(peak)} allocated."
    )


def _boxes(timeline: Timeline, home: dict[str, Place], unit_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield the rectangle of every cache: the statements that it lives over, and its bytes in some unit."""
    for life in timeline.lives:
        place = home[life.cache]
        ends = {"low": place.offset_bytes / unit_bytes, "high": (place.offset_bytes + place.bytes) / unit_bytes}
        yield {"cache": life.cache, "role": place.role, "from": life.first, "to": life.last + 1, **ends}


def _numbers(case: str, timeline: Timeline, home: dict[str, Place]) -> Numbers:
    """Return the table of every cache with its first and last statement."""
    return Numbers(
        f"{case}: lives of the caches, in program order",
        ("cache", "from", "to", "in the memory of", "bytes"),
        tuple(
            (
                life.cache,
                timeline.statements[life.first],
                timeline.statements[life.last],
                home[life.cache].allocation,
                f"{home[life.cache].bytes:,}",
            )
            for life in timeline.lives
        ),
    )


def _alive_bytes(timeline: Timeline, statement: int, home: dict[str, Place]) -> int:
    """Return the bytes of the caches that live at a statement; bytes that caches share count once."""
    alive = [home[name] for name in timeline.alive(statement)]
    largest: dict[str, int] = {}
    for place in alive:
        largest[place.allocation] = max(largest.get(place.allocation, 0), place.bytes)
    return sum(largest.values())


def _map(rows: list[dict[str, Any]], statements: Sequence[str], peak: float, unit: str) -> alt.TopLevelMixin:
    """Return the chart: rectangles over time (right) and memory (up), with names where there is room."""
    axis = _statement_axis(statements)
    x = alt.X("from:Q", scale=alt.Scale(domain=[0, len(statements)], nice=False), axis=axis)
    y = alt.Y(
        "low:Q", scale=alt.Scale(domain=[0, peak], nice=False), title=unit, axis=alt.Axis(grid=False, tickCount=5)
    )
    colour = alt.Color("role:N", scale=role_scale([row["role"] for row in rows]), title=None)
    boxes = alt.Chart(data(rows)).mark_rect(stroke=PAPER, strokeWidth=1)
    boxes = boxes.encode(x=x, x2="to:Q", y=y, y2="high:Q", color=colour)
    edge = alt.Chart(data([{"peak": peak}])).mark_rule(color=FAINT, strokeDash=[3, 3]).encode(y="peak:Q")
    names = alt.Chart(data(list(_names(rows, len(statements), peak)))).mark_text(color=INK, fontSize=TEXT_PIXELS)
    names = names.encode(x=alt.X("x:Q", axis=axis), y="y:Q", text="cache:N")
    return themed((boxes + edge + names).properties(width=ACROSS, height=UP))


def _statement_axis(statements: Sequence[str]) -> alt.Axis:
    """Return the axis of statements, each label in the middle of its time."""
    middles = [at + 0.5 for at in range(len(statements))]
    choices = " : ".join(
        f"datum.value == {middle} ? {name!r}" for middle, name in zip(middles, statements, strict=True)
    )
    look = {"labelAngle": -90, "labelOverlap": False, "grid": False, "title": None}
    return alt.Axis(values=middles, labelExpr=f"{choices} : ''", **look)


def _names(rows: list[dict[str, Any]], statements: int, peak: float) -> Iterator[dict[str, Any]]:
    """Yield the names of the rectangles that have room for a name."""
    for row in rows:
        across = (row["to"] - row["from"]) * ACROSS / statements
        up = (row["high"] - row["low"]) * UP / peak
        if across > CHARACTER_PIXELS * len(row["cache"]) and up > LINE:
            middle = {"x": (row["from"] + row["to"]) / 2, "y": (row["low"] + row["high"]) / 2}
            yield {"cache": row["cache"], **middle}
