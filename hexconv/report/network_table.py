"""Show a planned network: one row a chain, their sum, and which convs are not fused and why."""

from collections.abc import Iterator

import numpy as np
from rich.table import Table

from hexconv.errors import one_line
from hexconv.model.unfused import unfused_lines
from hexconv.network.call_costs import CallCost
from hexconv.report.best_table import cuts_lines, race_lines
from hexconv.report.check_tables import cell, headed
from hexconv.report.words import counted
from hexconv.search.planned_chains import Answer, PlannedNetwork
from hexconv.spec.kernel_choice import kernel_columns

SHOWN = 4
NUMBERS = ("convs", "pieces", "traffic apart", "traffic planned", "saved bytes", "saved", "footprint bytes", "plans")


def network_table(network: PlannedNetwork) -> Table:
    """Return the table of all chains and their sum, the saved traffic first; traffic and footprint in bytes."""
    table = headed(_sum(network), ("chain", "kernel"), NUMBERS)
    table.add_column("pieces are")
    for answer in network.planned:
        table.add_row(answer.name, kernel_columns(answer.kernels)["kernel_used"], *_row(answer))
    table.add_section()
    total = network.total
    if outside := total.operators_before_bytes:
        figures = ("", "", outside, outside, 0, _share(outside, 0), "", "")
        table.add_row("operators outside", "", *map(cell, figures), "")
    if handed := total.handed_bytes:
        table.add_row("stays in VTCM", "", *map(cell, ("", "", "", -handed, handed, "", "", "")), "")
    traffic = (total.before_bytes, total.after_bytes, total.saved_bytes)
    counts = (total.convs, total.pieces, *traffic, _share(*traffic[::2]), total.footprint_bytes, total.plans)
    table.add_row("all", "", *map(cell, counts), "")
    return table


def _row(answer: Answer) -> Iterator[str]:
    """Yield the row of one chain."""
    cuts = answer.cuts
    before = answer.separate.traffic_bytes if answer.separate else None
    after = cuts.best.traffic_bytes if cuts.best else None
    pieces = cuts.best.pieces if cuts.best else ()
    saved = answer.saved_bytes
    footprint = cuts.best.footprint_bytes if cuts.best else None
    counts = (len(answer.chain.conv), len(pieces), before, after, saved, _share(before, saved), footprint, cuts.plans)
    yield from map(cell, counts)
    yield " | ".join(piece.name for piece in pieces) or "does not fit"


def network_lines(network: PlannedNetwork) -> Iterator[str]:
    """Yield lines on convs that are not fused or in no chain, and why; chains with the same reason share a line."""
    said: dict[str, list[str]] = {}
    for answer in network.planned:
        for line in _lines(answer, network):
            said.setdefault(line, []).append(answer.name)
    yield from (f"{', '.join(names)}: {line}" for line, names in said.items())
    yield from _front_lines(network)
    for conv in network.not_taken:
        yield f"{conv.node} ({conv.op}): in no chain: {conv.reason}"
    if network.manifest:
        yield from unfused_lines(network.manifest.operator)


SHOWN = 6
"""The most points of a network's front that are told."""


def _front_lines(network: PlannedNetwork) -> Iterator[str]:
    """Yield a line with the front of all chains together: what fewer packets cost in bytes, and the other way round."""
    front = network.front
    if len(front.times) < 2:
        return
    what = "time in packets" if network.planned[0].question.objective == "time" else "packets"
    at = np.unique(np.linspace(0, len(front.times) - 1, SHOWN).round().astype(int))
    points = (f"{time:.0f} with {moved}" for time, moved in zip(front.times[at], front.traffic_bytes[at], strict=True))
    yield f"the front of all chains, {what} (model) with bytes: {', '.join(points)}"


def _lines(answer: Answer, network: PlannedNetwork) -> Iterator[str]:
    """Yield the lines of one chain, without the number of plans, which the table shows."""
    yield from (found.told for found in answer.weighed)
    if answer.race and not answer.race.runs:
        yield from race_lines(answer.race)
    for line in cuts_lines(answer.cuts, answer.question):
        yield line.partition(f" ({answer.cuts.plans} plan")[0]
    if end := network.end_of(answer.name):
        yield f"the chain ends because {end.reason}"


def _sum(network: PlannedNetwork) -> str:
    """Return the network in two lines: the traffic that its plans save, and how many plans were searched."""
    total = network.total
    if not network.planned:
        return "no chain could be planned"
    size = f"{counted(total.convs, 'conv')} in {counted(total.chains, 'chain')}"
    work = f"{size}; {counted(total.plans, 'plan')} searched in {total.seconds:.2f} s"
    if total.saved_bytes is None:
        unfit = [answer.name for answer in network.planned if answer.saved_bytes is None]
        return f"{', '.join(unfit)}: {'does' if len(unfit) == 1 else 'do'} not fit, not even conv by conv\n{work}"
    share = _share(total.before_bytes, total.saved_bytes)
    if not total.operators_after_bytes:
        return f"the plans move {total.after_bytes} bytes instead of {total.before_bytes}: {share} saved\n{work}"
    of_chains = _share(total.chains_before_bytes, (total.chains_before_bytes or 0) - (total.chains_after_bytes or 0))
    operators = counted(total.operators, "operator")
    return (
        f"a call moves {total.after_bytes} bytes instead of {total.before_bytes}: {share} saved\n"
        f"its chains move {total.chains_after_bytes} instead of {total.chains_before_bytes}: {of_chains} saved; "
        f"{operators} outside of them move {total.operators_after_bytes}\n{work}"
    )


def _share(before: int | None, saved: int | None) -> str:
    """Return the share of the traffic that is saved, in percent."""
    return f"{100 * saved / before:.1f} %" if before and saved is not None else ""


def call_lines(cost: CallCost) -> Iterator[str]:
    """Yield lines on what a call of a network costs: packets by part, critical path, memory."""
    of_kinds = ", ".join(f"{part.part} ({part.steps}) {part.after_packets}" for part in cost.parts[1:])
    before = "" if cost.before_packets is None else f" instead of {cost.before_packets}"
    yield f"a call takes about {cost.after_packets} packets{before}, by the model; hexconv verify counts them"
    yield f"its chains take {cost.chains_after_packets} of these, its operators {cost.operators_after_packets}" + (
        f": {of_kinds}; nine of ten operators are off by {cost.operators_error:.0%} or less" if of_kinds else ""
    )
    threads = counted(cost.threads, "thread")
    yield f"critical path on {threads}: about {cost.critical_packets} packets; VTCM {cost.vtcm_bytes} bytes"
    yield f"tensors between steps take {cost.arena_bytes} bytes, {cost.least_arena_bytes} of them at a time"
    if cost.residents:
        yield f"{counted(len(cost.residents), 'more tensor')} {'stays' if len(cost.residents) == 1 else 'stay'} in VTCM"
    if cost.left:
        shown = ", ".join(map(one_line, cost.left[:SHOWN]))
        more = f" and {len(cost.left) - SHOWN} more" if len(cost.left) > SHOWN else ""
        yield f"left out, since hexconv has no operator or no plan for them: {shown}{more}"
