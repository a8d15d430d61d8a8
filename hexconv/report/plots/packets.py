"""Plot the MACs per packet of all runs, against two `vrmpy` in every packet."""

from collections.abc import Sequence

import altair as alt

from hexconv.report.packets import LIMIT
from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import BAR, INK, MARK, PEER, TEXT_PIXELS, WIDTH, themed
from hexconv.report.tables import Rate
from hexconv.report.units import share

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
        f"Needed MACs per packet of {len(ordered)} runs on the simulator; two vrmpy in every packet would be {LIMIT}. "
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
    return Plot("packets", "Runs on the simulator", words, _chart(ordered), numbers)


def _chart(rates: Sequence[Rate]) -> alt.TopLevelMixin:
    """Return the chart: dots on a logarithmic axis, and the limit as a line."""
    low = min(rate.macs_per_packet for rate in rates) / 2
    rows = [
        {
            "low": low,
            "name": rate.case if rate.tool == OWN else f"{rate.case}, {rate.tool}",
            "rate": rate.macs_per_packet,
            "text": f"{rate.macs_per_packet:.3g}",
            "colour": BAR if rate.tool == OWN else PEER,
        }
        for rate in rates
    ]
    scale = alt.Scale(type="log", domain=[low, LIMIT * 1.2], nice=False)
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False))
    )
    ticks = alt.Axis(values=[0.001, 0.01, 0.1, 1, 10, 100], format="~g", grid=False)
    x = alt.X("rate:Q", scale=scale, title="needed MACs per packet, logarithmic", axis=ticks)
    lines = base.mark_rule(color=PEER).encode(x=alt.X("low:Q", scale=scale), x2="rate:Q")
    dots = base.mark_circle(size=70, opacity=1).encode(x=x, color=alt.Color("colour:N", scale=None))
    # Behind the limit, where no line crosses them.
    behind = alt.value(WIDTH - SIDES + 4)
    texts = base.mark_text(color=INK, align="left", fontSize=TEXT_PIXELS).encode(x=behind, text="text:N")
    limit = alt.Chart(data([{"limit": LIMIT}])).mark_rule(color=MARK, strokeWidth=2).encode(x="limit:Q")
    return themed((lines + dots + texts + limit).properties(width=WIDTH - SIDES, height=alt.Step(22)))
