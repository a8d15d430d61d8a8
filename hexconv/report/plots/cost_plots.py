"""Plot what other plans cost: heat maps of splits, footprint against traffic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from hexconv.errors import InputError
from hexconv.report.costs import BySplits, Measured, PlanCost, chain_costs, own_cost, split_costs
from hexconv.report.plots.plot import (
    BAR,
    FAINT,
    HEAT,
    INK,
    MARK,
    PAPER,
    PEER,
    REFUSED,
    TEXT_PIXELS,
    WIDTH,
    Numbers,
    Plot,
    data,
    themed,
)
from hexconv.report.words import changed_knobs, counted, in_bytes, knob_words, plan_name, times, unit_for, vtcm_words
from hexconv.search.planned_chains import Answer
from hexconv.search.question import value
from hexconv.spec import Case, Plan
from hexconv.spec.capacities import capacity_of
from hexconv.written import whole_file

REFUSED_SIGN = "✗"
CLOUD_WIDTH, CLOUD_HEIGHT = WIDTH - 60, 220
"""Pixels of the plot of footprint against traffic."""


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
    """The chart: points on axes from zero, the front as stairs, VTCM's end as a line, a ring around the own plan."""
    x_unit = unit_for(min(cost.footprint_bytes for cost in costs))
    y_unit = unit_for(min(cost.traffic_bytes for cost in costs))
    points = sorted({(c.footprint_bytes / x_unit.bytes, c.traffic_bytes / y_unit.bytes) for c in costs})
    line = [(c.footprint_bytes / x_unit.bytes, c.traffic_bytes / y_unit.bytes) for c in front]
    mine = [(own.footprint_bytes / x_unit.bytes, own.traffic_bytes / y_unit.bytes)]
    x = alt.X("x:Q", title=f"footprint, {x_unit.name}", scale=_from_zero([x for x, _ in points]), axis=_axis())
    y = alt.Y("y:Q", title=f"traffic, {y_unit.name}", scale=_from_zero([y for _, y in points]), axis=_axis())
    dots = _layer(points_apart(points)).mark_circle(color=PEER, size=22, opacity=1).encode(x=x, y=y)
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
    return themed(alt.layer(*layers).properties(width=CLOUD_WIDTH, height=CLOUD_HEIGHT))


def points_apart(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return one point a square of 3 pixels: its dot of 5 hides the others, which a page would carry for nothing."""
    column = max(x for x, _ in points) / CLOUD_WIDTH * 3
    row = max(y for _, y in points) / CLOUD_HEIGHT * 3
    return list({(x // column, y // row): (x, y) for x, y in points}.values())


def _layer(points: list[tuple[float, float]]) -> alt.Chart:
    return alt.Chart(data([{"x": x, "y": y} for x, y in points]))


def _from_zero(values: list[float]) -> alt.Scale:
    """Return a linear scale from zero, with some room at its end."""
    return alt.Scale(domain=[0, max(values) * 1.05], nice=False)


def _axis() -> alt.Axis:
    return alt.Axis(tickCount=4, format=",~f", grid=True)


MIB = 1 << 20
FRONT_WIDTH, HEIGHT = 640, 400


def write_front_plot(answer: Answer, path: Path) -> None:
    """Write two pictures side by side: the front of footprint and traffic, and that of packets and traffic.

    The VTCM limit is a line in the first; the second has the cuts within that limit. The answer is marked in both.

    Raises:
        InputError: its name doesn't end in .svg.
        NotWritten: the file can't be written.
    """
    if path.suffix != ".svg":
        raise InputError("--plot", str(path), "a file that ends in .svg")
    picture = _picture(answer, _points(answer)) | _quick_picture(answer)
    with whole_file(path) as made:
        picture.save(str(made), format="svg")


def _points(answer: Answer) -> pd.DataFrame:
    """Return the data of the picture: one row for each plan of the front, in MiB."""
    best, limit = answer.found.best, answer.question.vtcm_bytes
    kinds = [
        (figures, "fits" if figures.footprint_bytes <= limit else "does not fit")
        for figures in answer.found.front
        if figures != best
    ]
    rows = [
        {
            "plan": plan_name(figures.plan),
            "footprint": figures.footprint_bytes / MIB,
            "traffic": figures.traffic_bytes / MIB,
            "kind": kind,
        }
        for figures, kind in (*kinds, *([(best, "answer")] if best else []))
    ]
    return pd.DataFrame(rows)


def _quick_picture(answer: Answer) -> Any:
    """The chart of packets (or time) against traffic, both from 0: cuts that none beats in both, and the answer."""
    question, best = answer.question, answer.cuts.best
    cuts = [*answer.cuts.quick, *([best] if best else [])]
    rows = [
        {
            "pieces": " | ".join(plan_name(piece.figures.plan) for piece in cut.pieces),
            "packets": value(cut, question.quickness, question) / MILLION,
            "traffic": cut.traffic_bytes / MIB,
            "kind": "answer" if cut is best else "fits",
        }
        for cut in cuts
    ]
    what = "time, millions of packets" if question.objective == "time" else "packets, millions"
    x = alt.X("packets:Q", title=what, scale=alt.Scale(domainMin=0, nice=True))
    y = alt.Y("traffic:Q", title="traffic, MiB", scale=alt.Scale(domainMin=0, nice=True))
    color = alt.Color("kind:N", title="", scale=alt.Scale(domain=[*KINDS], range=[*KINDS.values()]))
    marks = alt.Chart(pd.DataFrame(rows, columns=["pieces", "packets", "traffic", "kind"]))
    marks = marks.mark_point(filled=True, size=60).encode(x=x, y=y, color=color, tooltip="pieces:N")
    return marks.properties(width=FRONT_WIDTH, height=HEIGHT, title="cuts that none beats in both, by the model")


MILLION = 1_000_000
KINDS = {"answer": "#d62728", "fits": "#1f77b4", "does not fit": "#bbbbbb"}
"""The colors of plans that a picture of a front has."""


def _picture(answer: Answer, points: pd.DataFrame):
    """The chart: steps, points, and the limit as a line."""
    x = alt.X("footprint:Q", title="footprint, MiB of VTCM", scale=alt.Scale(domainMin=0, nice=True))
    y = alt.Y("traffic:Q", title="traffic, MiB", scale=alt.Scale(domainMin=0, nice=True))
    color = alt.Color("kind:N", title="", scale=alt.Scale(domain=[*KINDS], range=[*KINDS.values()]))
    front = alt.Chart(points)
    steps = front.mark_line(interpolate="step-after", color="#cccccc").encode(x=x, y=y)
    marks = alt.Chart(points).mark_point(filled=True, size=60).encode(x=x, y=y, color=color, tooltip="plan:N")
    limit = pd.DataFrame({"footprint": [answer.question.vtcm_bytes / MIB]})
    rule = alt.Chart(limit).mark_rule(strokeDash=[4, 4]).encode(x="footprint:Q")
    title = f"{answer.name}: plans that none beats in both"
    return (steps + rule + marks).properties(width=FRONT_WIDTH, height=HEIGHT, title=title)
