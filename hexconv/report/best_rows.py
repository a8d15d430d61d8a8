"""Turn what a search found into plain values for JSON."""

from dataclasses import asdict
from typing import Any

from hexconv.search.answer import Answer
from hexconv.search.found import Found
from hexconv.search.laps import Race
from hexconv.search.network import PlannedNetwork
from hexconv.search.pieces import Cut

Row = dict[str, Any]


def network_row(network: PlannedNetwork) -> Row:
    """Return the JSON of a planned network: all its chains and their sum."""
    return {
        "chains": [answer_row(answer, network) for answer in network.planned],
        "refused": [asdict(chain) for chain in network.refused],
        "not_taken": [asdict(conv) for conv in network.not_taken],
        "total": asdict(network.total),
    }


def answer_row(answer: Answer, network: PlannedNetwork) -> Row:
    """Return the JSON of one planned chain."""
    cuts, end = answer.cuts, network.end_of(answer.name)
    return {
        "case": answer.name,
        "vtcm_bytes": answer.question.vtcm_bytes,
        "objective": answer.question.objective,
        "kernels": [asdict(choice) for choice in answer.kernels],
        "fits": answer.found.best is not None,
        **_found(answer.found),
        "caches": answer.question.caches,
        "all_in_vtcm": _row(answer.all_in_vtcm),
        "toml": answer.fused.case.to_toml() if answer.fused else None,
        "race": _race(answer.race) if answer.race else None,
        "shortfall": _row(answer.shortfall),
        "cuts": {
            "best": _cut(cuts.best),
            "separate": _cut(cuts.separate),
            "fused": _cut(cuts.fused),
            "joints": [asdict(joint) for joint in cuts.joints],
            "too_large": [{"conv": conv, **asdict(least)} for conv, least in cuts.too_large],
            "margin": _row(cuts.margin),
            "pieces_searched": cuts.pieces_searched,
            "plans": cuts.plans,
            "saved_bytes": answer.saved_bytes,
        },
        "ended_by": _row(end),
    }


def _found(found: Found) -> Row:
    """Return the JSON of the search over plans that fuse the whole chain."""
    return {
        "best": _row(found.best),
        "runner_up": _row(found.runner_up),
        "smallest": asdict(found.smallest),
        "front": [asdict(figures) for figures in found.front],
        "proof": {**asdict(found.proof), "plans_per_second": found.proof.plans_per_second},
    }


def _race(race: Race) -> list[Row]:
    """Return the JSON of a race: plans that were run, the fastest first, then plans that could not be run."""
    return [
        {
            "contender": lap.contender.kind,
            "plans": [asdict(case.plan) for case in lap.contender.cases],
            "packets": lap.packets,
            "model_packets": lap.contender.model_packets,
            "said": lap.said,
        }
        for lap in race.laps
    ]


def _row(found: Any) -> Row | None:
    """Return the JSON of a dataclass, such as a plan's figures; None without one."""
    return asdict(found) if found else None


def _cut(cut: Cut | None) -> Row | None:
    """Return the JSON of a chain that is cut into pieces; None without a cut."""
    if cut is None:
        return None
    together = {name: getattr(cut, name) for name in ("traffic_bytes", "macs", "latency_packets", "footprint_bytes")}
    pieces = [
        {"name": piece.name, "first": piece.first, "last": piece.last, **asdict(piece.figures)} for piece in cut.pieces
    ]
    return {**together, "pieces": pieces}
