"""Show what a search found: the verdict, the best plan, an account of all other plans, the front, the cuts."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from hexconv.report.headed import headed
from hexconv.report.words import plan_name
from hexconv.search.answer import Answer
from hexconv.search.cuts import Cuts
from hexconv.search.found import READ_MORE, Found, Proof
from hexconv.search.grid import Figures
from hexconv.search.levers import Shortfall
from hexconv.search.objective import COSTS, Objective
from hexconv.search.pieces import Cut
from hexconv.search.question import Question
from hexconv.search.space import Scope

FIGURES = ("footprint", "traffic", "MACs", "packets (model)")
HELD = ("kernel", "arch", "threads")
"""What a search holds fixed of a plan, and the verdict names; `scope_line` has the rest."""


def answer_table(answer: Answer) -> Table:
    """Return the table of the best plan, the runner-up and the smallest plan."""
    found, title = answer.found, f"{answer.name}: least {answer.question.objective}"
    table = headed(
        f"{title} in {answer.question.vtcm_bytes} bytes; footprint and traffic in bytes", ("", "plan"), FIGURES
    )
    rows = {"answer": found.best, "runner-up": found.runner_up, "least footprint": found.smallest}
    for name, figures in rows.items():
        if figures:
            table.add_row(name, plan_name(figures.plan), *_cells(figures))
    return table


def front_table(found: Found, question: Question) -> Table:
    """Return the table of footprint against traffic: every plan that no other plan beats in both."""
    table = headed("front of footprint against traffic, in bytes", ("plan", "fits"), FIGURES)
    for figures in found.front:
        fits = "yes" if figures.footprint_bytes <= question.vtcm_bytes else ""
        table.add_row(plan_name(figures.plan), fits, *_cells(figures))
    return table


def cuts_table(cuts: Cuts) -> Table:
    """Return the table of cuts: every conv apart, all convs fused, and the best cut with its pieces."""
    table = headed("cuts; footprint and traffic in bytes", ("", "piece", "plan"), (*FIGURES, "saved"))
    before = cuts.separate.traffic_bytes if cuts.separate else None
    for name, cut in (("all apart", cuts.separate), ("all fused", cuts.fused), ("best cut", cuts.best)):
        pieces = cut.pieces if cut else ()
        for piece in pieces if len(pieces) > 1 else ():
            table.add_row(name, piece.name, plan_name(piece.figures.plan), *_cells(piece.figures), "")
        table.add_row(
            name, "together", "" if cut else "does not fit", *_cells(cut), _saved(before, cut), end_section=True
        )
    return table


def verdict_line(answer: Answer) -> str:
    """Return the verdict of the search, in a sentence."""
    best, limit, cut = answer.found.best, answer.question.vtcm_bytes, answer.cuts.best
    if cut and len(cut.pieces) > 1:
        pieces = " | ".join(piece.name for piece in cut.pieces)
        return (
            f"{answer.name}: cut into {pieces} it moves {cut.traffic_bytes} bytes and takes {cut.footprint_bytes} of "
            f"{limit} bytes of VTCM; {f'fused it moves {best.traffic_bytes}' if best else 'fused it does not fit'}"
        )
    if best is None:
        return f"{answer.name}: nothing fits {limit} bytes of VTCM"
    bound = answer.found.proof.lower_bound
    least = "; no plan moves less" if bound == best.traffic_bytes else ""
    taken = f"takes {best.footprint_bytes} of {limit} bytes of VTCM"
    return f"{answer.name}: the best plan moves {best.traffic_bytes} bytes and {taken}{least}"


def bound_lines(found: Found, question: Question) -> Iterator[str]:
    """Yield lines on the lower bound of the traffic, and on what a plan with less of the objective would need."""
    proof, objective = found.proof, question.objective
    if found.best is None:
        return
    if passed_over := sum(each.plans for each in proof.excluded if each.bound == READ_MORE):
        yield (
            f"{passed_over} plans in narrower strips were not looked at: they read at least as much as the answer "
            "moves, and may compute less and take less memory"
        )
    if proof.lower_bound is not None:
        times = getattr(found.best, COSTS[objective][0]) / proof.lower_bound
        yield (
            f"no plan can have less traffic than {proof.lower_bound} bytes, each needed byte once: "
            f"the answer has {times:.3f} times that"
        )
    if proof.model_error is not None:
        yield (
            f"packets (model) are no bound and no count: nine of ten runs of this kernel on the simulator are within "
            f"{100 * proof.model_error:.0f} % of the model, which was fitted to other chains"
        )
    elif found.best.latency_packets:
        yield (
            f"packets (model) are no bound and no count: the model's error is not known for "
            f"{proof.scope.fixed['dtype']}, of which no run was compared with it"
        )
    yield _better(proof, objective)


def proof_lines(found: Found) -> Iterator[str]:
    """Lines that account for all plans: how many were looked at, how many fit, and which bounds excluded the rest."""
    proof = found.proof
    rate = f"{proof.evaluated} looked at in {proof.seconds:.3f} s, {proof.plans_per_second} a second"
    yield f"{proof.plans} plans, {rate}; {proof.fitting} fit ({proof.method}: {proof.status} among them)"
    for excluded in proof.excluded:
        yield f"  {excluded.plans} excluded: {excluded.bound}"
    if found.best is not None:
        yield scope_line(proof.scope)


def outside_lines(answer: Answer) -> Iterator[str]:
    """Yield lines on the cost of caches outside of VTCM, where such plans were asked for."""
    best, usual = answer.found.best, answer.all_in_vtcm
    if answer.question.caches == "all-in-vtcm" or best is None:
        return
    if usual is None:
        yield "with all caches in VTCM nothing fits"
        return
    more, room = best.traffic_bytes - usual.traffic_bytes, best.footprint_bytes - usual.footprint_bytes
    yield (
        f"with all caches in VTCM ({plan_name(usual.plan)}): traffic {usual.traffic_bytes} bytes, footprint "
        f"{usual.footprint_bytes}; the answer has {more:+d} of traffic and {room:+d} of footprint"
    )


def _better(proof: Proof, objective: Objective) -> str:
    """Say whether a plan with less of the objective exists, and how much memory the smallest such plan takes."""
    by = "by the model, " if objective == "latency" else ""
    if proof.least_better is None:
        held = ", ".join(f"{name} {value}" for name, value in proof.scope.fixed.items() if name in HELD)
        return f"{by}no searched plan of {held} has less {objective} than the answer, whatever the memory"
    least = proof.least_better
    return (
        f"{by}searched plans with less {objective} need more memory: of {proof.better_plans}, the smallest "
        f"({plan_name(least.plan)}) takes {least.footprint_bytes} bytes, {proof.over_bytes} above the limit"
    )


def scope_line(scope: Scope) -> str:
    """Say which plans were searched, so that a reader knows what "no searched plan" covers.

    >>> scope_line(Scope({"kernel": "plain", "arch": "v68"}, {"halo": ("recompute", "roll"), "h_split": (1, 2, 3)}))
    'searched, of all plans with kernel plain, arch v68: halo recompute | roll, h_split 1 to 3'
    """
    fixed = ", ".join(f"{name} {value}" for name, value in scope.fixed.items())
    turned = (f"{knob} {_values(values)}" for knob, values in scope.turned.items())
    return f"searched, of all plans with {fixed}: {', '.join(turned)}"


def _values(values: Sequence[Any]) -> str:
    """Write the values of a knob that were searched.

    >>> _values((1, 2, 4)), _values((1, 2, 3))
    ('1 | 2 | 4', '1 to 3')
    """
    first, last = values[0], values[-1]
    has_all = isinstance(first, int) and first < last and [*values] == [*range(first, last + 1)]
    return f"{first} to {last}" if has_all else " | ".join(map(str, values))


def cuts_lines(cuts: Cuts, question: Question) -> Iterator[str]:
    """Yield lines on why the best cut cuts where it does, and on how much memory a cut with less traffic needs."""
    for joint in cuts.joints:
        yield f"{joint.before} | {joint.after}: {joint.reason}"
    for conv, least in cuts.too_large:
        over = least.footprint_bytes - question.vtcm_bytes
        yield f"conv{conv} alone needs {least.footprint_bytes} bytes, {over} above the limit"
    if cuts.best is None or question.objective != "traffic":
        return
    searched = f"{cuts.plans} plans of {cuts.pieces_searched} pieces"
    if cuts.margin is None:
        yield f"no other cut into searched plans moves fewer bytes, whatever the memory ({searched})"
        return
    least = cuts.margin
    yield (
        f"searched plans with less traffic need more memory: {least.footprint_bytes} bytes at least, "
        f"{least.over_bytes} above the limit, for {least.traffic_bytes} bytes of traffic ({searched})"
    )


def shortfall_lines(shortfall: Shortfall, is_cut: bool) -> Iterator[str]:
    """Yield lines on why the fused chain does not fit, and on what would make it fit; the first line says by how much.

    Args:
        shortfall: what is missing.
        is_cut: whether the chain fits in pieces.
    """
    yield (
        f"{'fused' if is_cut else 'nothing fits'}: the smallest plan takes {shortfall.demand_bytes} of "
        f"{shortfall.vtcm_bytes} bytes, {shortfall.gap_bytes} too many"
    )
    for term in shortfall.terms:
        yield f"  {term.vtcm_bytes}  {' / '.join(term.holds)}"
    for lever in shortfall.levers:
        yield f"would fit: {lever.what}, {lever.demand_bytes} bytes"
    if not shortfall.levers:
        yield "neither a cut, another kernel nor another architecture would fit"


def _cells(figures: Figures | Cut | None) -> tuple[str, ...]:
    """Return the cells of a plan or a cut: footprint, traffic, MACs, packets."""
    if figures is None:
        return ("",) * len(FIGURES)
    counts = (figures.footprint_bytes, figures.traffic_bytes, figures.macs)
    return *map(str, counts), f"{figures.latency_packets:.0f}" if figures.latency_packets else "no model"


def _saved(before: int | None, cut: Cut | None) -> str:
    """Return the traffic that a cut saves against running every conv apart."""
    after = cut.traffic_bytes if cut else None
    return "" if before is None or after is None else str(before - after)
