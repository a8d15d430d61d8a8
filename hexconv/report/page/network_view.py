"""Show a network on the page: its chains as a graph, the traffic that its plans save, and the worst chains."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from hexconv.analyze import needed_work
from hexconv.network.call_costs import CallCost
from hexconv.network.program_steps import Resident
from hexconv.report.page.limit import Drawing
from hexconv.report.page.worst_cases import MOST_WORST, Worst
from hexconv.report.plots.plot import BAR, FAINT, GRID, PEER, ROLE_COLOURS, WIDTH
from hexconv.report.words import counted, in_bytes
from hexconv.run.profile import Profile
from hexconv.search import Answer, PlannedNetwork
from hexconv.spec import Case
from hexconv.spec.capacities import capacity_of

NODE, BETWEEN, PIECE, MARGIN, LANE = 54, 18, 22, 4, 10
"""Pixels: height of a chain without its pieces, gap between two, height of a piece, left margin, lane of a line."""
LONGEST = 150
MOST_LANES = 4


@dataclass(frozen=True)
class NetworkView:
    """A planned network, ready to be shown.

    Attributes:
        name: the name of its model, or of its folder.
        totals: sentences about all chains.
        worst: the chains that move the most.
        headings: the headings of the table.
        rows: a row for each chain: its name, the name of the case that it links to, and the other cells.
        drawing: its chains, one beneath the other, with the lines between them.
        residents: a row for each tensor that stays in VTCM: its name, its steps, its place and its size.
    """

    name: str
    totals: tuple[str, ...]
    worst: tuple[Worst, ...]
    headings: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    drawing: Markup
    residents: tuple[tuple[str, tuple[str, ...]], ...] = ()


def network_view(
    network: PlannedNetwork, name: str, profiles: Mapping[str, Profile], cost: CallCost | None = None
) -> NetworkView:
    """Put together what the page shows of a planned network.

    Args:
        network: the network with its chains planned.
        name: the name of its model, or of its folder.
        profiles: the profiles of the cases that were run, by name.
        cost: what a call of the whole model costs; None where there is no model.
    """
    most = max((_apart(answer) or _after(answer) for answer in network.planned), default=0)
    counted_slots = ("issue slots",) if profiles else ()
    headings = ("chain", "pieces", "apart", "planned", "saved", "VTCM", *counted_slots, "ends")
    return NetworkView(
        name=name,
        totals=(*_totals(network, profiles), *(_of_call(cost) if cost else ())),
        worst=tuple(_worst(network)),
        headings=headings,
        rows=tuple(_row(answer, network, profiles) for answer in network.planned),
        drawing=_drawn(network, most),
        residents=tuple(_staying(each) for each in cost.residents) if cost else (),
    )


def _staying(resident: Resident) -> tuple[str, tuple[str, ...]]:
    """Return the row of a tensor that stays in VTCM."""
    steps = f"{resident.first} to {resident.last}"
    return resident.tensor, (steps, f"{resident.offset_bytes:,}", in_bytes(resident.bytes))


def _totals(network: PlannedNetwork, profiles: Mapping[str, Profile]) -> Iterator[str]:
    """Yield sentences about all chains together."""
    total = network.total
    if total.saved_bytes is None or not total.before_bytes:
        yield f"The plans move {in_bytes(total.after_bytes or 0)}; not every conv fits VTCM by itself."
    else:
        share = total.saved_bytes / total.before_bytes
        yield (
            f"A call moves {in_bytes(total.after_bytes or 0)} instead of {in_bytes(total.before_bytes)}, which it "
            f"moves with the convs one by one: {share:.1%} less."
        )
        if total.operators:
            of_chains, others = (
                in_bytes(size or 0) for size in (total.chains_after_bytes, total.operators_after_bytes)
            )
            what = counted(total.operators, "operator")
            yield f"The chains move {of_chains} of that; {what} outside of chains move {others}."
    pieces, chains = counted(total.pieces, "piece"), counted(total.chains, "chain")
    yield f"{counted(total.convs, 'conv')} in {chains} run as {pieces}{_asked(network)}."
    if total.pieces:
        yield f"The largest piece takes {in_bytes(total.footprint_bytes)} of {in_bytes(vtcm_bytes(network))} of VTCM."
    names = {case.name for case in cases_of(network)}
    run = [found for name, found in profiles.items() if name in names]
    if run:
        slots, packets = (sum(found.slots.issue_slots for found in run), sum(found.slots.packets for found in run))
        right = sum(found.run.check.passed for found in run)
        verdict = f"{right} of {len(run)} {'is' if right == 1 else 'are'} right"
        yield f"On the simulator they take {packets:,} packets and {slots:,} issue slots; {verdict}."
    yield from (f"{answer.name}, {found.told}." for answer in network.planned for found in answer.weighed)
    if network.refused or network.not_taken:
        unplanned, alone = counted(len(network.refused), "chain"), counted(len(network.not_taken), "conv")
        yield f"Without a plan: {unplanned}. In no chain: {alone}."


def _asked(network: PlannedNetwork) -> str:
    """Return the question of a network's plans, for the end of a sentence."""
    if not network.planned:
        return ""
    question = network.planned[0].question
    return f", planned for the least {question.objective} on {counted(question.plan.threads, 'thread')}"


