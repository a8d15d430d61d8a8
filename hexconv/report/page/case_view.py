"""The section of one case on the page: facts, plots and the listing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hexconv.analyze import cache_usage, needed_macs, needed_work
from hexconv.analyze.fit import vtcm_fit
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.costs import PlanCost, own_cost
from hexconv.report.listing import header_of
from hexconv.report.page.answer import Known
from hexconv.report.page.code import listing_html
from hexconv.report.page.hot import HotView, hot_views
from hexconv.report.page.limit import limit_words, reached
from hexconv.report.page.stripes import StripesView, stripes_view
from hexconv.report.plots import (
    Plot,
    Reached,
    front_plot,
    lifetimes_plot,
    roofline_plot,
    split_plots,
    timeline_plot,
    vtcm_plot,
)
from hexconv.report.sweeps import BySplits
from hexconv.report.tables import Rate
from hexconv.report.units import in_bytes, share, times
from hexconv.report.words import chain_words, fit_words, plan_words
from hexconv.run.profile import Profile
from hexconv.spec import Case
from hexconv.spec.kernel import kernel_columns, kernel_words

UNKNOWN = "—"


@dataclass(frozen=True)
class CaseView:
    """One case, ready to be shown.

    Attributes:
        name: the name of the case.
        chain: its shapes in a line.
        toml: the case file.
        row: its cells of the overview, after the name.
        facts: its facts, each a name and a value.
        verdict: whether the closed form agrees with TVM's allocations.
        known: what the head of the page needs to know about it.
        plots: all its plots.
        header: the comments above its listing.
        listing: its annotated TIR.
        stripes: how its stripe moves over the image; None where there is only one stripe.
        hot: the packets that took the most issue slots, where the case was run.
    """

    name: str
    chain: str
    toml: str
    row: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    verdict: str
    known: Known
    plots: tuple[Plot, ...]
    header: str
    listing: Markup
    stripes: StripesView | None
    hot: tuple[HotView, ...]


HEADINGS = ("case", "kernel", "footprint", "of VTCM", "traffic / needed", "MACs / needed", "MACs / packet")
ON_THE_SIMULATOR = "On the simulator"


@dataclass(frozen=True)
class Measured:
    """What was measured of a case, by tables, sweeps or a run for the page.

    Attributes:
        rate: the rate of its run on the simulator, out of a table.
        splits: what a sweep measured of its plan with other splits.
        profile: the profile of its run, if it was run for the page.
        others: the rates that the page's other cases reached.
    """

    rate: Rate | None
    splits: BySplits
    profile: Profile | None
    others: Sequence[Reached]


def case_view(case: Case, measured: Measured) -> CaseView:
    """Lower a case and put its section together."""
    lowered, cost = lower_case(case), own_cost(case)
    usage = cache_usage(case, lowered)
    agreement = usage.verdict
    tir = annotated_tir(case, lowered, agreement)
    return CaseView(
        name=case.name,
        chain=chain_words(case.chain),
        toml=case.to_toml(),
        row=_row(case, cost, measured),
        facts=tuple(_facts(case, cost, measured)),
        verdict=f"TVM allocates {agreement}",
        known=Known(case, cost, usage.agrees),
        plots=tuple(_plots(case, measured)),
        header=header_of(tir),
        listing=listing_html(tir),
        stripes=stripes_view(case),
        hot=hot_views(measured.profile) if measured.profile else (),
    )


def _plots(case: Case, measured: Measured) -> Iterator[Plot]:
    """Make all plots of a case, in the order of the page."""
    if measured.profile:
        yield timeline_plot(measured.profile)
        yield roofline_plot(reached(case, measured.profile), measured.others)
    yield vtcm_plot(case)
    yield lifetimes_plot(case)
    yield from split_plots(case, measured.splits)
    yield front_plot(case)


def _row(case: Case, cost: PlanCost, measured: Measured) -> tuple[str, ...]:
    """Return the cells of the overview."""
    fit = vtcm_fit(case.chain, case.settled)
    part = f"{share(cost.footprint_bytes, fit.capacity_bytes)} of {in_bytes(fit.capacity_bytes)}"
    needed = sum(needed_work(case.chain).traffic_bytes.values())
    return (
        kernel_columns(case.kernels)["kernel_used"],
        in_bytes(cost.footprint_bytes),
        part if cost.fits else f"✗ {part}",
        times(cost.traffic_bytes, needed),
        times(cost.recompute, 1),
        _rate(case, measured),
    )


def _rate(case: Case, measured: Measured) -> str:
    """Return the MACs per packet of the page's own run, else of a table."""
    if measured.profile:
        return f"{needed_macs(case.chain) / measured.profile.slots.packets:.4g}"
    return UNKNOWN if measured.rate is None else f"{measured.rate.macs_per_packet:.4g}"


def _facts(case: Case, cost: PlanCost, measured: Measured) -> Iterator[tuple[str, str]]:
    """Yield the facts of a case, each a name and a value."""
    needed = needed_work(case.chain)
    yield "Plan", plan_words(case.settled)
    yield "Kernel", kernel_words(case.kernels)
    yield "Footprint", in_bytes(cost.footprint_bytes)
    yield "VTCM", fit_words(case)
    least = sum(needed.traffic_bytes.values())
    yield "Traffic", f"{in_bytes(cost.traffic_bytes)}, {times(cost.traffic_bytes, least)} times the least"
    yield "MACs needed", f"{sum(needed.macs.values()):,}"
    yield "MACs done", f"{times(cost.recompute, 1)} times those needed"
    rate, profile = measured.rate, measured.profile
    if profile:
        right = "right" if profile.run.check.passed else "WRONG"
        slots = f"{profile.slots.packets:,} packets, {profile.slots.issue_slots:,} issue slots"
        yield ON_THE_SIMULATOR, f"{right}; {slots}, {reached(case, profile).macs_per_slot:.4g} needed MACs per slot"
        yield "Limit", limit_words(case, profile)
    elif rate is not None:
        packets = "" if rate.packets is None else f", {rate.packets:,} packets"
        yield ON_THE_SIMULATOR, f"{rate.macs_per_packet:.4g} needed MACs per packet{packets}"
