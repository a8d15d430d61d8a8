"""Plot memory: caches over time while they live, and over VTCM to scale.

`hexconv.analyze.liveness` has the rule. The caches of HVX kernels are all allocated for the whole run: one statement.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from hexconv.analyze.fit import vtcm_fit
from hexconv.analyze.liveness import Leaf, Life, Node, chain_nest, lives_of, loops_of
from hexconv.analyze.planned import Planned, shared_allocations
from hexconv.report.plots.plot import (
    CHARACTER_PIXELS,
    FAINT,
    INK,
    MARK,
    PAPER,
    TEXT_PIXELS,
    WIDTH,
    Numbers,
    Plot,
    data,
    role_scale,
    themed,
)
from hexconv.report.words import in_bytes, unit_for, vtcm_words
from hexconv.spec import Case
from hexconv.spec.capacities import GRANULE_BYTES, capacity_of
from hexconv.spec.places import MIXED


@dataclass(frozen=True)
class Place:
    """The place of a cache: its allocation, and its first byte if the allocations are stacked one upon the other."""

    cache: str
    role: str
    bytes: int
    allocation: str
    offset_bytes: int


def places(case: Case) -> tuple[Place, ...]:
    """Return the places of all caches of a case."""
    planned = Planned.of(case)
    caches = {cache.name: cache for cache in planned.caches}
    found, offset = [], 0
    for memory in planned.allocations:
        for name in memory.holds:
            found.append(Place(name, caches[name].role, caches[name].bytes, memory.holds[0], offset))
        offset += memory.bytes
    order = list(caches)
    return tuple(sorted(found, key=lambda place: order.index(place.cache)))


@dataclass(frozen=True)
class Timeline:
    """One walk through the loop nest, in which every loop body is run once.

    Attributes:
        statements: what happens, in program order: `read input`, `read filter 1`, `conv 1`, ..., `write output`.
        lives: when each cache lives, in the order of their starts.
    """

    statements: tuple[str, ...]
    lives: tuple[Life, ...]

    def alive(self, statement: int) -> tuple[str, ...]:
        """Names of the caches that live at a statement."""
        return tuple(life.cache for life in self.lives if life.first <= statement <= life.last)


def timeline_of(planned: Planned) -> Timeline:
    """The statements of a plan's loop nest and the lives of its caches.

    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> timeline = timeline_of(Planned(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()))
    >>> timeline.statements[:4]
    ('read input', 'read filter 1', 'conv 1 init', 'conv 1')
    >>> timeline.alive(5)
    ('intermediate1', 'filter2_cache', 'output_cache')
    """
    if planned.nest != "blocks":
        return Timeline(("run",), tuple(Life(cache.name, 0, 0) for cache in planned.caches))
    loops = loops_of(planned.blocks)
    return Timeline(tuple(leaf.does for leaf in _leaves(chain_nest(loops))), lives_of(loops))


def _leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    """All statements, in program order."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from _leaves(node.body)


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


SMALL = 8
"""If the caches take less than one part in so many of VTCM, its end is left out: they'd be too small to see."""


def vtcm_plot(case: Case) -> Plot:
    """Plot all caches side by side, and the allocations that they share; VTCM's end is drawn if it is near."""
    capacity = capacity_of(case.settled)
    memories = shared_allocations(case.chain, case.settled)
    roles = {place.cache: place.role for place in places(case)}
    apart = [(place.cache, place.role, place.bytes) for place in places(case)]
    merged = [(" / ".join(memory.holds), roles[memory.holds[0]], memory.bytes) for memory in memories]
    total, peak = sum(size for *_, size in apart), sum(size for *_, size in merged)
    fit = vtcm_fit(case.chain, case.settled)
    is_small = total * SMALL < capacity
    unit = unit_for(total if is_small else max(capacity, total))
    rows = [*_bar("compacted", apart, unit.bytes), *_bar("merged", merged, unit.bytes)]
    who = "Those in VTCM" if case.settled.storage in MIXED else "Each allocation"
    words = (
        f"The caches take {in_bytes(total)} apart and {in_bytes(peak)} merged. {who} in whole granules of "
        f"{in_bytes(GRANULE_BYTES)}: {in_bytes(fit.demand_bytes)}, which {'fits' if fit.fits else 'does not fit'} "
        f"{vtcm_words(case.settled)}."
    )
    numbers = Numbers(
        f"{case.name}: caches apart (compacted) and allocations (merged)",
        ("what", "kind", "bytes"),
        tuple((row["name"], row["kind"], f"{row['bytes']:,}") for row in rows),
    )
    line = "" if is_small else "; the line is the end of VTCM"
    chart = _bars(rows, None if is_small else capacity / unit.bytes, f"{unit.name}{line}")
    return Plot(f"{case.name}-vtcm", "Over VTCM, to scale", words, chart, numbers)


def _bar(kind: str, parts: Sequence[tuple[str, str, int]], unit_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield the parts of one bar, from left to right."""
    start = 0
    for name, role, size in parts:
        ends = {"start": start / unit_bytes, "end": (start + size) / unit_bytes}
        yield {"kind": kind, "name": name, "role": role, "bytes": size, **ends}
        start += size


def _bars(rows: list[dict[str, Any]], capacity: float | None, title: str) -> alt.TopLevelMixin:
    """Return the chart: two bars, and a line where VTCM ends if the end is near."""
    widest = max(capacity or 0, *(row["end"] for row in rows)) * 1.02
    scale = alt.Scale(domain=[0, widest], nice=False)
    colour = alt.Color("role:N", scale=role_scale([row["role"] for row in rows]), title=None)
    bars = (
        alt.Chart(data(rows))
        .mark_bar(stroke=PAPER, strokeWidth=1, height=26)
        .encode(
            x=alt.X("start:Q", scale=scale, title=title, axis=alt.Axis(grid=False, tickCount=5)),
            x2="end:Q",
            y=alt.Y("kind:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False)),
            color=colour,
        )
    )
    ends = [] if capacity is None else [{"capacity": capacity}]
    lines = [alt.Chart(data([end])).mark_rule(color=MARK, strokeWidth=2).encode(x="capacity:Q") for end in ends]
    return themed(alt.layer(bars, *lines).properties(width=WIDTH - 70, height=76))
