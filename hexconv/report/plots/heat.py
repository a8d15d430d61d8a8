"""What other splits would cost: k_split x h_split, a colour for the cost and a mark for what does not fit."""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from hexconv.lower.vtcm import capacity_bytes
from hexconv.report.costs import PlanCost, split_costs
from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import FAINT, HEAT, INK, MARK, REFUSED, WIDTH, themed
from hexconv.report.units import in_bytes, unit_for
from hexconv.spec import Case

REFUSED_SIGN = "✗"


def split_plots(case: Case) -> tuple[Plot, ...]:
    """Heat maps of footprint, traffic and recompute over the splits; footprint alone for HVX kernels."""
    costs = split_costs(case)
    plots = [_bytes_plot(case, costs, "footprint", "Footprint", lambda cost: cost.footprint_bytes)]
    if all(cost.traffic_bytes is not None for cost in costs):
        plots.append(_bytes_plot(case, costs, "traffic", "Traffic", lambda cost: cost.traffic_bytes or 0))
        plots.append(_recompute_plot(case, costs))
    return tuple(plots)


def _bytes_plot(case: Case, costs: Sequence[PlanCost], name: str, title: str, value: Callable[[PlanCost], int]) -> Plot:
    """A heat map of bytes."""
    unit = unit_for(max(map(value, costs)))
    shown = [(value(cost), unit.of(value(cost))) for cost in costs]
    return _plot(case, costs, name, f"{title}, {unit.name}", shown, lambda cost: in_bytes(value(cost)))


def _recompute_plot(case: Case, costs: Sequence[PlanCost]) -> Plot:
    """A heat map of MACs done over MACs needed."""
    shown = [(cost.recompute, f"{cost.recompute:.2f}") for cost in costs]
    title = "Recompute, MACs done / needed"
    return _plot(case, costs, "recompute", title, shown, lambda cost: f"{cost.recompute:.2f} times")


def _plot(
    case: Case,
    costs: Sequence[PlanCost],
    name: str,
    title: str,
    shown: Sequence[tuple[float, str]],
    told: Callable[[PlanCost], str],
) -> Plot:
    """One heat map: a value and its text for every plan."""
    rows = [_row(case, cost, value, text) for cost, (value, text) in zip(costs, shown, strict=True)]
    fitting = [cost for cost in costs if cost.fits]
    what = title.partition(",")[0]
    least = min(zip(shown, costs, strict=True), key=lambda pair: (not pair[1].fits, pair[0][0]))[1]
    words = (
        f"{what} over k_split and h_split. {len(fitting)} of {len(costs)} plans fit the "
        f"{in_bytes(capacity_bytes(case.plan.arch))} of {case.plan.arch}. "
        f"Least{' of those' if fitting else ''}: {told(least)} at k_split {least.plan.k_split}, "
        f"h_split {least.plan.h_split}."
    )
    numbers = Numbers(
        f"{case.name}: {what.lower()} by splits",
        ("k_split", "h_split", what.lower(), "fits VTCM"),
        tuple((str(c.plan.k_split), str(c.plan.h_split), told(c), "yes" if c.fits else "no") for c in costs),
    )
    return Plot(f"{case.name}-{name}", title, words, _map(rows), numbers)


def _row(case: Case, cost: PlanCost, value: float, text: str) -> dict[str, Any]:
    """One cell."""
    plan = cost.plan
    return {
        "k": plan.k_split,
        "h": plan.h_split,
        "value": value,
        "text": text if cost.fits else f"{REFUSED_SIGN}{text}",
        "fits": cost.fits,
        "own": plan == case.plan,
    }


def _map(rows: list[dict[str, Any]]) -> alt.TopLevelMixin:
    """Cells, their texts, and a frame around the case's own plan."""
    values = [row["value"] for row in rows]
    low, high = min(values), max(values)
    for row in rows:
        level = int((row["value"] - low) / (high - low) * len(HEAT)) if high > low else 0
        row["colour"] = HEAT[min(level, len(HEAT) - 1)] if row["fits"] else REFUSED
    columns, lines = len({row["h"] for row in rows}), len({row["k"] for row in rows})
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False)
    base = alt.Chart(data(rows)).encode(
        x=alt.X("h:O", title="h_split", axis=axis),
        y=alt.Y("k:O", title="k_split", axis=axis, sort="descending"),
    )
    cells = base.mark_rect().encode(color=alt.Color("colour:N", scale=None))
    inner = alt.Scale(paddingInner=0.04)
    cells = cells.encode(x=alt.X("h:O", title="h_split", axis=axis, scale=inner))
    ink = alt.condition("datum.fits", alt.value(INK), alt.value(FAINT))
    texts = base.mark_text(fontSize=10 if columns <= 6 else 9).encode(text="text:N", color=ink)
    own = base.transform_filter("datum.own").mark_rect(fill=None, stroke=MARK, strokeWidth=2)
    size = {"width": min(WIDTH - 46, 74 * columns), "height": max(28, min(30 * lines, 260))}
    return themed((cells + texts + own).properties(**size))
