"""Plot caches over VTCM, to scale: each apart, and merged into the allocations that they share."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from hexconv.analyze.fit import vtcm_fit
from hexconv.analyze.planned import shared_allocations
from hexconv.lower.vtcm import GRANULE_BYTES, capacity_of
from hexconv.report.plots.places import places
from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import MARK, PAPER, WIDTH, role_scale, themed
from hexconv.report.units import in_bytes, unit_for
from hexconv.report.words import vtcm_words
from hexconv.spec import Case
from hexconv.spec.places import MIXED

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
