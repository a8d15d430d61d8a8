"""Tables and JSON of what a search found: best plan, account of the others, front, cuts, race, proof."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from hexconv.network.call_costs import CallCost
from hexconv.report.check_tables import headed
from hexconv.report.rows import (
    AnswerRow,
    CutRow,
    CutsRow,
    FiguresRow,
    ModelTotal,
    NetworkRow,
    RaceRow,
    SpeedRow,
)
from hexconv.report.words import noun, plan_effects, plan_name
from hexconv.search.cuts import Cut, Cuts
from hexconv.search.found import PASSED_OVER, Found, Proof
from hexconv.search.grid import Figures
from hexconv.search.levers import Shortfall
from hexconv.search.planned_chains import CUT, DEFAULT, Answer, ContenderRun, OtherSpeed, PlannedNetwork, Race
from hexconv.search.proof import Verified
from hexconv.search.question import IN_VTCM, SLACK, Objective, Question, value
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


def cuts_table(answer: Answer) -> Table:
    """Return the table of cuts: every conv apart, all convs fused, and the best cut with its pieces."""
    table = headed("cuts; footprint and traffic in bytes", ("", "piece", "plan"), (*FIGURES, "saved"))
    cuts, apart = answer.cuts, answer.separate
    before = apart.traffic_bytes if apart else None
    for name, cut in (("all apart", apart), ("all fused", cuts.fused), ("best cut", cuts.best)):
        pieces = cut.pieces if cut else ()
        for piece in pieces if len(pieces) > 1 else ():
            table.add_row(name, piece.name, plan_name(piece.figures.plan), *_cells(piece.figures), "")
        table.add_row(
            name, "together", "" if cut else "does not fit", *_cells(cut), _saved(before, cut), end_section=True
        )
    return table


def verdict_line(answer: Answer) -> str:
    """Return the verdict of the search, in a sentence."""
    best, limit = answer.cuts.best, answer.question.vtcm_bytes
    if best is None:
        return f"{answer.name}: nothing fits {limit} bytes of VTCM"
    pieces = len(best.pieces)
    how = f"cut into {pieces} pieces it" if pieces > 1 else "the best plan"
    bound = answer.found.proof.lower_bound
    least = "; no plan moves less" if pieces == 1 and bound == best.traffic_bytes else ""
    packets = f"{best.latency_packets:.0f} packets (model), " if best.latency_packets else ""
    if answer.race and answer.race.best:
        packets = f"{answer.race.best.packets} packets (counted), "
    taken = f"{packets}{best.footprint_bytes} of {limit} bytes of VTCM"
    return f"{answer.name}: {how} moves {best.traffic_bytes} bytes and takes {taken}{least}"


def plan_lines(answer: Answer) -> Iterator[str]:
    """Yield the plan of each piece, as what it does."""
    for piece in answer.cuts.best.pieces if answer.cuts.best else ():
        yield f"  {piece.name}: {plan_effects(piece.chain, piece.figures.plan)} ({plan_name(piece.figures.plan)})"


def beside_lines(answer: Answer) -> Iterator[str]:
    """Yield lines that hold the answer against no plan at all, and against memory of other speeds."""
    best, default = answer.cuts.best, answer.unplanned
    if best is None:
        return
    if default and not (answer.race and answer.race.runs):
        yield (
            f"without a plan: {default.traffic_bytes} bytes and {default.latency_packets:.0f} packets by the model; "
            f"the answer has {_percent(best.traffic_bytes, default.traffic_bytes)} of these bytes and "
            f"{_percent(best.latency_packets, default.latency_packets)} of these packets"
        )
    if answer.question.objective != "time":
        return
    beta = answer.question.beta
    yield (
        f"time by the model: that of {best.time_packets(beta):.0f} packets of one thread, with memory that moves "
        f"{beta:g} bytes in the time of a packet; no run here can judge it"
    )
    if (machine := answer.question.machine) and (cycles := _cycles(answer)) is not None:
        yield (
            f"  on {machine.arch}, as {machine.source} measured it: {cycles:.0f} cycles, "
            f"{cycles / machine.megahertz:.0f} us at {machine.megahertz:g} MHz"
        )
    for other in answer.other_speeds:
        same = other.answer_packets <= other.least_packets * (1 + SLACK)
        than = "no other plan is quicker" if same else f"the best plan takes {other.least_packets:.0f}"
        yield f"  with {other.bytes_per_packet:g} bytes: {other.answer_packets:.0f}, {than}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "all"


def quick_table(answer: Answer) -> Table:
    """Return the table of packets against bytes: every cut that no other one beats in both."""
    cuts, question = answer.cuts.quick, answer.question
    table = headed("front of packets against traffic in bytes", ("", "pieces"), (QUICKNESS[question.quickness], *QUICK))
    shown = cuts if len(cuts) <= MOST_SHOWN else [cuts[round(at)] for at in np.linspace(0, len(cuts) - 1, MOST_SHOWN)]
    known = (answer.cuts.best.latency_packets, answer.cuts.best.traffic_bytes) if answer.cuts.best else None
    for cut in shown:
        is_answer = (cut.latency_packets, cut.traffic_bytes) == known
        quickness = value(cut, question.quickness, question)
        figures = (quickness, cut.traffic_bytes, cut.footprint_bytes)
        pieces = " | ".join(piece.name for piece in cut.pieces) if len(cut.pieces) <= MOST_NAMED else len(cut.pieces)
        table.add_row("answer" if is_answer else "", str(pieces), *(f"{figure:.0f}" for figure in figures))
    return table


MOST_SHOWN, MOST_NAMED = 12, 4
QUICKNESS = {"latency_packets": "packets (model)", "time_packets": "time in packets (model)"}
QUICK = ("traffic", "footprint")


def bound_lines(found: Found, question: Question) -> Iterator[str]:
    """Yield lines on the lower bound of the traffic, and on what a plan with less of the objective would need."""
    proof, objective = found.proof, question.objective
    if found.best is None:
        return
    if passed_over := sum(each.plans for each in proof.excluded if each.bound == PASSED_OVER):
        yield (
            f"{passed_over} {noun(passed_over, 'plan')} in narrower strips passed over: what they read at least is no "
            "better than what was found, or several wider kinds in a row were not"
        )
    yield (
        f"no plan can have less traffic than {proof.lower_bound} bytes, each needed byte once: "
        f"the answer has {found.best.traffic_bytes / proof.lower_bound:.3f} times that"
    )
    if proof.model_error is not None:
        yield (
            f"packets (model) are no bound and no count: nine of ten runs of this kernel on the simulator are within "
            f"{100 * proof.model_error:.0f} % of the model, which was fitted to other chains"
        )
    elif found.best.latency_packets:
        of_dtype = f"its error is not known for {proof.scope.fixed['dtype']}, of which no run was compared with it"
        of_engine = "no device timed the matrix engine, whose rate is a published one"
        why = of_engine if found.best.plan.kernel == "hmx" else of_dtype
        yield f"packets (model) are no bound and no count: {why}"
    yield _better(proof, objective)


def proof_lines(found: Found) -> Iterator[str]:
    """Lines that account for all plans: how many were looked at, how many fit, and which bounds excluded the rest."""
    proof = found.proof
    rate = f"{proof.evaluated} looked at in {proof.seconds:.3f} s, {proof.plans_per_second} a second"
    plans = f"{proof.plans} {noun(proof.plans, 'plan')}"
    yield f"{plans}, {rate}; {proof.fitting} fit ({proof.method}: {proof.status} among them)"
    for excluded in proof.excluded:
        yield f"  {excluded.plans} excluded: {excluded.bound}"
    if found.best is not None:
        yield scope_line(proof.scope)


def outside_lines(answer: Answer) -> Iterator[str]:
    """Yield a line on the cost of caches outside of VTCM, where such plans were looked at."""
    best, usual = answer.cuts.best, answer.cut_in_vtcm
    if answer.question.caches in IN_VTCM or best is None:
        return
    if usual is None:
        yield "with all caches in VTCM nothing fits; what kernels read and write in the others counts as traffic"
        return
    pieces = " | ".join(plan_name(piece.figures.plan) for piece in usual.pieces)
    yield (
        f"with all caches in VTCM ({pieces}): {usual.traffic_bytes} bytes moved, {usual.latency_packets:.0f} packets; "
        f"the answer has {best.traffic_bytes - usual.traffic_bytes:+d} bytes and "
        f"{best.latency_packets - usual.latency_packets:+.0f} packets"
    )


def _better(proof: Proof, objective: Objective) -> str:
    """Say whether a plan with less of the objective exists, and how much memory the smallest such plan takes."""
    by = "by the model, " if objective in ("latency", "time") else ""
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
    searched = (
        f"{cuts.plans} {noun(cuts.plans, 'plan')} of {cuts.pieces_searched} {noun(cuts.pieces_searched, 'piece')}"
    )
    if cuts.margin is None:
        yield f"no other searched cut moves fewer bytes, even with unlimited VTCM ({searched})"
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


def network_row(network: PlannedNetwork, cost: CallCost | None = None) -> NetworkRow:
    """Return the JSON of a planned network: all its chains, their sum, and of a model what a whole call costs."""
    return {
        "chains": [answer_row(answer, network) for answer in network.planned],
        "refused": network.refused,
        "not_taken": network.not_taken,
        "total": ModelTotal(**vars(network.total), **vars(cost)) if cost else network.total,
    }


def answer_row(answer: Answer, network: PlannedNetwork) -> AnswerRow:
    """Return the JSON of one planned chain."""
    found, question = answer.found, answer.question
    return {
        "case": answer.name,
        "vtcm_bytes": question.vtcm_bytes,
        "objective": question.objective,
        "bytes_per_packet": question.beta,
        "machine": question.machine,
        "cycles": _cycles(answer),
        "kernels": answer.kernels,
        "weighed": answer.weighed,
        "fits": found.best is not None,
        "best": found.best,
        "runner_up": found.runner_up,
        "smallest": found.smallest,
        "front": found.front,
        "proof": found.proof,
        "caches": question.caches,
        "all_in_vtcm": answer.all_in_vtcm,
        "unplanned": answer.unplanned,
        "other_speeds": [_speed(other, question) for other in answer.other_speeds],
        "toml": answer.fused.case.to_toml() if answer.fused else None,
        "race": _race(answer.race) if answer.race else None,
        "shortfall": answer.shortfall,
        "cuts": _cuts(answer),
        "ended_by": network.end_of(answer.name),
    }


def _cycles(answer: Answer) -> float | None:
    """Return the cycles that a machine's file says the best cut takes; None without one, or for another objective."""
    question, best = answer.question, answer.cuts.best
    if question.machine is None or question.objective != "time" or best is None:
        return None
    return question.machine.cycles(best.time_packets(question.beta), question.plan.threads)


