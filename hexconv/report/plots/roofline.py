"""Plot MACs per issue slot against MACs per byte moved: it shows whether the multiplier or memory limits a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import FAINT, INK, MARK, PEER, TEXT_PIXELS, WIDTH, themed

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
    return Plot(f"{own.case}-roofline", "Roofline, by slots", words, _chart(own, everyone), numbers)


def _chart(own: Reached, everyone: Sequence[Reached]) -> alt.TopLevelMixin:
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
