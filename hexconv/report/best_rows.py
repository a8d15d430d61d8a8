"""Turn what a search found into plain values for JSON."""

from dataclasses import asdict
from typing import Any

from hexconv.lower.arguments import SETUP_PACKETS
from hexconv.search.answer import Answer
from hexconv.search.found import Found
from hexconv.search.grid import Figures
from hexconv.search.laps import Race
from hexconv.search.network import PlannedNetwork
from hexconv.search.pieces import Cut

Row = dict[str, Any]


def network_row(network: PlannedNetwork) -> Row:
    """The JSON of a planned network: all its chains and their sum."""
    return {
        "chains": [answer_row(answer, network) for answer in network.planned],
        "refused": [asdict(chain) for chain in network.refused],
        "not_taken": [asdict(conv) for conv in network.not_taken],
        "total": asdict(network.total),
    }


def answer_row(answer: Answer, network: PlannedNetwork) -> Row:
    """The JSON of one planned chain."""
    cuts, end = answer.cuts, network.end_of(answer.name)
    return {
        "case": answer.name,
        "vtcm_bytes": answer.question.vtcm_bytes,
        "objective": answer.question.objective,
        "kernels": [asdict(choice) for choice in answer.kernels],
        "fits": answer.found.best is not None,
        **_found(answer.found),
        "caches": answer.question.caches,
        "all_in_vtcm": _figures(answer.all_in_vtcm) if answer.all_in_vtcm else None,
        "toml": answer.fused.case.to_toml() if answer.fused else None,
        "race": _race(answer.race) if answer.race else None,
        "shortfall": asdict(answer.shortfall) if answer.shortfall else None,
        "cuts": {
            "best": _cut(cuts.best),
            "separate": _cut(cuts.separate),
            "fused": _cut(cuts.fused),
            "joints": [asdict(joint) for joint in cuts.joints],
            "too_large": [{"conv": conv, **_figures(least)} for conv, least in cuts.too_large],
            "margin": asdict(cuts.margin) if cuts.margin else None,
            "pieces_searched": cuts.pieces_searched,
            "plans": cuts.plans,
            "saved_bytes": answer.saved_bytes,
        },
        "setup_packets": SETUP_PACKETS,
        "ended_by": asdict(end) if end else None,
    }


def _found(found: Found) -> Row:
    """The JSON of the search over plans that fuse the whole chain."""
    proof = asdict(found.proof)
    least = found.proof.least_better
    return {
        "best": _figures(found.best) if found.best else None,
        "runner_up": _figures(found.runner_up) if found.runner_up else None,
        "smallest": _figures(found.smallest),
        "front": [_figures(figures) for figures in found.front],
        "proof": {
            **proof,
            "least_better": _figures(least) if least else None,
            "plans_per_second": found.proof.plans_per_second,
        },
    }


def _race(race: Race) -> list[Row]:
    """The JSON of a race: plans that were run, the fastest first, then plans that could not be run."""
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


def _figures(figures: Figures) -> Row:
    """The JSON of one plan and its figures, its knobs as in a case file."""
    return asdict(figures)


def _cut(cut: Cut | None) -> Row | None:
    """The JSON of a chain that is cut into pieces; None without a cut."""
    if cut is None:
        return None
    together = {name: getattr(cut, name) for name in ("traffic_bytes", "macs", "latency_packets", "footprint_bytes")}
    pieces = [
        {"name": piece.name, "first": piece.first, "last": piece.last, **_figures(piece.figures)}
        for piece in cut.pieces
    ]
    return {**together, "pieces": pieces}