def _speed(other: OtherSpeed, question: Question) -> SpeedRow:
    return {
        "bytes_per_packet": other.bytes_per_packet,
        "answer_packets": other.answer_packets,
        "least_packets": other.least_packets,
        "best": _cut(other.best, question),
    }


def _cuts(answer: Answer) -> CutsRow:
    """Return the JSON of the cuts of a chain."""
    cuts, question = answer.cuts, answer.question
    return {
        "best": _cut(cuts.best, question),
        "separate": _cut(answer.separate, question),
        "fused": _cut(cuts.fused, question),
        "quick": [row for cut in cuts.quick if (row := _cut(cut, question))],
        "joints": list(cuts.joints),
        "too_large": [{**_figures(least), "conv": conv} for conv, least in cuts.too_large],
        "margin": cuts.margin,
        "pieces_searched": cuts.pieces_searched,
        "plans": cuts.plans,
        "saved_bytes": answer.saved_bytes,
    }


def _race(race: Race) -> list[RaceRow]:
    """Return the JSON of a race: plans that were run, the fastest first, then plans that could not be run."""
    return [
        {
            "contender": run.contender.kind,
            "plans": [case.plan for case in run.contender.cases],
            "packets": run.packets,
            "model_packets": run.contender.model_packets,
            "said": run.said,
        }
        for run in race.runs
    ]


