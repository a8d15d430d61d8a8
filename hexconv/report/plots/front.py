"""Plot footprint against traffic: all plans of a chain, and the front of those that no other plan beats in both."""

import altair as alt

from hexconv.lower.vtcm import capacity_of
from hexconv.report.costs import PlanCost, chain_costs, own_cost
from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import BAR, FAINT, INK, MARK, PAPER, PEER, TEXT_PIXELS, WIDTH, themed
from hexconv.report.units import counted, in_bytes, times, unit_for
from hexconv.report.words import changed_knobs, knob_words
from hexconv.spec import Case, Plan


def front_plot(case: Case) -> Plot:
    """Plot the Pareto front of a chain over all knobs of the search that leave rows whole."""
    own = own_cost(case)
    costs, front = chain_costs(case)
    best = min((cost for cost in front if cost.fits), key=lambda cost: cost.traffic_bytes, default=None)
    advice = _told(case, own, best) if best else "No plan of the front fits."
    words = (
        f"{counted(len(costs), 'plan')} of whole rows, {len(front)} of them on the front. "
        f"This case: {in_bytes(own.footprint_bytes)} of memory, {in_bytes(own.traffic_bytes)} moved. {advice}"
    )
    numbers = Numbers(
        f"{case.name}: plans that no other beats in both footprint and traffic",
        ("plan: what this case changes", "footprint", "traffic", "MACs done / needed", "fits VTCM"),
        tuple(
            (
                _changed(case, cost.plan),
                in_bytes(cost.footprint_bytes),
                in_bytes(cost.traffic_bytes),
                times(cost.recompute, 1),
                "yes" if cost.fits else "no",
            )
            for cost in front
        ),
    )
    chart = _chart(costs, front, own, capacity_of(case.settled))
    return Plot(f"{case.name}-front", "Footprint against traffic", words, chart, numbers)


def _told(case: Case, own: PlanCost, best: PlanCost) -> str:
    """Say which plan of the front that fits moves the least."""
    if own.fits and best.traffic_bytes >= own.traffic_bytes:
        return "None of them that fits moves less."
    size = f"{in_bytes(best.footprint_bytes)} and {in_bytes(best.traffic_bytes)} moved"
    return f"The least traffic that fits: {_changed(case, best.plan)}, with {size}."


def _changed(case: Case, plan: Plan) -> str:
    """Name a plan by the knobs to change for it."""
    return knob_words(changed_knobs(case, plan)) or "this case"


def _chart(costs: tuple[PlanCost, ...], front: tuple[PlanCost, ...], own: PlanCost, capacity: int) -> alt.TopLevelMixin:
    """The chart: points on logarithmic axes, the front as stairs, VTCM's end as a line, a ring around the own plan."""
    x_unit = unit_for(min(cost.footprint_bytes for cost in costs))
    y_unit = unit_for(min(cost.traffic_bytes for cost in costs))
    points = sorted({(c.footprint_bytes / x_unit.bytes, c.traffic_bytes / y_unit.bytes) for c in costs})
    line = [(c.footprint_bytes / x_unit.bytes, c.traffic_bytes / y_unit.bytes) for c in front]
    mine = [(own.footprint_bytes / x_unit.bytes, own.traffic_bytes / y_unit.bytes)]
    x = alt.X("x:Q", title=f"footprint, {x_unit.name}, logarithmic", scale=_log([x for x, _ in points]), axis=_axis())
    y = alt.Y("y:Q", title=f"traffic, {y_unit.name}, logarithmic", scale=_log([y for _, y in points]), axis=_axis())
    dots = _layer(points).mark_circle(color=PEER, size=22, opacity=1).encode(x=x, y=y)
    stairs = _layer(line).mark_line(color=BAR, interpolate="step-after", strokeWidth=2).encode(x="x:Q", y="y:Q")
    corners = _layer(line).mark_circle(color=BAR, size=50, opacity=1, stroke=PAPER).encode(x="x:Q", y="y:Q")
    ring = _layer(mine).mark_point(color=MARK, size=110, strokeWidth=2).encode(x="x:Q", y="y:Q")
    name = (
        _layer(mine)
        .mark_text(color=INK, align="left", dx=-5, dy=-13, fontSize=TEXT_PIXELS)
        .encode(x="x:Q", y="y:Q", text=alt.value("this case"))
    )
    layers = [dots, stairs, corners, ring, name]
    if min(points)[0] <= capacity / x_unit.bytes <= max(points)[0] * 1.2:
        end = alt.Chart(data([{"x": capacity / x_unit.bytes}]))
        layers.append(end.mark_rule(color=FAINT, strokeDash=[4, 3]).encode(x="x:Q"))
    return themed(alt.layer(*layers).properties(width=WIDTH - 60, height=220))


def _layer(points: list[tuple[float, float]]) -> alt.Chart:
    return alt.Chart(data([{"x": x, "y": y} for x, y in points]))


def _log(values: list[float]) -> alt.Scale:
    """Return a logarithmic scale with some room at its ends."""
    return alt.Scale(type="log", domain=[min(values) * 0.8, max(values) * 1.25], nice=False)


def _axis() -> alt.Axis:
    return alt.Axis(tickCount=4, format=",~g", grid=True)