def _of_call(cost: CallCost) -> Iterator[str]:
    """Yield sentences about a call of the whole model."""
    before = "" if cost.before_packets is None else f" instead of {cost.before_packets:,}"
    kinds = ", ".join(f"{part.part} ({part.steps}) {part.after_packets:,}" for part in cost.parts[1:])
    yield (
        f"By the model a call takes about {cost.after_packets:,} packets{before}: {cost.chains_after_packets:,} in "
        f"chains, {cost.operators_after_packets:,} in operators{': ' + kinds if kinds else ''}."
    )
    threads = counted(cost.threads, "thread")
    yield f"The critical path on {threads} is about {cost.critical_packets:,} packets."
    if cost.arena_bytes:
        yield f"Tensors between steps take {in_bytes(cost.arena_bytes)} of memory."
    elif cost.residents:
        yield "All tensors between steps stay in VTCM."
    if cost.left:
        yield f"Left out, since hexconv has no operator or no plan for them: {', '.join(cost.left)}."


def vtcm_bytes(network: PlannedNetwork) -> int:
    """Return the VTCM that the plans of a network may take."""
    return max((answer.question.vtcm_bytes for answer in network.planned), default=0)


def cases_of(network: PlannedNetwork) -> list[Case]:
    """Return the cases of the best cuts of all chains, in order, each with the VTCM that the network may take."""
    cuts = [(answer, answer.cuts.best) for answer in network.planned]
    return [_within(winner.case, vtcm_bytes(network)) for answer, cut in cuts if cut for winner in answer.pieces(cut)]


def _within(case: Case, vtcm_bytes: int) -> Case:
    """Return a case whose plan states how much VTCM it may take, where that is not what its architecture has."""
    if vtcm_bytes == capacity_of(case.settled):
        return case
    return replace(case, plan=replace(case.plan, vtcm_bytes=vtcm_bytes))


def _worst(network: PlannedNetwork) -> Iterator[Worst]:
    """Yield the chains that move the most bytes."""
    planned = [answer for answer in network.planned if _after(answer)]
    planned.sort(key=lambda each: -_after(each))
    for each in planned[:MOST_WORST]:
        extra = f"{in_bytes(_extra(each))} above its lower bound" if _extra(each) else "its lower bound"
        problem = f"moves {in_bytes(_after(each))}, {extra}"
        yield Worst(each.name, _link(each), problem, _help(each, network))


def _extra(answer: Answer) -> int:
    """Return the bytes that are moved beyond those that every plan of the chain must move."""
    return _after(answer) - _needed(answer)


def _help(answer: Answer, network: PlannedNetwork) -> str:
    """Return a sentence on what would help a chain: more VTCM, or a longer chain."""
    margin, end = answer.cuts.margin, network.end_of(answer.name)
    if margin:
        return f"With {in_bytes(margin.footprint_bytes)} of VTCM it would move {in_bytes(margin.traffic_bytes)}."
    return f"No other searched cut moves less{f'; the chain ends because {end.reason}' if end else ''}."


def _row(answer: Answer, network: PlannedNetwork, profiles: Mapping[str, Profile]) -> tuple[str, str, tuple[str, ...]]:
    """Return the row of one chain in the table."""
    cut, end = answer.cuts.best, network.end_of(answer.name)
    pieces = " | ".join(piece.name for piece in cut.pieces) if cut else "does not fit"
    saved, apart = answer.saved_bytes, _apart(answer)
    names = [winner.case.name for winner in answer.pieces(cut)] if cut else []
    slots = sum(profiles[name].slots.issue_slots for name in names if name in profiles)
    cells = (
        pieces,
        in_bytes(apart) if apart else "does not fit",
        in_bytes(_after(answer)) if cut else "",
        f"{saved / apart:.1%}" if saved is not None and apart else "",
        in_bytes(cut.footprint_bytes) if cut else "",
        *([f"{slots:,}" if slots else ""] if profiles else []),
        end.ended_by if end else "",
    )
    return answer.name, _link(answer), cells