def _cut(cut: Cut | None, question: Question) -> CutRow | None:
    """Return the JSON of a chain that is cut into pieces; None without a cut."""
    if cut is None:
        return None
    return {
        "traffic_bytes": cut.traffic_bytes,
        "macs": cut.macs,
        "latency_packets": cut.latency_packets,
        "footprint_bytes": cut.footprint_bytes,
        "time_packets": cut.time_packets(question.beta),
        "pieces": [
            {**_figures(piece.figures), "name": piece.name, "first": piece.first, "last": piece.last}
            for piece in cut.pieces
        ],
    }


def _figures(figures: Figures) -> FiguresRow:
    return {
        "plan": figures.plan,
        "footprint_bytes": figures.footprint_bytes,
        "traffic_bytes": figures.traffic_bytes,
        "macs": figures.macs,
        "latency_packets": figures.latency_packets,
    }


NAMES = {DEFAULT: "default", CUT: "best cut"}


def race_table(race: Race) -> Table:
    """Return the table of all plans that were run, the fastest first."""
    table = headed("run on the simulator; packets", ("", "plan"), ("packets", "packets (model)", "model off by"))
    for run in race.runs:
        name = "answer" if run is race.best else NAMES.get(run.contender.kind, "")
        packets = "not run" if run.packets is None else str(run.packets)
        off = "" if run.model_error is None else f"{100 * run.model_error:+.1f} %"
        table.add_row(name, _plans(run), packets, f"{run.contender.model_packets:.0f}", off)
    return table


