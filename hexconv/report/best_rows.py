"""Turn what a search found into plain values for JSON."""

from dataclasses import asdict
from typing import Any

from hexconv.search.found import Found
from hexconv.search.grid import Figures
from hexconv.search.laps import Race
from hexconv.search.network import PlannedNetwork
from hexconv.search.pieces import Cut
from hexconv.search.planned import Planned

Row = dict[str, Any]


def network_row(network: PlannedNetwork) -> Row:
    """The JSON of a planned network: all its chains and their sum."""
    return {
        "chains": [planned_row(planned, network) for planned in network.planned],
        "refused": [asdict(chain) for chain in network.refused],
        "not_taken": [asdict(conv) for conv in network.not_taken],
        "total": asdict(network.total),
    }


def planned_row(planned: Planned, network: PlannedNetwork) -> Row:
    """The JSON of one planned chain."""
    cuts, end = planned.cuts, network.end_of(planned.name)
    return {
        "case": planned.name,
        "vtcm_bytes": planned.question.vtcm_bytes,
        "objective": planned.question.objective,
        "kernels": [asdict(choice) for choice in planned.kernels],
        "fits": planned.found.best is not None,
        **_found(planned.found),
        "caches": planned.question.caches,
        "all_in_vtcm": _figures(planned.all_in_vtcm) if planned.all_in_vtcm else None,
        "toml": planned.fused.case.to_toml() if planned.fused else None,
        "race": _race(planned.race) if planned.race else None,
        "shortfall": asdict(planned.shortfall) if planned.shortfall else None,
        "cuts": {
            "best": _cut(cuts.best),
            "separate": _cut(cuts.separate),
            "fused": _cut(cuts.fused),
            "joints": [asdict(joint) for joint in cuts.joints],
            "too_large": [{"conv": conv, **_figures(least)} for conv, least in cuts.too_large],
            "margin": asdict(cuts.margin) if cuts.margin else None,
            "pieces_searched": cuts.pieces_searched,
            "plans": cuts.plans,
            "saved_bytes": planned.saved_bytes,
        },
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