def _link(answer: Answer) -> str:
    """Return the name of the first case of a chain's best cut; empty where nothing fits."""
    cut = answer.cuts.best
    return answer.pieces(cut)[0].case.name if cut else ""


def _apart(answer: Answer) -> int:
    return answer.separate.traffic_bytes if answer.separate else 0


def _after(answer: Answer) -> int:
    return answer.cuts.best.traffic_bytes if answer.cuts.best else 0


def _needed(answer: Answer) -> int:
    return sum(needed_work(answer.chain).traffic_bytes.values())


def _drawn(network: PlannedNetwork, most: int) -> Markup:
    """Draw chains from top to bottom, their fused pieces inside, bars for their traffic and lines for the data flow."""
    places, foot = dict[str, tuple[int, int]](), 4
    for answer in network.planned:
        height = NODE + PIECE * (len(answer.cuts.best.pieces) if answer.cuts.best else 1)
        places[answer.name] = (foot, height)
        foot += height + BETWEEN
    words = "; ".join(_said(answer, network) for answer in network.planned)
    drawing = Drawing(WIDTH, foot, f"{counted(len(network.planned), 'chain')}: {words}", "network")
    for lane, (start, end) in enumerate(_passing(network, places)):
        x = WIDTH - 4 - lane % MOST_LANES * LANE
        left = WIDTH - MOST_LANES * LANE - 6
        drawing.line(f"M{left} {start} H{x} V{end} H{left}", stroke_dasharray="4 3")
    names = list(places)
    for answer in network.planned:
        top, height = places[answer.name]
        before = names.index(answer.name) - 1
        if before >= 0 and names[before] in _befores(answer, network):
            drawing.line(f"M{MARGIN + 20} {top - BETWEEN} V{top}")
        _node(drawing, answer, top, height, most)
    return drawing.markup()


def _node(drawing: Drawing, answer: Answer, top: int, height: int, most: int) -> None:
    """Draw one chain."""
    across = WIDTH - MARGIN - MOST_LANES * LANE - 8
    drawing.box((MARGIN, top), (across, height), GRID, rx="6", fill_opacity="0.35")
    drawing.text((MARGIN + 8, top + 16), answer.name, font_weight="600")
    left, room = MARGIN + 8, across - LONGEST
    for line, (size, colour) in enumerate(((_apart(answer), PEER), (_after(answer), BAR))):
        wide = room * size / most if most else 0
        drawing.box((left, top + 24 + line * 14), (max(wide, 1), 9), colour)
        drawing.text((left + max(wide, 1) + 5, top + 33 + line * 14), in_bytes(size), FAINT)
    cut = answer.cuts.best
    for number, piece in enumerate(cut.pieces if cut else ()):
        foot = top + NODE + number * PIECE
        drawing.box((left, foot), (across - 16, PIECE - 4), ROLE_COLOURS["intermediate"], rx="4")
        first, last = piece.first, piece.last
        convs = f"conv {first} alone" if first == last else f"convs {first} to {last} fused"
        drawing.text((left + 6, foot + 13), f"{convs}, {in_bytes(piece.figures.footprint_bytes)} of VTCM")
    if not cut:
        drawing.text((left + 6, top + NODE + 13), "does not fit")


def _befores(answer: Answer, network: PlannedNetwork) -> Sequence[str]:
    """Return the chains whose results a chain reads, straight or through other nodes."""
    end = network.end_of(answer.name)
    return end.after if end else ()


def _passing(network: PlannedNetwork, places: Mapping[str, tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The lines between chains that don't stand next to each other: from the foot of one to the head of the other."""
    names = list(places)
    for answer in network.planned:
        for before in _befores(answer, network):
            if before in places and names.index(answer.name) - names.index(before) != 1:
                top, height = places[before]
                yield top + height - 8, places[answer.name][0] + 8


def _said(answer: Answer, network: PlannedNetwork) -> str:
    """Describe one chain in words."""
    befores = " and ".join(_befores(answer, network))
    cut = answer.cuts.best
    pieces = f"{len(cut.pieces)} fused pieces" if cut and len(cut.pieces) > 1 else "fused" if cut else "does not fit"
    return f"{answer.name}{f', behind {befores}' if befores else ''}, {pieces}, {in_bytes(_after(answer))}"
