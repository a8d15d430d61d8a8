"""Heat maps of what other splits cost: k_split x h_split, a colour for the cost, a mark where a plan does not fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import altair as alt

from hexconv.report.costs import PlanCost, split_costs
from hexconv.report.plots.plot import Numbers, Plot, data
from hexconv.report.plots.theme import FAINT, HEAT, INK, MARK, REFUSED, TEXT_PIXELS, WIDTH, themed
from hexconv.report.sweeps import BySplits, Measured
from hexconv.report.units import counted, in_bytes, unit_for
from hexconv.report.words import vtcm_words
from hexconv.spec import Case, Plan

REFUSED_SIGN = "✗"


@dataclass(frozen=True)
class Quantity:
    """The quantity that a heat map shows.

    Attributes:
        name: its part of the file's name.
        title: its name and its unit.
        value: the function that gives its value for a plan, by the closed forms.
        short: the function that writes a value as it stands in a cell.
        told: the function that writes a value with its unit.
        measured: the function that takes its value out of what a sweep measured of a plan.
    """

    name: str
    title: str
    value: Callable[[PlanCost], float]
    short: Callable[[float], str]
    told: Callable[[float], str]
    measured: Callable[[Measured], float | None]

    @property
    def what(self) -> str:
        """The title without the unit."""
        return self.title.partition(",")[0]


def split_plots(case: Case, measured: BySplits) -> tuple[Plot, ...]:
    """Plot footprint, traffic and recompute over the splits, as heat maps.

    Args:
        case: the case whose plan is split in other ways.
        measured: what a sweep measured of its plan with other splits: it stands in the tables, and MACs per packet have
            a heat map of their own.
    """
    costs = split_costs(case)
    quantities = (_sized("footprint_bytes", costs), _sized("traffic_bytes", costs), RECOMPUTE)
    plots = [_plot(case, costs, quantity, measured) for quantity in quantities]
    run = {splits: one.macs_per_packet for splits, one in measured.items() if one.macs_per_packet is not None}
    ran = [cost for cost in costs if _splits(cost) in run]
    return (*plots, _plot(case, ran, _rate(run), measured)) if ran else tuple(plots)


def _sized(field: str, costs: Sequence[PlanCost]) -> Quantity:
    """Return the footprint or the traffic of plans, in the unit that suits the largest."""
    size, name = attrgetter(field), field.removesuffix("_bytes")
    unit = unit_for(max(map(size, costs)))
    return Quantity(name, f"{name.capitalize()}, {unit.name}", size, unit.of, in_bytes, size)


RECOMPUTE = Quantity(
    name="recompute",
    title="Recompute, MACs done / needed",
    value=attrgetter("recompute"),
    short=lambda value: f"{value:.2f}",
    told=lambda value: f"{value:.2f} times",
    measured=attrgetter("recompute"),
)


def _rate(run: dict[tuple[int, int], float]) -> Quantity:
    """Return the MACs per packet of plans that a sweep ran on the simulator."""
    return Quantity(
        name="rate",
        title="MACs per packet, on the simulator",
        value=lambda cost: run[_splits(cost)],
        short=lambda value: f"{value:.3g}",
        told=lambda value: f"{value:.4g}",
        measured=attrgetter("macs_per_packet"),
    )


def _splits(cost: PlanCost) -> tuple[int, int]:
    return cost.plan.k_split, _height(cost.plan)


def _height(plan: Plan) -> int:
    """How high a stripe is: in rows, or in blocks of 8 of them."""
    return plan.rows or plan.h_split


def _knob(case: Case) -> str:
    """Return what says how high a stripe is."""
    return "rows" if case.settled.rows else "h_split"


def _plot(case: Case, costs: Sequence[PlanCost], quantity: Quantity, measured: BySplits) -> Plot:
    """Make one heat map."""
    rows = [_row(case, cost, quantity.value(cost), quantity.short(quantity.value(cost))) for cost in costs]
    numbers = _numbers(case, costs, quantity, measured)
    return Plot(
        f"{case.name}-{quantity.name}", quantity.title, _words(case, costs, quantity), _map(rows, _knob(case)), numbers
    )


def _words(case: Case, costs: Sequence[PlanCost], quantity: Quantity) -> str:
    """Describe a heat map: how many plans fit, and which plan has the least of the quantity."""
    fitting = [cost for cost in costs if cost.fits]
    least = min(fitting or costs, key=quantity.value)
    crossed = f", {REFUSED_SIGN} marks the others" if len(fitting) < len(costs) else ""
    return (
        f"{quantity.what} over k_split and {_knob(case)}. {len(fitting)} of {counted(len(costs), 'plan')} "
        f"{'fits' if len(fitting) == 1 else 'fit'} {vtcm_words(case.settled)}{crossed}. "
        f"Least{' of those' if fitting else ''}: {quantity.told(quantity.value(least))} "
        f"at k_split {least.plan.k_split}, {_knob(case)} {_height(least.plan)}."
    )


def _numbers(case: Case, costs: Sequence[PlanCost], quantity: Quantity, measured: BySplits) -> Numbers:
    """Return the table of a heat map: a row a plan; what a sweep measured stands in a column of its own."""
    figures = [quantity.measured(measured.get(_splits(cost), Measured())) for cost in costs]
    has_any = any(figure is not None for figure in figures)
    headings = ("k_split", _knob(case), quantity.what.lower(), "fits VTCM", *(("measured",) if has_any else ()))
    rows = []
    for cost, figure in zip(costs, figures, strict=True):
        cells = (*map(str, _splits(cost)), quantity.told(quantity.value(cost)), "yes" if cost.fits else "no")
        told = "" if figure is None else quantity.told(figure)
        rows.append((*cells, told) if has_any else cells)
    return Numbers(f"{case.name}: {quantity.what.lower()} by splits", headings, tuple(rows))


def _row(case: Case, cost: PlanCost, value: float, text: str) -> dict[str, Any]:
    """Return the data of one cell."""
    plan = cost.plan
    return {
        "k": plan.k_split,
        "h": _height(plan),
        "value": value,
        "text": text if cost.fits else f"{REFUSED_SIGN}{_two_digits(text)}",
        "fits": cost.fits,
        "own": plan == case.settled,
    }


def _two_digits(text: str) -> str:
    """Shorten a figure to two digits, to leave room for the cross in front of it.

    >>> _two_digits("4.06"), _two_digits("17.6"), _two_digits("568")
    ('4.1', '18', '568')
    """
    number = float(text.replace(",", ""))
    return f"{number:.2g}" if number < 99 else f"{number:.0f}"


def _map(rows: list[dict[str, Any]], knob: str) -> alt.TopLevelMixin:
    """The chart: cells, their texts, and a frame around the case's own plan; `knob` sets the height of a stripe."""
    values = [row["value"] for row in rows]
    low, high = min(values), max(values)
    for row in rows:
        level = int((row["value"] - low) / (high - low) * len(HEAT)) if high > low else 0
        row["colour"] = HEAT[min(level, len(HEAT) - 1)] if row["fits"] else REFUSED
    columns, lines = len({row["h"] for row in rows}), len({row["k"] for row in rows})
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False)
    beside = alt.Axis(labelAngle=0, ticks=False, domain=False, labelPadding=6, titlePadding=8)
    base = alt.Chart(data(rows)).encode(
        x=alt.X("h:O", title=knob, axis=axis),
        y=alt.Y("k:O", title="k_split", axis=beside, sort="descending"),
    )
    cells = base.mark_rect().encode(color=alt.Color("colour:N", scale=None))
    inner = alt.Scale(paddingInner=0.04)
    cells = cells.encode(x=alt.X("h:O", title=knob, axis=axis, scale=inner))
    ink = alt.condition("datum.fits", alt.value(INK), alt.value(FAINT))
    texts = base.mark_text(fontSize=TEXT_PIXELS).encode(text="text:N", color=ink)
    own = base.transform_filter("datum.own").mark_rect(fill=None, stroke=MARK, strokeWidth=2)
    size = {"width": min(WIDTH - 40, 74 * columns), "height": max(28, min(30 * lines, 260))}
    return themed((cells + texts + own).properties(**size))