def _plans(run: ContenderRun) -> str:
    """Return the short names of the plans of all pieces of a contender."""
    plans = " | ".join(plan_name(case.plan) for case in run.contender.cases)
    return f"{plans} (default)" if run.contender.kind == DEFAULT else plans


def race_lines(race: Race) -> Iterator[str]:
    """Yield lines on the race: plans that were not run, the fastest plan, and a run without a plan."""
    if not race.runs:
        yield f"not run, the model decides: runs could save {100 * SLACK:g} % of all packets at most"
    for run in race.runs:
        if run.packets is None:
            yield f"{_plans(run)} was not run, the model decides without it: {run.said}"
    if race.best is None or race.best.packets is None:
        return
    ran = [run.packets for run in race.runs if run.packets is not None]
    best = race.best.contender.cut
    kind = f"cut into {len(best.pieces)} pieces" if len(best.pieces) > 1 else "the whole chain as one"
    yield (
        f"the answer moves the fewest bytes, {best.traffic_bytes}, of those within {100 * SLACK:g} % of the fewest "
        f"packets of {len(ran)} that were run, {kind}: {race.best.packets} packets, counted"
    )
    default = race.default
    if default and default.packets is not None:
        times = default.packets / race.best.packets
        moved = f"and moves {default.contender.cut.traffic_bytes} bytes"
        yield f"without a plan a run takes {default.packets} packets, {times:.3f} times as many, {moved}"
    elif default is None:
        yield "what a run takes without a plan doesn't fit"


def verified_table(verified: Sequence[Verified]) -> Table:
    """The table: one row a case, the search's figures beside those that TVM allocated, that were counted and run."""
    table = Table("holds", "case", "what", "found", title="verified: lowered, counted and run")
    for one in verified:
        figures = (
            ("caches", "", one.caches_agree),
            ("footprint", f"{one.footprint_bytes} bytes", one.footprint_agrees),
            ("traffic", f"{one.traffic_bytes} bytes", one.traffic_agrees),
            ("MACs", str(one.macs), one.macs_agree),
        )
        for what, told, agrees in figures:
            said = "as predicted" if agrees else "NOT as predicted"
            table.add_row(_says(agrees), one.case, what, f"{told} {said}".strip())
        for run in one.runs:
            packets = f", {run.packets} packets" if run.packets is not None else ""
            table.add_row(_says(run.passed), one.case, f"run on {run.target}", run.said + packets)
        table.add_section()
    return table


def _says(holds: bool | None) -> str:
    return "not run" if holds is None else "yes" if holds else "NO"
