"""What the page says of one case: facts, plots and the listing."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from hexconv.analyze import cache_usage, needed_work
from hexconv.analyze.fit import vtcm_fit
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.costs import PlanCost, own_cost
from hexconv.report.listing import header_of
from hexconv.report.page.code import listing_html
from hexconv.report.plots import Plot, front_plot, lifetimes_plot, split_plots, vtcm_plot
from hexconv.report.sweeps import BySplits
from hexconv.report.tables import Rate
from hexconv.report.units import in_bytes
from hexconv.report.words import chain_words, fit_words, plan_words
from hexconv.spec import Case
from hexconv.spec.kernel import kernel_columns, kernel_words

UNKNOWN = "—"


@dataclass(frozen=True)
class CaseView:
    """One case, ready to be shown.

    Attributes:
        name: of the case.
        chain: its shapes in a line.
        plan: its knobs in a line.
        toml: the case file.
        row: its cells of the overview, after the name.
        facts: pairs of what and how much.
        verdict: whether the closed form agrees with TVM's allocations.
        plots: everything that is drawn of it.
        header: the comments above its listing.
        listing: its annotated TIR.
    """

    name: str
    chain: str
    plan: str
    toml: str
    row: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    verdict: str
    plots: tuple[Plot, ...]
    header: str
    listing: Markup


HEADINGS = ("case", "kernel", "footprint", "of VTCM", "traffic / needed", "MACs / needed", "MACs / packet")


def case_view(case: Case, rate: Rate | None, measured: BySplits) -> CaseView:
    """Lower a case and put together what is to be shown of it.

    Args:
        case: the case.
        rate: what its run on the simulator reached, if there was one.
        measured: what a sweep has of its plan under other splits.
    """
    lowered, cost = lower_case(case), own_cost(case)
    agreement = cache_usage(case, lowered).verdict
    tir = annotated_tir(case, lowered, agreement)
    return CaseView(
        name=case.name,
        chain=chain_words(case.chain),
        plan=plan_words(case.settled),
        toml=case.to_toml(),
        row=_row(case, cost, rate),
        facts=tuple(_facts(case, cost, rate)),
        verdict=f"TVM allocates {agreement}",
        plots=tuple(_plots(case, measured)),
        header=header_of(tir),
        listing=listing_html(tir),
    )


def _plots(case: Case, measured: BySplits) -> Iterator[Plot]:
    """All plots of a case, in the order of the page."""
    yield vtcm_plot(case)
    yield lifetimes_plot(case)
    yield from split_plots(case, measured)
    yield front_plot(case)


def _row(case: Case, cost: PlanCost, rate: Rate | None) -> tuple[str, ...]:
    """The cells of the overview."""
    fit = vtcm_fit(case.chain, case.settled)
    share = cost.footprint_bytes / fit.capacity_bytes
    needed = sum(needed_work(case.chain).traffic_bytes.values())
    return (
        kernel_columns(case.kernels)["kernel_used"],
        in_bytes(cost.footprint_bytes),
        f"{share:.0%} of {fit.arch}" if cost.fits else f"✗ {share:.0%} of {fit.arch}",
        f"{cost.traffic_bytes / needed:.2f}",
        f"{cost.recompute:.2f}",
        UNKNOWN if rate is None else f"{rate.macs_per_packet:.4g}",
    )


def _facts(case: Case, cost: PlanCost, rate: Rate | None) -> Iterator[tuple[str, str]]:
    """What and how much."""
    needed = needed_work(case.chain)
    yield "Plan", plan_words(case.settled)
    yield "Kernel", kernel_words(case.kernels)
    yield "Footprint", in_bytes(cost.footprint_bytes)
    yield "VTCM", fit_words(case)
    least = sum(needed.traffic_bytes.values())
    yield "Traffic", f"{in_bytes(cost.traffic_bytes)}, {cost.traffic_bytes / least:.2f} times the least"
    yield "MACs needed", f"{sum(needed.macs.values()):,}"
    yield "MACs done", f"{cost.recompute:.2f} times the needed"
    if rate is not None:
        packets = "" if rate.packets is None else f", {rate.packets:,} packets"
        yield "On the simulator", f"{rate.macs_per_packet:.4g} needed MACs per packet{packets}"
